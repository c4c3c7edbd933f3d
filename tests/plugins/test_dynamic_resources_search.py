"""Which devices a claim gets: the first that will do, in order."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.devices import DeviceCapacity
from bayplan.framework.devices import Devices
from bayplan.plugins.dynamic_resources.claim_plans import ClaimPlan, plan_claim
from bayplan.plugins.dynamic_resources.device_capacity import uses_of
from bayplan.plugins.dynamic_resources.node_answers import first_free
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.dynamic_resources.search import DeviceSearch
from bayplan.testing.builders import ObjectLister, make_node, make_table
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.device_world import DeviceWorld

SAME_NUMA = [{"matchAttribute": "gpu.example.com/numa"}]
OTHER_NUMA = [{"distinctAttribute": "gpu.example.com/numa"}]
CARD = {"card": {"slots": "2"}}
SHARE = {"value": "10", "requestPolicy": {"default": "4", "validValues": ["2", "4", "8"]}}
ANY = "true"


def numa(number: int) -> str:
    return f'device.attributes["gpu.example.com"].numa == {number}'


def place(devices: list[Any], *claims: Any, taken: tuple[str, ...] = ()) -> list[str] | None:
    """The devices of a node that a pod with those claims gets, claim by claim; None if it cannot be placed."""
    others = [make_claim("other", devices=[f"a/{name}" for name in taken])] if taken else []
    slices: list[Any] = [make_slice("s", *devices, node="a")]
    if any("consumesCounters" in device for device in devices):
        slices = [
            make_slice("s", *devices, node="a", count=2),
            make_slice("t", node="a", count=2, counters=CARD),
        ]
    world = DeviceWorld(
        DynamicResources(), make_node("a"), make_class("gpu"), *slices, *claims, *others
    )
    pod = claiming(*(claim.name for claim in claims))
    if world.statuses(pod) != {"a": ""}:
        return None
    return [device.replace("=a/", "=") for device in world.place(pod)]


PLAIN = [make_device(f"d{i}", numa=i % 2) for i in range(4)]
PARTS = [
    make_device("whole", counters={"card": {"slots": "2"}}),
    make_device("left", counters={"card": {"slots": "1"}}),
    make_device("right", counters={"card": {"slots": "1"}}),
]
SICK = [make_device("sick", taints=["ecc=bad:NoExecute"]), make_device("well")]
TOLERANT = [{"key": "ecc", "operator": "Exists"}]
POOLED = [make_device("d0", shared=True, capacity={"memory": SHARE}), make_device("d1")]


@pytest.mark.parametrize(
    ("devices", "claim", "taken", "expected"),
    [
        pytest.param(PLAIN, make_claim("c"), (), ["gpu=d0"], id="the first"),
        pytest.param(PLAIN, make_claim("c"), ("d0", "d1"), ["gpu=d2"], id="the first that is free"),
        pytest.param(
            PLAIN, make_claim("c", make_request(count=2)), ("d1",), ["gpu=d0", "gpu=d2"], id="two"
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request(count=2), constraints=SAME_NUMA),
            (),
            ["gpu=d0", "gpu=d2"],
            id="two with one value",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request(count=2), constraints=SAME_NUMA),
            ("d0",),
            ["gpu=d1", "gpu=d3"],
            id="two with one value, after going back",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request("r"), make_request("s"), constraints=OTHER_NUMA),
            (),
            ["r=d0", "s=d1"],
            id="two with two values",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request("r"), make_request("s", numa(0)), make_request("t", numa(0))),
            (),
            ["r=d1", "s=d0", "t=d2"],
            id="a request makes room for those after it",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request("r", numa(0), allocationMode="All")),
            (),
            ["r=d0", "r=d2"],
            id="all of them",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request("r", numa(0), allocationMode="All")),
            ("d2",),
            None,
            id="all of them, one of which is in use",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request("r", numa(7), allocationMode="All")),
            (),
            None,
            id="all of none",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_choice("r", make_request("s", count=5), make_request("t", numa(1)))),
            (),
            ["r/t=d1"],
            id="the second alternative",
        ),
        pytest.param(
            PLAIN,
            make_claim("c", make_request(adminAccess=True)),
            ("d0",),
            ["gpu=d0"],
            id="to look on, a device may be in use",
        ),
        pytest.param(PARTS, make_claim("c"), ("left",), ["gpu=right"], id="what is left of a card"),
        pytest.param(
            PARTS, make_claim("c", make_request(count=2)), (), ["gpu=left", "gpu=right"], id="parts"
        ),
        pytest.param(PARTS, make_claim("c", make_request(count=3)), (), None, id="too many parts"),
        pytest.param(SICK, make_claim("c"), (), ["gpu=well"], id="no device with a taint"),
        pytest.param(
            SICK,
            make_claim("c", make_request(tolerations=TOLERANT)),
            (),
            ["gpu=sick"],
            id="a taint that is tolerated",
        ),
        pytest.param(
            SICK,
            make_claim("c", make_request(allocationMode="All")),
            (),
            None,
            id="all of them, one of which has a taint",
        ),
        pytest.param(
            POOLED,
            make_claim("c", *(make_request(f"r{i}", capacity={"requests": {"memory": "3"}}) for i in range(2))),
            (),
            ["r0=d0", "r1=d0"],
            id="a device twice",
        ),
        pytest.param(
            POOLED,
            make_claim("c", *(make_request(f"r{i}") for i in range(4))),
            (),
            None,
            id="a device is full in the end",
        ),
        pytest.param(
            POOLED,
            make_claim("c", make_request(capacity={"requests": {"memory": "9"}})),
            (),
            None,
            id="more than can be had at once",
        ),
    ],
)  # fmt: skip
def test_the_devices_of_a_claim(
    devices: list[Any], claim: Any, taken: tuple[str, ...], expected: list[str] | None
) -> None:
    assert place(devices, claim, taken=taken) == expected


def test_two_claims_of_a_pod_do_not_get_the_same_device() -> None:
    picky = make_claim("d", make_request("r", numa(0)))

    assert place(PLAIN, make_claim("c"), picky) == ["gpu=d0", "r=d2"]
    assert place(PLAIN, make_claim("c"), picky, taken=("d2",)) == ["gpu=d1", "r=d0"]


@pytest.mark.parametrize(
    ("capacity", "asked", "expected"),
    [
        pytest.param({"value": "10"}, None, "10", id="without a policy, all of it"),
        pytest.param({"value": "10"}, "3", "3", id="without a policy, what is asked for"),
        pytest.param({"value": "10"}, "11", None, id="more than there is"),
        pytest.param(SHARE, None, "4", id="the default"),
        pytest.param(SHARE, "3", "4", id="the next valid value"),
        pytest.param(SHARE, "9", None, id="beyond the valid values"),
        pytest.param(
            {"value": "100Gi", "requestPolicy": {"validRange": {"min": "5Gi", "step": "5Gi"}}},
            "6Gi",
            "10Gi",
            id="the next step",
        ),
        pytest.param(
            {"value": "100Gi", "requestPolicy": {"validRange": {"min": "5Gi"}}},
            "1Gi",
            "5Gi",
            id="the least there is",
        ),
        pytest.param(
            {"value": "9k", "requestPolicy": {"validRange": {"min": "1k", "step": "1k"}}},
            "1",
            "1k",
            id="the least there is, as it is written",
        ),
        pytest.param(
            {"value": "9", "requestPolicy": {"validRange": {"min": "1", "max": "4"}}},
            "5",
            None,
            id="beyond the range",
        ),
    ],
)
def test_how_much_a_request_uses_up(capacity: Any, asked: str | None, expected: str | None) -> None:
    offered = {"memory": msgspec.convert(capacity, DeviceCapacity)}

    uses = uses_of(offered, None if asked is None else {"memory": asked})

    assert (None if uses is None else uses["memory"].quantity) == expected


def test_a_capacity_that_the_device_does_not_have_cannot_be_asked_for() -> None:
    assert uses_of({}, {"memory": "1"}) is None


def test_a_device_is_not_given_whole_while_a_share_from_before_uses_some_of_it() -> None:
    share = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": "a",
        "device": "d0",
        "shareID": "00000000-0000-4000-8000-000000000000",
        "consumedCapacity": {"memory": "1Gi"},
    }
    other = make_claim("other", status={"allocation": {"devices": {"results": [share]}}})
    offered = [make_device(f"d{i}", capacity={"memory": "80Gi"}) for i in range(2)]
    world = DeviceWorld(
        DynamicResources(),
        make_node("a"),
        make_class("gpu"),
        make_slice("s", *offered, node="a"),
        make_claim("c"),
        other,
    )

    assert world.place(claiming("c")) == ["gpu=a/d1"]


# However the search goes


KINDS = st.sampled_from([0, 1, 2])
REQUEST = st.tuples(st.sampled_from([ANY, numa(0), numa(1)]), st.integers(1, 3))
CLAIMS = st.lists(st.lists(REQUEST, min_size=1, max_size=3), min_size=1, max_size=3)


def planned(devices: Devices, claims: list[list[tuple[str, int]]]) -> list[ClaimPlan]:
    plans = []
    for claim in claims:
        requests = [make_request(f"r{i}", e, count=n) for i, (e, n) in enumerate(claim)]
        asked = make_claim("c", *requests).spec.devices
        plans.append(plan_claim(asked, devices.classes, "c"))
    return plans


@given(kinds=st.lists(KINDS, max_size=8), claims=CLAIMS, taken=st.sets(st.integers(0, 7)))
@settings(max_examples=150, deadline=None)
def test_the_short_way_finds_what_the_search_finds(
    kinds: list[int], claims: list[list[tuple[str, int]]], taken: set[int]
) -> None:
    offered = [make_device(f"d{i}", numa=kind) for i, kind in enumerate(kinds)]
    in_use = [f"a/d{i}" for i in taken if i < len(kinds)]
    objects: list[Any] = [make_class("gpu"), make_slice("s", *offered, node="a")]
    if in_use:
        objects.append(make_claim("other", devices=in_use))
    devices = Devices(make_table(make_node("a")), ObjectLister(objects))
    devices.follow()
    plans = planned(devices, claims)
    keys = ["c"] * len(plans)

    short, full = first_free(devices, 0, plans, keys), DeviceSearch(devices, 0, plans, keys)
    reason = full.run()

    if short is None:
        return  # only the search can decide
    assert (short if isinstance(short, str) else None) == reason
    if not isinstance(short, str):
        found = [[(t.plan.name, t.offer.id) for t in one] for one in short]
        assert found == [[(t.plan.name, t.offer.id) for t in one] for one in full.taken]
        given_out = [device for one in found for _, device in one]
        assert len(set(given_out)) == len(given_out)
        assert not {f"a/{device[2]}" for device in given_out} & set(in_use)
        counts = [sum(count for _, count in claim) for claim in claims]
        assert [len(one) for one in found] == counts
