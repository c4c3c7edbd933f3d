"""DynamicResources from Reserve to PreBind: assumed, written, awaited and returned devices."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.dra import FINALIZER, AllocatedDeviceStatus
from bayplan.errors import ApiError, ConflictError
from bayplan.framework import SKIP, SUCCESS, Code
from bayplan.framework.devices import Devices
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.device_world import DeviceWorld, devices_of
from tests.rig.scenarios import Scenario

PROFILE, DRIVER = "default-scheduler", "gpu.example.com"
CONFLICT = ConflictError("another client was faster")
GONE = ApiError("the server is not there")


def world(*objects: Any, device: Any = "d0", timeout_s: float = 600) -> DeviceWorld:
    """One node with one device."""
    return DeviceWorld(
        DynamicResources(binding_timeout_s=timeout_s),
        make_node("a"),
        make_class("gpu", config=[{"opaque": {"driver": "d", "parameters": {"of": "class"}}}]),
        make_slice("s", device, node="a"),
        *objects,
    )


def is_free(made: DeviceWorld) -> bool:
    return not Devices.of(made.plugin.handle).allocated.in_use


@pytest.fixture(params=[False, True], ids=["a client that answers at once", "a slow client"])
def slow(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_claim_is_written_with_its_devices_and_its_user(slow: bool) -> None:
    made = world(make_claim("c"))
    made.is_slow = slow
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    assert made.plugin.pre_bind_pre_flight(state, pod, "a") == SUCCESS
    assert not is_free(made)
    assert made.claim("c").allocation is None

    assert made.pre_bind(state, pod) == SUCCESS

    claim = made.claim("c")
    assert claim.metadata.finalizers == (FINALIZER,)
    assert devices_of(claim) == ["gpu=a/d0"]
    assert claim.is_reserved_for(pod)
    allocation = claim.allocation
    assert allocation is not None
    assert allocation.allocation_timestamp is not None
    assert allocation.node_selector is not None
    assert allocation.node_selector.matches({}, "a")
    assert not allocation.node_selector.matches({}, "b")
    assert allocation.devices.config == (
        {
            "opaque": {"driver": "d", "parameters": {"of": "class"}},
            "source": "FromClass",
            "requests": ["gpu"],
        },
    )
    assert Devices.of(made.plugin.handle).claims.pending(claim.uid) is None


def test_a_second_pod_is_added_to_the_users(slow: bool) -> None:
    made = world(make_claim("c"))
    first, second = made.add(claiming("c", name="first")), made.add(claiming("c", name="second"))
    made.place(first)
    made.is_slow = slow

    assert made.place(second) == ["gpu=a/d0"]

    users = [user.name for user in made.claim("c").status.reserved_for or ()]
    assert users == ["first", "second"]


def test_what_is_reserved_is_not_there_for_others_until_it_is_unreserved() -> None:
    made = world(make_claim("c"), make_claim("d"))
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    assert made.statuses(claiming("d")) == {"a": "cannot allocate all claims"}

    made.unreserve(state, pod)
    made.unreserve(state, pod)

    assert made.statuses(claiming("d")) == {"a": ""}
    assert is_free(made)


def test_unreserve_takes_the_pod_from_the_users_and_leaves_the_devices() -> None:
    made = world(make_claim("c"))
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    assert made.pre_bind(state, pod) == SUCCESS

    made.unreserve(state, pod)

    assert not made.claim("c").status.reserved_for
    assert devices_of(made.claim("c")) == ["gpu=a/d0"]


def test_what_cannot_be_unreserved_keeps_nothing_else() -> None:
    made = world(make_claim("c", devices=["a/d1"], node="a"), make_claim("d"))
    pod = made.add(claiming("c", "d"))
    state = made.reserve(pod)
    assert made.pre_bind(state, pod) == SUCCESS
    made.failures = [GONE]

    made.unreserve(state, pod)

    assert made.claim("c").is_reserved_for(pod)
    assert not made.claim("d").is_reserved_for(pod)


def test_a_conflict_is_tried_again_from_what_is_there(slow: bool) -> None:
    made = world(make_claim("c"))
    made.is_slow = slow
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.failures = [CONFLICT, None, CONFLICT]

    assert made.pre_bind(state, pod) == SUCCESS
    assert made.claim("c").is_reserved_for(pod)


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        pytest.param([GONE], "the server is not there", id="the server is gone"),
        pytest.param([None, GONE], "the server is not there", id="it goes in between"),
        pytest.param(
            [CONFLICT] * 5,
            "add allocation and reservation to claim default/c: another client was faster",
            id="always too late",
        ),
    ],
)
def test_a_write_that_fails_frees_the_devices(
    failures: list[Exception | None], message: str, slow: bool
) -> None:
    made = world(make_claim("c"))
    made.is_slow = slow
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.failures = list(failures)

    status = made.pre_bind(state, pod)

    assert (status.code, status.message) == (Code.Error, message)
    assert is_free(made)


def changed(what: str) -> Any:
    claim = make_claim("c", devices=["a/d9"] if what == "allocated" else [])
    if what == "leaving":
        meta = replace(claim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        return replace(claim, metadata=meta)
    return claim


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("allocated", "claim default/c got allocated elsewhere in the meantime"),
        ("leaving", "claim default/c got deleted in the meantime"),
    ],
)
def test_a_claim_that_changed_meanwhile_is_left_alone(what: str, message: str) -> None:
    made = world(make_claim("c"))
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.cluster.update(changed(what))
    made.failures = [CONFLICT]

    status = made.pre_bind(state, pod)

    assert (status.code, status.message) == (Code.Error, message)


def test_a_claim_that_lost_its_devices_meanwhile_is_not_used() -> None:
    made = world(make_claim("c", devices=["a/d0"], node="a"))
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.cluster.update(make_claim("c"))
    made.failures = [CONFLICT]

    status = made.pre_bind(state, pod)

    text = "claim default/c got deallocated elsewhere in the meantime"
    assert (status.code, status.message) == (Code.Error, text)


def test_a_claim_that_got_other_devices_meanwhile_is_not_used() -> None:
    made = world(make_claim("c", devices=["a/d0"], node="a"))
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.cluster.update(make_claim("c", devices=["b/d0"], node="b"))
    made.failures = [CONFLICT]

    status = made.pre_bind(state, pod)

    text = "claim default/c got allocated elsewhere in the meantime"
    assert (status.code, status.message) == (Code.Error, text)
    assert not made.claim("c").status.reserved_for


def test_a_pod_without_claims_has_nothing_to_do() -> None:
    made = world()
    state, status = made.pre_filter(make_pod())
    assert status == SKIP

    assert made.plugin.reserve(state, make_pod(), "a") == SUCCESS
    assert made.plugin.pre_bind_pre_flight(state, make_pod(), "a") == SKIP
    assert made.pre_bind(state, make_pod()) == SUCCESS
    made.unreserve(state, make_pod())


def test_a_share_of_a_device_says_what_it_uses() -> None:
    capacity = {"memory": {"value": "10Gi", "requestPolicy": {"default": "4Gi"}}}
    made = world(make_claim("c"), device=make_device("d0", shared=True, capacity=capacity))
    made.place(made.add(claiming("c")))

    allocation = made.claim("c").allocation
    assert allocation is not None
    (result,) = allocation.devices.results or ()
    assert result.consumed_capacity == {"memory": "4Gi"}
    assert result.share_id is not None


def test_config_is_handed_on_to_the_requests_it_is_for() -> None:
    claim = make_claim("c", make_choice("r", make_request("s", "false"), make_request("t")))
    config = [{"requests": [name], "opaque": {"driver": name}} for name in ("r/s", "r/t", "r")]
    devices = replace(claim.spec.devices, config=(*config, {"opaque": {"driver": "all"}}))
    made = world(replace(claim, spec=replace(claim.spec, devices=devices)))
    made.place(made.add(claiming("c")))

    allocation = made.claim("c").allocation
    assert allocation is not None
    of_claim = [c for c in allocation.devices.config or () if c["source"] == "FromClaim"]
    assert [entry["opaque"]["driver"] for entry in of_claim] == ["r/t", "r", "all"]


# Devices that must be made ready first

SLOW = make_device(
    "d0", fields={"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
)


def say(made: DeviceWorld, kind: str) -> None:
    """Report of a driver about the device, once the claim has it."""
    claim = made.claim("c")
    condition = {"type": kind, "status": "True", "reason": "Why", "message": "because"}
    told = AllocatedDeviceStatus(
        driver="gpu.example.com", pool="a", device="d0", conditions=(condition,)
    )
    made.cluster.update(replace(claim, status=replace(claim.status, devices=(told,))))


def test_a_pod_waits_until_its_devices_are_ready() -> None:
    made = world(make_claim("c"), device=SLOW)
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.each_sleep = lambda: say(made, "ready") if made.clock.monotonic() == 15 else None

    assert made.pre_bind(state, pod) == SUCCESS

    assert made.clock.monotonic() == 15
    waited = made.plugin.handle.metrics.device_wait.read()[PROFILE, DRIVER, "success"]
    assert (waited.count, waited.sum) == (1, 15)
    (event,) = made.events
    assert (event.type, event.reason) == ("Normal", "BindingConditionsPending")
    assert event.note == "waiting for binding conditions for device on node a"


@pytest.mark.parametrize(
    ("kind", "message", "result"),
    [
        pytest.param(
            "broken",
            'device binding failed: claim=c, reason=Why, message="because"',
            "failure",
            id="a device that fails",
        ),
        pytest.param(
            "other", "device binding timeout", "timeout", id="a device that takes too long"
        ),
    ],
)
def test_a_pod_does_not_wait_for_ever(kind: str, message: str, result: str) -> None:
    made = world(make_claim("c"), device=SLOW, timeout_s=60)
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.each_sleep = lambda: say(made, kind) if made.clock.monotonic() == 10 else None

    status = made.pre_bind(state, pod)

    assert status.code is Code.Error
    assert status.message.startswith(message)
    assert made.clock.monotonic() <= 65
    allocations = made.plugin.handle.metrics.device_allocations.read()
    assert allocations == {(PROFILE, DRIVER, result): 1}


def test_a_pod_that_waits_for_its_devices_is_preempted_at_once() -> None:
    scene = Scenario(
        make_node("a", cpu="1"),
        make_class("gpu"),
        make_slice("s", SLOW, node="a"),
        make_claim("c"),
    )
    scene.add(claiming("c", name="low", cpu="1", priority=1))
    scene.run()
    assert scene.part_of("low") == "assumed"

    scene.add(make_pod("high", cpu="1", priority=10))
    scene.settle()

    assert scene.part_of("high") == "bound"
    messages = [event.note for event in scene.events_of("low") if event.type == "Warning"]
    assert messages[0] == 'running PreBind plugin "DynamicResources": context canceled'
    claim = scene.cluster.get("ResourceClaim", "default", "c")
    assert not claim.status.reserved_for, "the pod no longer uses it"
    assert scene.clock.monotonic() < 10


def test_a_claim_whose_devices_failed_is_not_available() -> None:
    made = world(make_claim("c"), device=SLOW)
    pod = made.add(claiming("c"))
    state = made.reserve(pod)
    made.each_sleep = lambda: say(made, "broken")
    assert made.pre_bind(state, pod).code is Code.Error
    made.unreserve(state, pod)

    assert made.statuses(pod) == {"a": "resourceclaim not available on the node"}
