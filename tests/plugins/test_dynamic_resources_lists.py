"""Attributes with several values: feature gate DRAListTypeAttributes in both positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.api.cel.device_expressions import CelError, compile_expression
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.testing.builders import make_node
from bayplan.testing.devices import (
    claiming,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.scenarios import Scenario

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

ON = {"DRAListTypeAttributes": True}
NUMA = "gpu.example.com/numa"
OF = 'device.attributes["gpu.example.com"]'


def outcome(
    *devices: Any,
    requests: Sequence[Any],
    constraint: str = "",
    gates: dict[str, bool] = ON,
    release: str = "1.37",
) -> str:
    """The devices that a pod gets, or the message of its attempt."""
    constraints = [{constraint: NUMA}] if constraint else []
    scenario = Scenario(
        make_node("a"),
        make_class("gpu"),
        make_slice("s", *devices, node="a"),
        make_claim("c", *requests, constraints=constraints),
        feature_gates=FeatureGates(gates, release=find_release(release)),
    )
    scenario.add(claiming("c"))
    (attempt,) = scenario.run()
    allocation = scenario.cluster.get("ResourceClaim", "default", "c").allocation
    if allocation is None:
        return attempt.message
    return " ".join(result.device for result in allocation.devices.results)


def device(name: str, **numa: Any) -> Any:
    """A device with the values of one attribute, such as `ints=[1, 2]` or `int=1`."""
    return make_device(name, numa=numa)


NONE = "cannot allocate all claims"


@pytest.mark.parametrize(
    ("constraint", "devices", "expected"),
    [
        pytest.param(
            "matchAttribute",
            [device("x", ints=[0, 1]), device("y", ints=[2]), device("z", ints=[1, 3])],
            "x z",
            id="a value in common",
        ),
        pytest.param(
            "matchAttribute",
            [device("x", strings=["a", "b"]), device("y", string="b")],
            "x y",
            id="a list and one value",
        ),
        pytest.param(
            "matchAttribute", [device("x", ints=[1]), device("y", strings=["1"])], NONE, id="types"
        ),
        pytest.param(
            "matchAttribute",
            [device("x", versions=["1.0.0", "2.0.0"]), device("y", versions=["2.0.0"])],
            "x y",
            id="versions",
        ),
        pytest.param(
            "matchAttribute", [device("x"), device("y", bools=[True])], NONE, id="without a value"
        ),
        pytest.param(
            "distinctAttribute",
            [device("x", bools=[True]), device("y", bools=[True, False]), device("z", bool=False)],
            "x z",
            id="no value in common",
        ),
    ],
)
def test_constraints(constraint: str, devices: list[Any], expected: str) -> None:
    # Of a request only the last device is compared with by distinctAttribute: two requests.
    requests = [make_request("one"), make_request("two")]

    assert expected in outcome(*devices, requests=requests, constraint=constraint)


@pytest.mark.parametrize(
    ("constraint", "requests"),
    [
        pytest.param("matchAttribute", [make_request(count=2)], id="match"),
        pytest.param("distinctAttribute", [make_request("a"), make_request("b")], id="distinct"),
    ],
)
def test_up_to_1_36_constraints_know_no_lists(constraint: str, requests: list[Any]) -> None:
    pair = [device("x", ints=[0, 1]), device("y", ints=[1, 2])]
    alone = [make_request()]

    found = outcome(*pair, requests=requests, constraint=constraint, release="1.36")

    assert NONE in found
    assert outcome(*pair, requests=alone, constraint=constraint, release="1.36") == "x"


@pytest.mark.parametrize(("release", "expected"), [("1.36", "x y z"), ("1.37", NONE)])
def test_of_a_request_all_devices_are_distinct_from_1_37_on(release: str, expected: str) -> None:
    three = [device("x", int=0), device("y", int=1), device("z", int=0)]
    requests = [make_request(count=3)]

    found = outcome(
        *three, requests=requests, constraint="distinctAttribute", gates={}, release=release
    )

    assert expected in found


def test_three_devices_need_one_value_in_common() -> None:
    pairs = [device("x", ints=[0, 1]), device("y", ints=[1, 2]), device("z", ints=[0, 2])]

    found = outcome(*pairs, requests=[make_request(count=3)], constraint="matchAttribute")

    assert NONE in found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(f"{OF}.numa.includes(2)", "y", id="a list that includes the value"),
        pytest.param(f"{OF}.numa.exists(n, n > 1)", "y", id="a macro on the list"),
        pytest.param(f"2 in {OF}.numa", "y", id="in"),
    ],
)
def test_expressions_read_lists(expression: str, expected: str) -> None:
    devices = [device("x", ints=[0, 1]), device("y", ints=[1, 2])]

    assert outcome(*devices, requests=[make_request("gpu", expression)]) == expected


@pytest.mark.parametrize(
    ("numa", "expression", "answer"),
    [
        pytest.param({"int": 2}, f"{OF}.numa.includes(2)", "x", id="one value is like a list"),
        pytest.param({"bools": [True]}, f"{OF}.numa.includes(1)", NONE, id="true is not 1"),
        pytest.param(
            {"versions": ["1.2.0"]}, f'{OF}.numa.includes(semver("1.2.0"))', "x", id="a version"
        ),
    ],
)
def test_includes(numa: dict[str, Any], expression: str, answer: str) -> None:
    assert answer in outcome(device("x", **numa), requests=[make_request("gpu", expression)])


def test_without_the_gate_expressions_fail_on_lists() -> None:
    found = outcome(
        device("x", ints=[1]), requests=[make_request("gpu", f"{OF}.numa == 1")], gates={}
    )

    assert "unsupported attribute value" in found


def test_without_the_gate_there_is_no_includes() -> None:
    with pytest.raises(CelError, match="includes"):
        compile_expression(f"{OF}.numa.includes(2)", has_lists=False)
