"""Devices in other releases: pools that are not complete, shared capacity, configuration, words of faults."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.devices import DeviceCapacity
from bayplan.api.wire.decode import decode_object
from bayplan.plugins.dynamic_resources.device_capacity import CapacityError, uses_of
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

ALL = {"allocationMode": "All"}


def attempt(release: str, *objects: Any) -> tuple[str, Any]:
    """The message of an attempt on the only node, and the allocation of claim `c`."""
    scenario = Scenario(
        make_node("a"),
        make_class("gpu"),
        *objects,
        feature_gates=FeatureGates({}, release=find_release(release)),
    )
    scenario.add(claiming("c"))
    found = scenario.scheduler.schedule_one()
    assert found is not None
    return str(found.message or ""), scenario.cluster.get(
        "ResourceClaim", "default", "c"
    ).allocation


def devices(release: str, *objects: Any) -> str:
    message, allocation = attempt(release, *objects)
    if allocation is None:
        return message
    return " ".join(result.device for result in allocation.devices.results)


NONE = "cannot allocate all claims"
HALF = make_slice("s", "d0", node="a", count=2)
TWICE = make_slice("s", "d0", "d0", node="a")
ELSEWHERE = make_slice("t", "d1", node="b", pool="a", count=2)


@pytest.mark.parametrize(
    ("slices", "request_for", "old", "new"),
    [
        pytest.param([HALF], {}, "d0", NONE, id="a device of an incomplete pool"),
        pytest.param([HALF, ELSEWHERE], {}, "d0", "d0", id="slices of other nodes complete a pool"),
        pytest.param(
            [HALF, ELSEWHERE], ALL, "is currently being updated", "d0", id="but not up to v1.34"
        ),
        pytest.param(
            [TWICE],
            {},
            "pool a is invalid: duplicate device name d0",
            "invalid resource pools were encountered",
            id="a device twice",
        ),
    ],
)
def test_pools_up_to_1_34(
    slices: list[Any], request_for: dict[str, Any], old: str, new: str
) -> None:
    claim = make_claim("c", make_request(**request_for))

    assert old in devices("1.34", claim, *slices)
    assert new in devices("1.35", claim, *slices)


def test_up_to_1_34_an_invalid_pool_after_the_device_that_is_taken_does_no_harm() -> None:
    good = make_slice("g", "d1", node="a", pool="0")
    claim = make_claim("c", make_request())

    assert devices("1.34", claim, good, TWICE) == "d1"


@pytest.mark.parametrize(("release", "expected"), [("1.36", "d1"), ("1.37", NONE)])
def test_all_devices_one_of_which_is_full(release: str, expected: str) -> None:
    policy = {"value": "4", "requestPolicy": {"default": "4"}}
    slices = make_slice(
        "s",
        make_device("d0", shared=True, capacity={"memory": policy}),
        make_device("d1", capacity={"memory": "4"}),
        node="a",
    )
    share = {
        "request": "r",
        "driver": "gpu.example.com",
        "pool": "a",
        "device": "d0",
        "shareID": "11111111-0000-4000-8000-000000000000",
        "consumedCapacity": {"memory": "4"},
    }
    other = make_claim(
        "other", make_request(), status={"allocation": {"devices": {"results": [share]}}}
    )

    found = devices(release, make_claim("c", make_request(**ALL)), slices, other)

    assert expected in found


@pytest.mark.parametrize(("release", "count"), [("1.36", 2), ("1.37", 1)])
def test_a_configuration_for_two_requests(release: str, count: int) -> None:
    config = {"requests": ["r", "s"], "opaque": {"driver": "gpu.example.com", "parameters": {}}}
    plain = make_claim("c", make_request("r"), make_request("s"))
    devices = msgspec.structs.replace(plain.spec.devices, config=(config,))
    claim = msgspec.structs.replace(
        plain, spec=msgspec.structs.replace(plain.spec, devices=devices)
    )

    _, allocation = attempt(release, claim, make_slice("s", "d0", "d1", node="a"))

    assert len(allocation.devices.config) == count


def test_an_expression_that_fails_names_the_device_from_1_37_on() -> None:
    claim = make_claim("c", make_request("r", 'device.attributes["gpu.example.com"].size == 1'))
    slices = make_slice("s", "d0", node="a")

    old, new = devices("1.36", claim, slices), devices("1.37", claim, slices)

    assert old.endswith("claim default/c: selector #0: CEL runtime error: no such key: size")
    assert "selector #0 on device gpu.example.com/a/d0: CEL runtime error: no such key: size" in new
    assert new.endswith("guarding the check with has() for optional fields")


def capacity(**valid: str) -> dict[str, DeviceCapacity]:
    """A capacity of 100 whose requests have to be in a range."""
    tree = {"value": "100", "requestPolicy": {"validRange": valid}}
    made: Any = decode_object(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "allNodes": True,
                "devices": [{"name": "x", "capacity": {"c": tree}}],
            },
        }
    )
    found: dict[str, DeviceCapacity] = made.spec.devices[0].capacity
    return found


@pytest.mark.parametrize(
    ("valid", "asked", "whole", "fractional"),
    [
        pytest.param({"min": "1", "step": "500m"}, "1200m", "2", "1500m", id="a step of a half"),
        pytest.param({"min": "1", "step": "1"}, "2", "2", "2", id="whole numbers"),
        pytest.param({"min": "1", "step": "500m"}, "500m", "1", "1", id="below the least"),
        pytest.param({"min": "1", "max": "2", "step": "500m"}, "2200m", None, None, id="too much"),
        pytest.param({"min": "0", "step": "1024"}, "1", None, None, id="more than there is"),
        pytest.param({"min": "1", "step": "100u"}, "2", "2", "2", id="a step below a thousandth"),
    ],
)
def test_steps_in_thousandths(
    valid: dict[str, str], asked: str, whole: str | None, fractional: str | None
) -> None:
    for is_fractional, expected in ((False, whole), (True, fractional)):
        uses = uses_of(capacity(**valid), {"c": asked}, is_fractional)
        assert (uses and uses["c"].quantity) == expected


def test_a_request_finer_than_thousandths_is_an_error() -> None:
    with pytest.raises(CapacityError, match="request 1200001u is not a multiple of 1m"):
        uses_of(capacity(min="1", step="500m"), {"c": "1200001u"}, True)


def test_the_gate_of_thousandths_is_on_in_1_37() -> None:
    policy = {
        "value": "10",
        "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "500m"}},
    }
    device = make_device("d0", shared=True, capacity={"memory": policy})
    claim = make_claim("c", make_request(capacity={"requests": {"memory": "1200m"}}))
    slices = make_slice("s", device, node="a")

    for release, expected in (("1.36", "2"), ("1.37", "1500m")):
        _, allocation = attempt(release, claim, slices)
        assert allocation.devices.results[0].consumed_capacity == {"memory": expected}


@pytest.mark.parametrize(
    ("release", "expected"), [("1.36", "is currently being updated"), ("1.37", "d0")]
)
def test_an_incomplete_pool_of_another_node_that_has_counters(release: str, expected: str) -> None:
    own = make_slice("s", "d0", node="a")
    elsewhere = make_slice("t", node="b", counters={"c": {"slots": "1"}}, count=2)

    assert expected in devices(release, make_claim("c", make_request(**ALL)), own, elsewhere)


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_counters_in_a_slice_of_its_own(release: str) -> None:
    taking = make_device("d0", counters={"c": {"slots": "2"}})
    little = make_device("d1", counters={"c": {"slots": "1"}})
    slices = make_slice("s", taking, little, node="a", pool="p", count=2)
    counters = make_slice("t", node="b", pool="p", count=2, counters={"c": {"slots": "1"}})

    assert devices(release, make_claim("c", make_request()), slices, counters) == "d1"


@pytest.mark.parametrize(("release", "expected"), [("1.36", NONE), ("1.37", "d0")])
def test_a_further_share_of_a_device_without_capacity(release: str, expected: str) -> None:
    shared = make_device("d0", shared=True, counters={"c": {"slots": "1"}})
    slices = make_slice("s", shared, node="a", count=2)
    counters = make_slice("t", node="a", count=2, counters={"c": {"slots": "1"}})
    share = {
        "request": "r",
        "driver": "gpu.example.com",
        "pool": "a",
        "device": "d0",
        "shareID": "11111111-0000-4000-8000-000000000000",
    }
    status = {"allocation": {"devices": {"results": [share]}}}
    other = make_claim("other", make_request(), status=status)

    assert expected in devices(release, make_claim("c", make_request()), slices, counters, other)
