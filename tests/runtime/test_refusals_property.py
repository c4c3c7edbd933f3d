"""What is kept about refused pods equals what is found node by node, whatever happened to rows and nominations."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.config import default_config
from bayplan.framework import CycleState, Diagnosis, Handle, Status
from bayplan.plugins.registry import IN_TREE
from bayplan.queue import PodNominator
from bayplan.runtime import ProfileRuntime, Registry, refusals
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod

(PROFILE,) = default_config().profiles
REGISTRY = Registry(IN_TREE)
NODE_COUNT = 6
HOST = "kubernetes.io/hostname"
APART = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
LONELY: dict[str, Any] = {
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}},
    "labels": {"app": "web"},
}

NODES: list[dict[str, Any]] = [
    {"cpu": "2", "memory": "4Gi", "pods": 3},
    {"cpu": "1", "memory": "8Gi"},
    {"cpu": "3", "taints": ["gpu:NoSchedule"]},
    {"cpu": "2", "unschedulable": True},
    {"cpu": "2", "extended": {"example.com/gpu": 1}, "memory": "2Gi", "pods": 2},
    {"cpu": "2", "labels": {"disk": "ssd"}, "memory": "4Gi"},
]
PODS: list[dict[str, Any]] = [
    {"cpu": "1", "memory": "2Gi"},
    {"cpu": "2", "memory": "1Gi", "tolerations": ["gpu"]},
    {"cpu": "2", "memory": "3Gi"},
    {"cpu": "1500m", "memory": "1Gi"},
    {"cpu": "500m", "host_ports": [80]},
    {"requests": {"example.com/gpu": 1}},
    {"cpu": "1", "node_selector": {"disk": "ssd"}},
    {"cpu": "1", **LONELY},
    {"memory": "6Gi"},
]
PRIORITIES = [0, 5, 10]


class World:
    """Nodes, pods on them and pods nominated to them, all changed by small steps."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.nominator = PodNominator()
        self.there: dict[int, Pod] = {}
        self.runtime = self.make_runtime()
        for number in range(NODE_COUNT):
            self.cache.set_node(make_node(f"n{number}", **NODES[number % len(NODES)]))
            self._flip_pod(100 + number, 0, f"n{number}")

    def make_runtime(self) -> ProfileRuntime:
        handle = Handle(self.cache.table, nominator=self.nominator)
        return ProfileRuntime(PROFILE, REGISTRY, handle)

    def apply(self, step: tuple[str, int, int, int]) -> None:
        what, number, variant, place = step
        if what == "node":
            self._flip_node(f"n{number}", variant % len(NODES))
        elif what == "pod":
            self._flip_pod(number, variant, f"n{place}")
        else:
            self._nominate(number, variant, "" if place >= NODE_COUNT else f"n{place}")

    def _flip_node(self, name: str, variant: int) -> None:
        node, table = make_node(name, **NODES[variant]), self.cache.table
        row = table.row_of.get(name)
        there = None if row is None else table.nodes[row]
        if there is not None and there.allocatable == node.allocatable:
            self.cache.remove_node(name)
        else:
            self.cache.set_node(node)

    def _flip_pod(self, number: int, variant: int, name: str) -> None:
        known = self.there.pop(number, None)
        if known is not None:
            self.cache.remove_pod(known)
            return
        pod = make_pod(f"there-{number}", node_name=name, **PODS[variant])
        self.there[number] = pod
        self.cache.add_pod(pod)

    def _nominate(self, number: int, variant: int, name: str) -> None:
        pod = waiting(variant, PRIORITIES[number % 3], number % 4)
        if name:
            self.nominator.add(pod, name)
        else:
            self.nominator.delete(pod)


def waiting(variant: int, priority: int, number: int) -> Pod:
    name = f"waiting-{variant}-{priority}-{number}"
    return make_pod(name, uid=name, priority=priority, **PODS[variant])


