"""DynamicResources up to Filter, and the deallocation of claims."""

from typing import Any

import pytest

from bayplan.errors import ApiError
from bayplan.framework import SKIP, Code, CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.plugins.dynamic_resources.plugin import TRIES_PER_SECOND, DynamicResources
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.conformance import check_conformance, check_rows_agree
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_template,
)
from tests.rig.device_world import DeviceWorld

LARGE = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
CANNOT = "cannot allocate all claims"
ELSEWHERE = "resourceclaim not available on the node"


def world(*objects: Any) -> DeviceWorld:
    """Two nodes: `a` with a large device and a small one, `b` with a small one."""
    return DeviceWorld(
        DynamicResources(),
        make_node("a"),
        make_node("b"),
        make_class("gpu"),
        make_slice(
            "on-a",
            make_device("large", capacity={"memory": "80Gi"}),
            make_device("small", capacity={"memory": "10Gi"}),
            node="a",
        ),
        make_slice("on-b", make_device("small", capacity={"memory": "10Gi"}), node="b"),
        *objects,
    )


# PreEnqueue


@pytest.mark.parametrize(
    ("claims", "pod", "reason"),
    [
        pytest.param([], make_pod(), "", id="no claims"),
        pytest.param([make_claim("c")], claiming("c"), "", id="a claim that is there"),
        pytest.param(
            [], claiming("c"), 'could not find ResourceClaim "default/c"', id="no such claim"
        ),
        pytest.param(
            [make_claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            claiming("c"),
            'resourceclaim "c" is being deleted',
            id="a claim that is being deleted",
        ),
        pytest.param(
            [],
            claiming(template="t"),
            'pod "default/pod": ResourceClaim not created yet',
            id="a claim that is not made yet",
        ),
        pytest.param(
            [make_claim("c")],
            claiming(
                template="t",
                status={"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "c"}]},
            ),
            "ResourceClaim default/c was not created for Pod default/pod (Pod is not owner)",
            id="a claim that was made for another",
        ),
        pytest.param(
            [],
            claiming(template="t", status={"resourceClaimStatuses": [{"name": "own"}]}),
            "",
            id="a claim that is not needed",
        ),
    ],
)
def test_pods_wait_for_their_claims(claims: list[Any], pod: Any, reason: str) -> None:
    status = world(*claims).plugin.pre_enqueue(pod)

    assert status.message == reason
    assert status.code is (Code.UnschedulableAndUnresolvable if reason else Code.Success)


# PreFilter


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        pytest.param(
            make_request("r", device_class="no"),
            Code.UnschedulableAndUnresolvable,
            "request r: device class no does not exist",
            id="no such class",
        ),
        pytest.param(
            make_choice("r", make_request("s"), make_request("t", device_class="no")),
            Code.UnschedulableAndUnresolvable,
            "request r/t: device class no does not exist",
            id="no such class in an alternative",
        ),
    ],
)
def test_claims_that_cannot_be_served_anywhere(request_: Any, code: Code, reason: str) -> None:
    _, status = world(make_claim("c", request_)).pre_filter(claiming("c"))

    assert (status.code, status.message) == (code, reason)


def test_a_pod_without_claims_is_skipped() -> None:
    _, status = world().pre_filter(make_pod(requests={"example.com/other": 1}))

    assert status == SKIP


def test_a_claim_that_another_pod_is_about_to_get_devices_for_is_waited_for() -> None:
    made = world(make_claim("c"))
    made.reserve(claiming("c", name="first"))

    _, status = made.pre_filter(claiming("c", name="second"))

    text = "resource claim default/c is in the process of being allocated"
    assert (status.code, status.message) == (Code.UnschedulableAndUnresolvable, text)


# Filter


@pytest.mark.parametrize(
    ("claims", "on_a", "on_b"),
    [
        pytest.param([make_claim("c")], "", "", id="any device"),
        pytest.param([make_claim("c", make_request("r", LARGE))], "", CANNOT, id="a large one"),
        pytest.param([make_claim("c", make_request(count=2))], "", CANNOT, id="two"),
        pytest.param([make_claim("c", make_request(count=3))], CANNOT, CANNOT, id="three"),
        pytest.param(
            [make_claim("c", devices=["a/small"], node="a")],
            "",
            ELSEWHERE,
            id="devices that only one node reaches",
        ),
        pytest.param([make_claim("c", devices=["p/x"])], "", "", id="devices that all reach"),
        pytest.param(
            [make_claim("c"), make_claim("other", devices=["a/large", "a/small"])],
            CANNOT,
            "",
            id="devices in use",
        ),
        pytest.param(
            [make_claim("c"), make_claim("d", devices=["a/large", "a/small"], node="a")],
            CANNOT,
            ELSEWHERE,
            id="one claim lacks devices, the other has them elsewhere",
        ),
    ],
)
def test_filter(claims: list[Any], on_a: str, on_b: str) -> None:
    names = [claim.name for claim in claims if claim.name != "other"]

    assert world(*claims).statuses(claiming(*names)) == {"a": on_a, "b": on_b}


def test_a_device_that_cannot_be_judged_fails_the_attempt() -> None:
    broken = make_request("r", 'device.attributes["gpu.example.com"].model == "H100"')

    _, verdict = world(make_claim("c", broken)).filter(claiming("c"))

    assert verdict.error is not None
    assert verdict.error.code is Code.Error
    assert "claim default/c: selector #0: CEL runtime error" in verdict.error.message


