"""The caches of DynamicResources equal a fresh computation after any change."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.framework import CycleState
from bayplan.framework.handle import Handle
from bayplan.plugins.dynamic_resources.node_answers import CachedAnswers
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.table import ALL, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import ObjectLister, make_node
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.random_examples import examples

NAMES = ["a", "b", "c"]
SMALL = 'device.attributes["gpu.example.com"].size == 1'
ZONE = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}
            ]
        }
    ]
}
SAME = [{"matchAttribute": "gpu.example.com/size"}]
WANTED = [
    make_claim("one"),
    make_claim("two", make_request(count=2), constraints=SAME),
    make_claim("choice", make_choice("r", make_request("s", SMALL, count=2), make_request("t"))),
    make_claim("share", make_request("r", "device.allowMultipleAllocations")),
]
PODS = [claiming("one"), claiming("two"), claiming("choice", "one"), claiming("share", "two")]
CAPACITY = {"memory": {"value": "10", "requestPolicy": {"default": "5"}}}


def device(name: str, size: int) -> Any:
    return make_device(name, size=size, shared=size == 3, capacity=CAPACITY if size == 3 else None)


def slice_of(where: str, sizes: list[int], generation: int) -> Any:
    devices = [device(f"d{i}", size) for i, size in enumerate(sizes)]
    common: dict[str, Any] = {"pool": f"pool-{where}", "generation": generation}
    if where == "zone":
        return make_slice("s-zone", *devices, nodeSelector=ZONE, **common)
    if where == "all":
        return make_slice("s-all", *devices, **common)
    return make_slice(f"s-{where}", *devices, node=where, **common)


PLACE = st.sampled_from([*NAMES, "zone", "all"])
STEP = st.one_of(
    st.tuples(st.just("slice"), PLACE, st.lists(st.integers(1, 3), max_size=3)),
    st.tuples(st.just("no slice"), PLACE, st.none()),
    st.tuples(st.just("take"), PLACE, st.integers(0, 2)),
    st.tuples(st.just("give back"), PLACE, st.integers(0, 2)),
    st.tuples(st.just("node"), st.sampled_from(NAMES), st.sampled_from(["z1", "z2", None])),
    st.tuples(st.just("class"), st.just(""), st.booleans()),
)


class World:
    """A cluster that changes."""

    def __init__(self) -> None:
        self.writer = TableWriter(NodeTable())
        for name in NAMES:
            self.writer.set_node(make_node(name, zone="z1"))
        self.lister = ObjectLister([make_class("gpu"), *WANTED])
        self.generation = 0

    def do(self, what: str, where: str, more: Any) -> None:
        self.generation += 1
        match what:
            case "slice":
                self.lister.add(slice_of(where, more, self.generation))
            case "no slice":
                self.lister.remove(slice_of(where, [], 0))
            case "take":
                self.lister.add(make_claim(f"{where}-{more}", devices=[f"pool-{where}/d{more}"]))
            case "give back":
                self.lister.remove(make_claim(f"{where}-{more}"))
            case "node" if more is None:
                if where in self.writer.table.row_of:
                    self.writer.remove_node(where)
            case "node":
                self.writer.set_node(make_node(where, zone=more))
            case "class":
                self.lister.add(make_class("gpu", *([SMALL] if more else [])))

    def plugin(self) -> DynamicResources:
        plugin = DynamicResources()
        plugin.handle = Handle(self.writer.table, lister=self.lister)
        return plugin

    def answers(self, plugin: DynamicResources) -> list[Any]:
        found = []
        for pod in PODS:
            state, table = CycleState(), self.writer.table
            status = plugin.pre_filter(state, pod, table)
            assert status.is_success, status.message
            rows = table.live_rows
            verdict = plugin.filter_rows(state, pod, table, rows)
            scores = plugin.score_rows(state, pod, table, rows)
            told = [str(verdict.status(i)) for i in range(len(verdict))]
            fits = verdict.feasible
            found.append(
                (told, verdict.error, [int(s) for s, f in zip(scores, fits, strict=True) if f])
            )
        return found


@given(steps=st.lists(STEP, max_size=25))
@settings(max_examples=examples(25), deadline=None)
def test_what_is_kept_is_what_would_be_found(steps: list[tuple[str, str, Any]]) -> None:
    world = World()
    kept = world.plugin()
    for step in [("slice", "a", [1, 2]), ("slice", "all", [3]), *steps]:
        world.do(*step)
        assert world.answers(kept) == world.answers(world.plugin()), step


def test_a_claim_for_one_node_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for name in NAMES:
        world.do("slice", name, [1, 1])
    plugin, searched = world.plugin(), []
    world.answers(plugin)
    search = CachedAnswers.search

    def noted(kept: CachedAnswers, row: int, keys: Any) -> Any:
        searched.append(row)
        return search(kept, row, keys)

    monkeypatch.setattr(CachedAnswers, "search", noted)

    world.do("take", "b", 0)
    world.answers(plugin)

    assert set(searched) == {world.writer.table.row_of["b"]}
    assert world.writer.table.numbers(ALL).tolist() == [0, 1, 2]
