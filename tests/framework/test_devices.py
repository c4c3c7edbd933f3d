"""Devices: pools as nodes see them, those in use, and claims on their way to being written."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.devices import ResourceSlice
from bayplan.framework.devices import Devices, PoolView
from bayplan.table import NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import ObjectLister, make_node
from bayplan.testing.devices import (
    DRIVER,
    make_claim,
    make_class,
    make_device,
    make_slice,
)

NODE = make_node("a", zone="z1")
OTHER = make_node("b", zone="z2")
IN_Z1 = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}
            ]
        }
    ]
}
CARD = {"card": {"slots": "2"}}


class World:
    """A table of two nodes, and a lister of their devices."""

    def __init__(self, *objects: Any) -> None:
        self.writer = TableWriter(NodeTable())
        for node in (NODE, OTHER):
            self.writer.set_node(node)
        self.lister = ObjectLister(objects)
        self.devices = Devices(self.writer.table, self.lister)
        self.follow()

    def follow(self) -> None:
        self.devices.follow()
        self.devices.inventory.follow_nodes()

    def views(self, node: str = "a") -> list[PoolView]:
        return list(self.devices.inventory.at(self.writer.table.row_of[node]).views)

    def seen(self, node: str = "a") -> list[str]:
        """The devices that a node sees, in order, with the state of pools that have none."""
        found = []
        for view in self.views(node):
            state = "incomplete" if view.is_incomplete else "invalid" if view.is_invalid else ""
            found += [state] if state else ["/".join(offer.id[1:]) for offer in view.offers]
        return found


@pytest.mark.parametrize(
    ("slices", "on_a", "on_b"),
    [
        pytest.param([make_slice("s", "x", node="a")], ["a/x"], [], id="of one node"),
        pytest.param([make_slice("s", "x", pool="p")], ["p/x"], ["p/x"], id="of all nodes"),
        pytest.param(
            [make_slice("s", "x", pool="p", nodeSelector=IN_Z1)], ["p/x"], [], id="of a zone"
        ),
        pytest.param(
            [
                make_slice("s2", "y", node="a", pool="p", count=2),
                make_slice("s1", "x", node="a", pool="p", count=2),
            ],
            ["p/x", "p/y"],
            [],
            id="two slices, by name",
        ),
        pytest.param(
            [make_slice("s", "x", node="a", pool="q"), make_slice("t", "y", node="a", pool="p")],
            ["p/y", "q/x"],
            [],
            id="two pools, by name",
        ),
        pytest.param(
            [make_slice("s", "x", node="a", count=2)], ["incomplete"], [], id="a slice is missing"
        ),
        pytest.param(
            [
                make_slice("s", "x", node="a", pool="p", count=2),
                make_slice("t", "y", node="b", pool="p", count=2),
            ],
            ["p/x"],
            ["p/y"],
            id="the other slice is of another node",
        ),
        pytest.param(
            [
                make_slice("s", "x", node="a", pool="p"),
                make_slice("t", "y", node="a", pool="p", generation=2),
            ],
            ["p/y"],
            [],
            id="only the newest generation counts",
        ),
        pytest.param(
            [
                make_slice("s", "x", node="a", pool="p", count=2),
                make_slice("t", "y", node="b", pool="p", generation=2),
            ],
            [],
            ["p/y"],
            id="an old generation with holes is over when another node has a new one",
        ),
        pytest.param(
            [
                make_slice("s", "x", node="a", pool="p"),
                make_slice("t", "y", node="b", pool="p", generation=2),
            ],
            ["p/x"],
            ["p/y"],
            id="a complete generation counts where no newer one is seen",
        ),
        pytest.param(
            [make_slice("s", "x", "x", node="a")], ["invalid"], [], id="two devices of one name"
        ),
        pytest.param(
            [make_slice("s", make_device("x", counters=CARD), node="a")],
            ["invalid"],
            [],
            id="counters that no slice offers",
        ),
        pytest.param(
            [
                make_slice("s", make_device("x", counters=CARD), node="a", pool="p", count=2),
                make_slice("t", node="a", pool="p", count=2, counters=CARD),
            ],
            ["p/x"],
            [],
            id="counters in a slice of their own",
        ),
        pytest.param(
            [
                make_slice("t", node="a", pool="p", count=2, counters=CARD),
            ],
            ["incomplete"],
            ["incomplete"],
            id="counters are seen by all nodes",
        ),
    ],
)
def test_what_nodes_see(slices: list[ResourceSlice], on_a: list[str], on_b: list[str]) -> None:
    world = World(*slices)

    assert (world.seen("a"), world.seen("b")) == (on_a, on_b)


def test_pools_with_binding_conditions_come_last() -> None:
    slow = make_device("x", fields={"bindingConditions": ["ready"]})
    world = World(
        make_slice("s", slow, node="a", pool="a"), make_slice("t", "y", node="a", pool="b")
    )

    assert world.seen() == ["b/y", "a/x"]


def test_what_changes_is_seen() -> None:
    world = World(make_slice("s", "x", node="a"))
    assert (world.seen("a"), world.seen("b")) == (["a/x"], [])

    world.lister.add(make_slice("s", "y", pool="p"))
    world.follow()
    assert (world.seen("a"), world.seen("b")) == (["p/y"], ["p/y"])

    world.lister.add(make_slice("s", "y", pool="p", nodeSelector=IN_Z1))
    world.follow()
    assert (world.seen("a"), world.seen("b")) == (["p/y"], [])

    world.writer.set_node(make_node("b", zone="z1"))
    world.follow()
    assert world.seen("b") == ["p/y"]

    world.lister.remove(make_slice("s"))
    world.follow()
    assert (world.seen("a"), world.seen("b")) == ([], [])


# In use


def test_devices_of_claims_are_in_use_until_they_are_given_back() -> None:
    world = World(make_claim("c", devices=["a/x", "a/y"]))
    allocated = world.devices.allocated
    assert set(allocated.in_use) == {(DRIVER, "a", "x"), (DRIVER, "a", "y")}

    world.lister.add(make_claim("c"))
    world.follow()

    assert not allocated.in_use


def test_admin_access_does_not_use_a_device() -> None:
    result = {"driver": DRIVER, "pool": "a", "device": "x", "adminAccess": True}
    status = {"allocation": {"devices": {"results": [result]}}}
    world = World(make_claim("c", status=status))

    assert (DRIVER, "a", "x") not in world.devices.allocated


def test_shares_of_a_device_add_up() -> None:
    def share(name: str, amount: str) -> Any:
        result = {
            "driver": DRIVER,
            "pool": "a",
            "device": "x",
            "shareID": name,
            "consumedCapacity": {"memory": amount},
        }
        return make_claim(name, status={"allocation": {"devices": {"results": [result]}}})

    world = World(share("c", "10"), share("d", "5"))
    allocated, device = world.devices.allocated, (DRIVER, "a", "x")
    assert allocated.consumed[device]["memory"] == 15 * 10**9
    assert device in allocated
    assert device not in allocated.in_use

    world.lister.remove(share("c", "10"))
    world.follow()
    assert allocated.consumed[device]["memory"] == 5 * 10**9

    world.lister.remove(share("d", "5"))
    world.follow()
    assert device not in allocated


# Claims on their way


def test_what_is_about_to_be_given_is_in_use() -> None:
    claim, given = make_claim("c"), make_claim("c", devices=["a/x"])
    world = World(claim)
    claims, allocated = world.devices.claims, world.devices.allocated
    assert given.allocation is not None

    claims.begin(claim, given.allocation)
    assert claims.pending(claim.uid) is given.allocation
    assert len(allocated.in_use) == 1

    assert claims.end(claim.uid)
    assert not claims.end(claim.uid)
    assert claims.pending(claim.uid) is None
    assert not allocated.in_use


def versioned(claim: Any, version: str) -> Any:
    return replace(claim, metadata=replace(claim.metadata, resource_version=version))


def test_what_was_written_counts_until_the_lister_shows_something_newer() -> None:
    world = World(versioned(make_claim("c"), "5"))
    claims = world.devices.claims
    written = versioned(make_claim("c", devices=["a/x"]), "7")

    claims.wrote(written)
    assert claims.get("default", "c") is written
    assert len(world.devices.allocated.in_use) == 1

    world.lister.add(versioned(make_claim("c"), "6"))
    world.follow()
    assert claims.get("default", "c") is written

    world.lister.add(versioned(make_claim("c"), "8"))
    world.follow()
    assert claims.get("default", "c") is world.lister.get("ResourceClaim", "default", "c")
    assert not world.devices.allocated.in_use


def test_a_new_claim_counts_until_the_lister_has_a_newer_one() -> None:
    world = World()
    claims, made = world.devices.claims, make_claim("c", devices=["a/x"])

    claims.created(made)
    assert claims.get("default", "c") is made

    world.lister.add(made)
    world.lister.remove(made)
    world.follow()
    assert claims.get("default", "c") is None
    assert not world.devices.allocated.in_use


def test_a_claim_that_was_replaced_gives_back_what_the_old_one_had() -> None:
    world = World(make_claim("c", devices=["a/x"]))

    world.lister.add(make_claim("c", metadata={"uid": "another"}))
    world.follow()

    assert not world.devices.allocated.in_use


# Classes


def test_the_newest_class_stands_for_a_resource_then_the_first_by_name() -> None:
    def dated(name: str, stamp: str) -> Any:
        made = make_class(name, resource="example.com/gpu")
        return replace(made, metadata=replace(made.metadata, creation_timestamp=stamp))

    world = World(dated("old", "2026-01-01T00:00:00Z"), dated("b", "2026-02-01T00:00:00Z"))
    world.lister.add(dated("a", "2026-02-01T00:00:00Z"))
    world.follow()
    classes = world.devices.classes

    found = classes.for_resource("example.com/gpu")
    assert found is not None
    assert found.name == "a"
    implied = classes.for_resource("deviceclass.resource.kubernetes.io/old")
    assert implied is not None
    assert implied.name == "old"
    assert classes.backed(["cpu", "example.com/gpu"]) == ["example.com/gpu"]