def test_a_device_in_use_is_not_judged() -> None:
    broken = make_request("r", 'device.attributes["gpu.example.com"].model == "H100"')
    taken = make_claim("d", devices=["a/large", "a/small", "b/small"])

    statuses = world(make_claim("c", broken), taken).statuses(claiming("c"))

    assert statuses == {"a": CANNOT, "b": CANNOT}


def test_all_devices_of_an_incomplete_pool_cannot_be_had() -> None:
    everything = make_claim("c", make_request(allocationMode="All"))

    _, verdict = world(everything, make_slice("s", node="b", pool="p", count=2)).filter(
        claiming("c")
    )

    assert verdict.error is not None
    assert "resource pool gpu.example.com/p is currently being updated" in verdict.error.message


def test_an_invalid_pool_is_the_reason_when_nothing_else_is_there() -> None:
    twins = make_slice("s", "x", "x", node="b", pool="p")

    statuses = world(make_claim("c", make_request(count=2)), twins).statuses(claiming("c"))

    assert statuses == {"a": "", "b": "invalid resource pools were encountered"}


def test_more_than_32_devices_are_an_error() -> None:
    _, verdict = world(make_claim("c", make_request(count=33))).filter(claiming("c"))

    assert verdict.error is not None
    assert "33 exceeds the claim limit of 32" in verdict.error.message


def test_a_search_that_goes_on_too_long_is_ended() -> None:
    devices = [make_device(f"d{i}", index=i) for i in range(20)]
    apart = [{"matchAttribute": "gpu.example.com/none"}]
    claim = make_claim("c", make_request(count=10), constraints=apart)
    made = DeviceWorld(
        DynamicResources(filter_timeout_s=0.00002),
        make_node("a"),
        make_class("gpu"),
        make_slice("s", *devices, node="a"),
        claim,
    )

    _, verdict = made.filter(claiming("c"))

    assert verdict.error is not None
    assert "node a: timed out trying to allocate devices" in verdict.error.message


@pytest.mark.parametrize(
    ("free", "is_ended"),
    [
        pytest.param(4, False, id="all 15 subsets of four devices are tried in time"),
        pytest.param(5, True, id="31 subsets of five devices are too many"),
    ],
)
def test_a_search_for_more_devices_than_are_free_goes_through_all_subsets(
    free: int, is_ended: bool
) -> None:
    made = DeviceWorld(
        DynamicResources(filter_timeout_s=20 / TRIES_PER_SECOND),
        make_node("a"),
        make_class("gpu"),
        make_slice("s", *(f"d{i}" for i in range(free)), node="a"),
        make_claim("c", make_request(count=free + 1)),
    )

    _, verdict = made.filter(claiming("c"))

    assert (verdict.error is not None) is is_ended


# Score


def test_earlier_alternatives_score_higher() -> None:
    options = make_choice("r", make_request("large", LARGE), make_request("any"))
    made = world(make_claim("c", options))
    state, _ = made.filter(claiming("c"))

    raw = made.plugin.score_rows(state, claiming("c"), made.table, ALL)

    assert raw.tolist() == [8, 7]
    assert made.plugin.normalize(raw).tolist() == [100, 87]


# PostFilter


@pytest.mark.parametrize(
    ("users", "message"),
    [
        pytest.param([], "deallocation of ResourceClaim completed", id="no pod uses it"),
        pytest.param(["pod"], "deallocation of ResourceClaim completed", id="only the pod"),
        pytest.param(["other"], "still not schedulable", id="another pod"),
        pytest.param(["pod", "other"], "still not schedulable", id="the pod and another"),
    ],
)
def test_a_claim_that_stands_in_the_way_is_given_back(users: list[str], message: str) -> None:
    reserved = [make_pod(name) for name in users]
    made = world(make_claim("c", devices=["a/large"], node="gone", users=reserved))
    state, _ = made.filter(claiming("c"))

    result, status = made.plugin.post_filter(state, claiming("c"), Diagnosis(made.table))

    assert (status.code, status.message) == (Code.Unschedulable, message)
    assert result.nominated_node_name is None
    assert (made.claim("c").allocation is None) == message.startswith("deallocation")
    assert (not made.claim("c").status.reserved_for) == (users == [] or status.message[0] == "d")


def test_a_write_that_fails_fails_post_filter() -> None:
    made = world(make_claim("c", devices=["a/large"], node="gone"))
    state, _ = made.filter(claiming("c"))
    made.failures = [ApiError("the server is not there")]

    _, status = made.plugin.post_filter(state, claiming("c"), Diagnosis(made.table))

    assert (status.code, status.message) == (Code.Error, "the server is not there")


def test_conformance() -> None:
    made = world(
        make_claim("c"),
        make_claim("d", make_choice("r", make_request("s", LARGE), make_request("t"))),
        make_claim("e", devices=["a/small"], node="a"),
        make_template("t"),
    )
    pods = [make_pod("none"), claiming("c"), claiming("c", "d"), claiming("d", "e")]

    objects = [obj for kind in made.cluster.kinds() for obj in made.cluster.list(kind)]
    check_conformance(DynamicResources, pods, made.table, objects=objects)
    for pod in pods[1:]:
        state = CycleState()
        assert made.plugin.pre_filter(state, pod, made.table).is_success
        check_rows_agree(made.plugin, pod, made.table, state)
