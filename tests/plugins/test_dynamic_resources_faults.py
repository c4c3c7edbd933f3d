"""Claims that fail the pod: where, and in the words of the real search. Each case was run through it, too."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.testing.builders import make_node
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.scenarios import Scenario

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

ALL = {"allocationMode": "All"}
SAME = [{"matchAttribute": "gpu.example.com/numa"}]
OTHER = [{"distinctAttribute": "gpu.example.com/numa"}]
PAIR = [make_slice("s", make_device("d0", numa=0), make_device("d1", numa=1), node="a")]
WITHOUT = 'device.attributes["gpu.example.com"].size == 1'
NO_ROOM = "cannot allocate all claims"


def outcome(
    claim: Any, *slices: Any, gates: dict[str, bool] | None = None, release: str = "1.36"
) -> str:
    """The devices that a pod is given on the only node, or the message of its attempt."""
    scenario = Scenario(
        make_node("a", cpu="1"),
        make_class("gpu"),
        *slices,
        claim,
        feature_gates=FeatureGates(gates, release=find_release(release)),
    )
    scenario.add(claiming(claim.name))
    attempt = scenario.scheduler.schedule_one()
    assert attempt is not None
    allocation = scenario.cluster.get("ResourceClaim", "default", claim.name).allocation
    if allocation is None:
        return str(attempt.message)
    results = allocation.devices.results
    return " ".join(f"{result.request}={result.device}" for result in results)


@pytest.mark.parametrize(
    ("claim", "slices", "expected"),
    [
        pytest.param(
            make_claim("c", make_request("r", **ALL), constraints=SAME),
            PAIR,
            "claim default/c, request r: cannot add device gpu.example.com/a/d1 because a claim "
            "constraint would not be satisfied",
            id="all devices, one of which a constraint refuses",
        ),
        pytest.param(
            make_claim(
                "c",
                make_choice("r", make_request("x", **ALL), make_request("y")),
                constraints=SAME,
            ),
            PAIR,
            "claim default/c, request x: cannot add device gpu.example.com/a/d1 because a claim "
            "constraint would not be satisfied",
            id="the same as an alternative: the next one is not tried",
        ),
        pytest.param(
            make_claim(
                "c",
                make_choice("r", make_request("x", **ALL), make_request("y")),
                constraints=[{**SAME[0], "requests": ["r/y"]}],
            ),
            PAIR,
            "r/x=d0 r/x=d1",
            id="a constraint of the other alternative",
        ),
        pytest.param(
            make_claim("c", make_choice("r", make_request("x", **ALL))),
            [make_slice("s", "d0", node="a", count=2)],
            "claim default/c, request x: asks for all devices, but resource pool gpu.example.com/a "
            "is currently being updated",
            id="an incomplete pool is named with the alternative alone",
        ),
        pytest.param(
            make_claim("c", make_request("r", WITHOUT, **ALL)),
            [
                make_slice("s", "d0", node="a", pool="a"),
                make_slice("t", "d0", node="a", pool="z", count=2),
            ],
            "claim default/c: selector #0: CEL runtime error: no such key: size",
            id="pools are looked at in order: the fault of a device comes first",
        ),
        pytest.param(
            make_claim("c", make_request("r", WITHOUT, **ALL)),
            [
                make_slice("s", "d0", node="a", pool="z"),
                make_slice("t", "d0", node="a", pool="a", count=2),
            ],
            "claim default/c, request r: asks for all devices, but resource pool gpu.example.com/a "
            "is currently being updated",
            id="pools are looked at in order: the incomplete pool comes first",
        ),
    ],
)
def test_the_words_of_the_fault(claim: Any, slices: list[Any], expected: str) -> None:
    assert expected in outcome(claim, *slices)


def test_the_most_stable_search_has_no_distinct_attribute() -> None:
    off = {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False}
    claim = make_claim("c", make_request(count=2), constraints=OTHER)
    text = "claim default/c, constraint #0: empty constraint (unsupported constraint type?)"

    assert text in outcome(claim, *PAIR, gates=off)
    assert outcome(claim, *PAIR, gates={"DRAConsumableCapacity": False}) == "gpu=d0 gpu=d1"


def test_the_most_stable_search_ignores_requests_for_capacity() -> None:
    off = {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False}
    claim = make_claim("c", make_request(capacity={"requests": {"memory": "80Gi"}}))
    text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"

    assert outcome(claim, *PAIR, gates=off) == "gpu=d0"
    assert text in outcome(claim, *PAIR, gates={"DRAConsumableCapacity": False})


@pytest.mark.parametrize("explain", [False, True])
def test_a_nominated_node_is_taken_whatever_fails_on_others(explain: bool) -> None:
    good = make_slice("t", make_device("d0", numa=0), node="b")
    claim = make_claim("c", make_request(**ALL), constraints=SAME)
    nodes = [make_node(name, cpu="1") for name in ("a", "b")]
    scenario = Scenario(*nodes, make_class("gpu"), *PAIR, good, claim, explain=explain)
    pod = claiming("c")
    scenario.add(replace(pod, status=replace(pod.status, nominated_node_name="b")))

    attempt = scenario.scheduler.schedule_one()

    assert attempt is not None
    assert (attempt.node_name, attempt.message) == ("b", "")


def test_a_claim_is_looked_into_only_where_devices_are_searched_for() -> None:
    claim = make_claim("c", make_request(adminAccess=True))
    off = {"DRAAdminAccess": False}
    scenario = Scenario(
        make_node("a", taints=["k:NoSchedule"]),
        make_class("gpu"),
        claim,
        *PAIR,
        feature_gates=FeatureGates(off, release=find_release("1.35")),
    )
    scenario.add(claiming("c"))
    attempt = scenario.scheduler.schedule_one()

    assert attempt is not None
    assert "untolerated taint" in attempt.message
    assert "admin access is requested" in outcome(claim, *PAIR, gates=off, release="1.35")


@pytest.mark.parametrize(("release", "expected"), [("1.35", "r/y=d0"), ("1.36", "r/y=d0 r/y=d1")])
def test_up_to_1_35_an_alternative_for_all_devices_ends_as_the_first(
    release: str, expected: str
) -> None:
    tall = 'device.attributes["gpu.example.com"].numa > 7'
    claim = make_claim("c", make_choice("r", make_request("x", tall), make_request("y", **ALL)))

    assert outcome(claim, *PAIR, release=release) == expected