Found = tuple[list[int], list[Status], str, set[str]]


def looked_for(world: World, pod: Pod) -> Found:
    """As a cycle does it: the feasible rows, or what each row says, and what people are told."""
    filtering, table, state = world.runtime.filtering, world.cache.table, CycleState()
    filtering.run_pre_filters(state, pod, table)
    diagnosis = Diagnosis(table, node_count=table.node_count)
    found: Any = np.zeros(0, dtype=np.int64)
    if not filtering.refuse_again(state, pod, table, ALL, diagnosis):
        found = filtering.run_filters(state, pod, table, ALL)
        found = table.numbers(filtering.filter_nominated(state, pod, table, found, diagnosis))
        if not len(found):
            filtering.diagnose(state, pod, table, ALL, diagnosis)
    if len(found):
        return found.tolist(), [], "", set()
    diagnosis.note_rejectors()
    rows = table.numbers(table.live_rows).tolist()
    said = [diagnosis.status_of(row) for row in rows]
    assert [int(status.code) for status in said] == diagnosis.codes()[rows].tolist()
    return [], said, diagnosis.message(), diagnosis.unschedulable_plugins


def one_by_one(world: World, pod: Pod) -> Found:
    """The same with every node judged by itself, on a copy with the nominated pods on it."""
    filtering, table, state = world.make_runtime().filtering, world.cache.table, CycleState()
    filtering.run_pre_filters(state, pod, table)
    diagnosis = Diagnosis(table, node_count=table.node_count)
    rows = table.numbers(table.live_rows).tolist()
    with patch.object(filtering, "demands", lambda *_: None):
        for row in rows:
            status = filtering.filter_with_nominated(state, pod, table.node_at(row))
            diagnosis.alone[row] = status
    feasible = [row for row in rows if diagnosis.alone[row].is_success]
    if feasible:
        return feasible, [], "", set()
    diagnosis.note_rejectors()
    said = [diagnosis.alone[row] for row in rows]
    return [], said, diagnosis.message(), diagnosis.unschedulable_plugins


STEPS = st.tuples(
    st.sampled_from(["node", "pod", "pod", "nominate", "nominate"]),
    st.integers(0, NODE_COUNT + 1),
    st.integers(0, len(PODS) - 1),
    st.integers(0, NODE_COUNT + 1),
)
INCOMING = st.tuples(st.integers(0, len(PODS) - 1), st.sampled_from(PRIORITIES), st.integers(0, 3))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(STEPS, max_size=3), st.lists(INCOMING, min_size=1, max_size=4, unique=True)
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([0, 2, 16]),
    st.sampled_from([2, 4096]),
)
def test_kept_refusals_equal_those_found_node_by_node(
    rounds: list[tuple[list[tuple[str, int, int, int]], list[tuple[int, int, int]]]],
    few_rows: int,
    most_statuses: int,
) -> None:
    world = World()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(refusals, "FEW_ROWS", few_rows)
        patched.setattr(refusals, "MOST_STATUSES", most_statuses)
        for steps, pods in rounds:
            for step in steps:
                world.apply(step)
            world.cache.snapshot.update()
            for variant, priority, number in pods:
                pod = waiting(variant, priority, number)
                assert looked_for(world, pod) == one_by_one(world, pod)


def test_these_pods_are_refused_often_enough_for_the_property_to_say_something() -> None:
    world = World()
    world.cache.snapshot.update()
    roomy = [looked_for(world, waiting(variant, 0, 9)) for variant in range(len(PODS))]
    for number in range(6):
        world.apply(("nominate", number, number % 3, number))
    crowded = [looked_for(world, waiting(variant, 0, 9)) for variant in range(len(PODS))]

    assert sum(bool(found[0]) for found in roomy) >= 5
    assert sum(not found[0] for found in crowded) >= 5
    assert len({found[2] for found in (*roomy, *crowded)}) >= 8, "for various reasons"
