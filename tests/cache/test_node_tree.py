"""The order of nodes: one of each zone in turn, updated only when a node is added or removed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.node import BETA_REGION, BETA_ZONE, REGION, ZONE, Node
from bayplan.cache import Cache, NodeTree
from bayplan.testing.builders import make_node


def order(cache: Cache) -> str:
    cache.snapshot.update()
    return "".join(cache.table.names[row] for row in cache.snapshot.order)


def cluster(**zones: str) -> Cache:
    cache = Cache()
    for name, zone in zones.items():
        cache.set_node(make_node(name, zone=zone))
    return cache


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param({"a": "x", "b": "x", "c": "x"}, "abc", id="one zone"),
        pytest.param({"a": "x", "b": "x", "c": "y", "d": "y"}, "acbd", id="two zones in turn"),
        pytest.param({"a": "x", "b": "y", "c": "y", "d": "y"}, "abcd", id="a zone runs out"),
        pytest.param(
            {"f": "z", "a": "y", "b": "z", "c": "y", "d": "x"}, "fadbc", id="order of appearance"
        ),
    ],
)
def test_order_is_round_robin_over_zones(zones: dict[str, str], expected: str) -> None:
    assert order(cluster(**zones)) == expected


def test_a_zone_without_nodes_is_removed() -> None:
    cache = cluster(a="x", b="y", c="x")

    cache.remove_node("b")
    assert order(cache) == "ac"
    cache.remove_node("a")
    cache.remove_node("c")
    for name, zone in (("d", "y"), ("e", "x"), ("f", "y")):
        cache.set_node(make_node(name, zone=zone))

    assert order(cache) == "def", "zone y came first this time"


def test_a_changed_zone_takes_effect_when_a_node_is_added_or_removed() -> None:
    cache = cluster(a="x", b="x", c="y")
    assert order(cache) == "acb"

    cache.set_node(make_node("a", zone="y"))
    assert order(cache) == "acb"

    cache.set_node(make_node("d", zone="x"))
    assert order(cache) == "bcda"

    cache.set_node(make_node("b", zone="y"))
    cache.remove_node("a")
    assert order(cache) == "dcb"


def test_order_before_the_next_cycle_is_the_old_one() -> None:
    cache = cluster(a="x", b="x")
    assert order(cache) == "ab"

    cache.set_node(make_node("c", zone="y"))

    assert cache.snapshot.order.tolist() == [0, 1]


def test_a_node_updated_within_its_zone_keeps_its_position() -> None:
    cache = cluster(a="x", b="x")

    cache.set_node(make_node("a", zone="x", cpu="64"))
    cache.set_node(make_node("c", zone="x"))

    assert order(cache) == "abc"


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        pytest.param({}, "", id="neither"),
        pytest.param({ZONE: "z"}, ":\x00:z", id="zone alone"),
        pytest.param({REGION: "r"}, "r:\x00:", id="region alone"),
        pytest.param({REGION: "r", ZONE: "z"}, "r:\x00:z", id="both"),
        pytest.param({ZONE: "z", BETA_ZONE: "old"}, ":\x00:old", id="the beta label wins"),
        pytest.param({ZONE: "z", BETA_ZONE: ""}, "", id="the beta label wins even if empty"),
        pytest.param({REGION: "r", BETA_REGION: "old", ZONE: "z"}, "old:\x00:z", id="beta region"),
    ],
)
def test_zone_key(labels: dict[str, str], key: str) -> None:
    assert make_node("a", labels=labels).zone_key == key


def test_beta_labels_decide_the_order() -> None:
    cache = Cache()
    for name, zone, beta in (("a", "x", "p"), ("b", "x", "q"), ("c", "y", "p")):
        cache.set_node(make_node(name, labels={ZONE: zone, BETA_ZONE: beta}))

    assert order(cache) == "abc"


class ListTree:
    """A reference implementation with plain lists."""

    def __init__(self) -> None:
        self.zones: list[tuple[str, list[str]]] = []

    def add(self, node: Node) -> None:
        for zone, names in self.zones:
            if zone == node.zone_key:
                names.append(node.name)
                return
        self.zones.append((node.zone_key, [node.name]))

    def remove(self, node: Node) -> None:
        for zone, names in self.zones:
            if zone == node.zone_key:
                names.remove(node.name)
        self.zones = [(zone, names) for zone, names in self.zones if names]

    def names(self) -> list[str]:
        longest = max((len(names) for _, names in self.zones), default=0)
        return [names[i] for i in range(longest) for _, names in self.zones if i < len(names)]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), max_size=30))
def test_tree_equals_plain_lists(steps: list[tuple[str, str]]) -> None:
    """Each step adds a node, moves it to another zone, or (same zone again) removes it."""
    tree, lists = NodeTree(), ListTree()
    there: dict[str, Any] = {}
    for name, zone in steps:
        old, new = there.get(name), make_node(name, zone=zone)
        if old is None:
            tree.add(new)
            lists.add(new)
            there[name] = new
        elif old.zone_key == new.zone_key:
            tree.remove(old)
            lists.remove(old)
            del there[name]
        else:
            tree.update(old, new)
            lists.remove(old)
            lists.add(new)
            there[name] = new
        assert tree.names() == lists.names()
