"""DefaultPreemption: by amounts it decides as node by node, whatever happened to the cluster meanwhile."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.amounts import removing
from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.framework import CycleState, Handle
from bayplan.framework.diagnosis import Diagnosis
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.queue.nominator import PodNominator
from bayplan.runtime.filter_plugins import Filtering
from bayplan.table import ALL
from bayplan.testing.builders import (
    ObjectLister,
    RecordingClient,
    make_node,
    make_object,
    make_pod,
)
from tests.plugins.preemption import equip
from tests.rig.random_examples import examples

NODE_COUNT = 5
PRIORITIES = [-5, 0, 10, 50]
NODES: list[dict[str, Any]] = [
    {"cpu": "4", "memory": "8Gi", "pods": 4},
    {"cpu": "2", "memory": "8Gi"},
    {"cpu": "4", "memory": "4Gi", "taints": ["gpu:NoSchedule"]},
]
PODS: list[dict[str, Any]] = [
    {"cpu": "1", "labels": {"app": "a"}},
    {"cpu": "2", "memory": "2Gi", "labels": {"app": "b"}},
    {"cpu": "500m", "memory": "4Gi"},
    {"cpu": "3", "labels": {"app": "a"}},
]
WANTED: list[dict[str, Any]] = [
    {"cpu": "3", "memory": "2Gi"},
    {"cpu": "4"},
    {"cpu": "2", "memory": "6Gi"},
    {"cpu": "9"},
]


class World:
    """A crowded cluster with budgets and nominated pods, changed by small steps."""

    def __init__(self) -> None:
        self.cache, self.nominator, self.lister = Cache(), PodNominator(), ObjectLister()
        self.there: dict[int, Pod] = {}
        self.lasting = self.make_plugin()
        for number in range(NODE_COUNT):
            self.cache.set_node(make_node(f"n{number}", **NODES[0]))
            for place in range(3):
                self.flip_pod(10 * number + place, number + place, number)

    def make_plugin(self) -> tuple[Filtering, DefaultPreemption]:
        handle = Handle(
            self.cache.table,
            lister=self.lister,
            client=RecordingClient(),
            nominator=self.nominator,
        )
        plugin = DefaultPreemption(min_percentage=100, min_absolute=100)
        return equip(plugin, handle, [TaintToleration(), NodeResourcesFit()]), plugin

    def apply(self, step: tuple[str, int, int, int]) -> None:
        what, number, variant, place = step
        if what == "node":
            self.flip_node(place, variant)
        elif what == "pod":
            self.flip_pod(number, variant, place)
        elif what == "start":
            self.start(number, variant)
        elif what == "nominate":
            self.nominate(number, variant, place)
        else:
            self.change_budget("ab"[number % 2], variant)

    def flip_node(self, number: int, variant: int) -> None:
        node, table = make_node(f"n{number}", **NODES[variant % len(NODES)]), self.cache.table
        row = table.row_of.get(node.name)
        there = None if row is None else table.nodes[row]
        if there is not None and there.allocatable == node.allocatable:
            self.cache.remove_node(node.name)
        else:
            self.cache.set_node(node)

    def flip_pod(self, number: int, variant: int, place: int) -> None:
        known = self.there.pop(number, None)
        if known is not None:
            self.cache.remove_pod(known)
            return
        fields = PODS[variant % len(PODS)]
        priority = PRIORITIES[(number + variant) % len(PRIORITIES)]
        pod = make_pod(f"p{number}", node_name=f"n{place}", priority=priority, **fields)
        self.there[number] = pod
        self.cache.add_pod(pod)

    def start(self, number: int, second: int) -> None:
        """A pod starts: nothing that is counted changes, but it is more important now."""
        old = self.there.get(number)
        if old is not None:
            started = make_pod(start_time=f"2024-01-01T00:00:{second:02d}Z").status
            self.there[number] = old.with_status(started)
            self.cache.update_pod(old, self.there[number])

    def nominate(self, number: int, variant: int, place: int) -> None:
        pod = wanted(variant % len(WANTED), PRIORITIES[number % len(PRIORITIES)], number % 3)
        if place < NODE_COUNT:
            self.nominator.add(pod, f"n{place}")
        else:
            self.nominator.delete(pod)

    def change_budget(self, app: str, allowed: int) -> None:
        budget = make_object(
            "PodDisruptionBudget",
            f"pdb-{app}",
            spec={"selector": {"matchLabels": {"app": app}}},
            status={"disruptionsAllowed": allowed % 3, "disruptedPods": {}},
        )
        if allowed > 4:
            self.lister.remove(budget)
        else:
            self.lister.add(budget)


def wanted(variant: int, priority: int, number: int) -> Pod:
    name = f"wanted-{variant}-{priority}-{number}"
    return make_pod(name, uid=name, priority=priority, **WANTED[variant])


def preempt(made: tuple[Filtering, DefaultPreemption], world: World, pod: Pod) -> Any:
    """The decision, without its effects; None when the pod fits somewhere."""
    filtering, plugin = made
    table, state = world.cache.table, CycleState()
    diagnosis = Diagnosis(table, node_count=table.node_count)
    filtering.run_pre_filters(state, pod, table)
    filtering.diagnose(state, pod, table, ALL, diagnosis)
    if (diagnosis.codes()[table.live] == 0).any():
        return None
    with patch.object(plugin._evictions, "evict"):
        result, status = plugin.post_filter(state, pod, diagnosis)
    account = result.preemption
    assert account is not None
    chosen = account.chosen
    victims = None if chosen is None else ([p.name for p in chosen.pods], chosen.pdb_violations)
    return result.nominated_node_name, status.code, status.reasons, account.reasons, victims


def preempt_one_by_one(world: World, pod: Pod) -> Any:
    filtering, plugin = world.make_plugin()
    with patch.object(filtering, "demands", lambda *_: None):
        return preempt((filtering, plugin), world, pod)


STEPS = st.tuples(
    st.sampled_from(["node", "pod", "pod", "pod", "start", "nominate", "nominate", "budget"]),
    st.integers(0, 45),
    st.integers(0, 9),
    st.integers(0, NODE_COUNT),
)
INCOMING = st.tuples(
    st.integers(0, len(WANTED) - 1), st.sampled_from([0, 10, 50, 100]), st.integers(0, 2)
)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(STEPS, max_size=3), st.lists(INCOMING, min_size=1, max_size=3, unique=True)
        ),
        min_size=1,
        max_size=10,
    ),
    st.sampled_from([1, 2, 512]),
)
def test_amounts_decide_as_node_by_node(
    rounds: list[tuple[list[tuple[str, int, int, int]], list[tuple[int, int, int]]]],
    rows_at_once: int,
) -> None:
    world = World()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(removing, "ROWS_AT_ONCE", rows_at_once)
        for steps, pods in rounds:
            for step in steps:
                world.apply(step)
            for variant, priority, number in pods:
                pod = wanted(variant, priority, number)
                assert preempt(world.lasting, world, pod) == preempt_one_by_one(world, pod)


def test_that_a_pod_started_is_noticed() -> None:
    """The last started of equal victims is removed; the start time arrives after the pod."""
    world = World()
    for number in (*world.there,):
        world.cache.remove_pod(world.there.pop(number))
    for number in range(2, NODE_COUNT):
        world.cache.remove_node(f"n{number}")
    world.flip_pod(1, 3, 0)
    world.flip_pod(9, 3, 1)
    world.start(1, 5)
    assert preempt(world.lasting, world, wanted(0, 100, 0))[-1] == (["p9"], 0), "not started yet"

    world.start(9, 4)

    assert preempt(world.lasting, world, wanted(0, 100, 0))[-1] == (["p1"], 0)
