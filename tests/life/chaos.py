"""Chaos for pods' lives: plugins and a cluster that fail at random, and the facts to compare afterwards."""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable
from typing import Any

from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.errors import ApiError
from bayplan.framework import SKIP, SUCCESS, CycleState, Status, failure, unschedulable, wait
from bayplan.framework.status import pending
from bayplan.scheduler import Scheduler
from bayplan.table import NodeTable
from bayplan.testing.builders import make_pod
from tests.life.lagging import LaggingCluster
from tests.rig.scenarios import DelayedResult, Scripted

EXAMPLES = int(os.environ.get("BAYPLAN_LIFE_EXAMPLES", "0"))
"""The number of histories; without a number a few hundred, always the same ones."""
STEPS = 50

MAX_PODS = 24
NODE_NAMES = ["a", "b", "c", "d"]
DELETED = "2000-01-01T00:00:00Z"
GPU = "example.com/gpu"

SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
]
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "apart"}},
            }
        ]
    }
}
BESIDE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "labelSelector": {"matchLabels": {"app": "apart"}},
            }
        ]
    }
}
WISHES: list[dict[str, Any]] = [
    {},
    {"cpu": "1"},
    {"cpu": "2", "memory": "2Gi"},
    {"cpu": "3"},
    {"cpu": "9"},
    {"cpu": "1", "priority": 10},
    {"cpu": "3", "priority": 10},
    {"cpu": "3", "priority": 20, "spec": {"preemptionPolicy": "Never"}},
    {"cpu": "1", "requests": {GPU: 1}},
    {"cpu": "1", "node_selector": {"disk": "ssd"}},
    {"cpu": "1", "tolerations": ["team=red:NoSchedule"]},
    {"cpu": "1", "gates": ["wait"]},
    {"host_ports": [80]},
    {"cpu": "1", "labels": {"app": "spread"}, "spread": SPREAD},
    {"cpu": "1", "labels": {"app": "apart"}, "affinity": APART},
    {"cpu": "1", "affinity": BESIDE},
]
OFFERS: list[dict[str, Any]] = [
    {"cpu": "8", "zone": "z1"},
    {"cpu": "8", "zone": "z2"},
    {"cpu": "8", "zone": "z1", "labels": {"disk": "ssd"}},
    {"cpu": "8", "zone": "z2", "extended": {GPU: 1}},
    {"cpu": "4"},
    {"cpu": "2"},
    {"cpu": "8", "zone": "z2", "taints": ["team=red:NoSchedule"]},
    {"cpu": "8", "taints": ["team=blue:NoExecute"]},
    {"cpu": "8", "unschedulable": True},
    {"cpu": "8", "pods": 2},
]
USUAL_OFFERS = 5
PLACES = {"active", "backoff", "unschedulable", "gated", "waiting", "assumed", "bound"}


def boom(pod: Pod) -> Status:
    raise ConnectionError("boom")


ANSWERS: dict[str, Any] = {
    "yes": SUCCESS,
    "no": unschedulable("chaos"),
    "not yet": pending("chaos"),
    "error": failure("chaos"),
    "raise": boom,
    "wait": (wait("chaos"), 5),
    "wait long": (wait("chaos"), 40),
    "late yes": DelayedResult(3),
    "late no": DelayedResult(2, unschedulable("chaos")),
    "late raise": DelayedResult(1, ConnectionError("boom")),
    "leave it": SKIP,
    "late": "late",
}
BEHAVIOUR = {
    "reserve": ["yes", "yes", "yes", "yes", "yes", "no", "raise"],
    "permit": ["yes", "wait", "wait", "wait long", "wait long", "no", "not yet", "raise"],
    "pre_bind": ["yes", "late yes", "late yes", "late no", "late raise", "no", "raise"],
    "bind": ["leave it", "leave it", "late", "late", "error", "raise"],
}
POINTS = sorted(BEHAVIOUR)
BINDS = st.sampled_from(["work", "work", "fail", "work but say they failed"])
WISH = st.one_of(st.integers(0, 3), st.integers(0, len(WISHES) - 1))
OFFER = st.one_of(st.integers(0, USUAL_OFFERS - 1), st.integers(0, len(OFFERS) - 1))
APP = st.sampled_from(["", "apart", "spread"])
RED = make_pod(tolerations=["team=red:NoSchedule"])


class Chaos(Scripted):
    """Behaves as generated; checks that reserved pods fit, and that all of them are bound or
    unreserved."""

    name = "Chaos"

    def __init__(self) -> None:
        super().__init__()
        self.held: Counter[str] = Counter()
        """Pods by uid: reserved, and neither bound nor unreserved."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        assert not self.held[pod.uid], f"{pod.name} is reserved twice"
        self.held[pod.uid] += 1
        check_room(self.handle.table, pod)
        return super().reserve(state, pod, node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        assert self.held[pod.uid] == 1, f"{pod.name} is unreserved without being reserved"
        self.held[pod.uid] -= 1

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        assert self.held[pod.uid] == 1, f"{pod.name} is bound without being reserved"
        self.held[pod.uid] -= 1

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        if self.answers.get("bind") == "late":
            return self.bind_late(pod, node_name)
        return super().bind(state, pod, node_name)

    async def bind_late(self, pod: Pod, node_name: str) -> Status:
        await asyncio.sleep(2)
        try:
            self.handle.client.bind(pod, node_name)
        except ApiError as error:
            return failure(error)
        return SUCCESS


def check_room(table: NodeTable, pod: Pod) -> None:
    """Check that the chosen node has the resources that the pod requests."""
    row = table.row_of[pod.node_name]
    used, offered = table.requested.at(row), table.allocatable.at(row)
    for resource in pod.requests:
        assert used[resource] <= offered.get(resource, 0), f"{pod.name}: no {resource} is left"
    assert table.pod_count[row] <= table.max_pods[row], f"{pod.name}: too many pods"


class FaultyBinds(LaggingCluster):
    """Bindings fail, or are reported to have failed."""

    def __init__(self) -> None:
        super().__init__()
        self.binds = "work"
        self.lied_about: set[str] = set()
        """Nodes with a pod whose deletion the scheduler has seen."""

    def bind(self, pod: Pod, node_name: str) -> None:
        if self.binds == "fail":
            raise ApiError("the server is unreachable")
        self.real.bind(pod, node_name)
        if self.binds == "work but say they failed":
            self.lied_about.add(node_name)
            raise ApiError("the answer did not come in time")


def facts(table: NodeTable) -> dict[str, Any]:
    """The contents of the table, by node name."""

    def by_name(values: Any) -> dict[str, Any]:
        listed = values.tolist()
        return {name: listed[row] for name, row in table.row_of.items()}

    rows = table.row_of.items()
    return {
        "nodes": {name: table.nodes[row] for name, row in rows},
        "pods": {name: table.pods[row] for name, row in rows},
        "live": by_name(table.live),
        "node count": table.node_count,
        "allocatable": {name: table.allocatable.at(row) for name, row in rows},
        "requested": {name: table.requested.at(row) for name, row in rows},
        "scoring usage": {name: table.scoring_usage.at(row) for name, row in rows},
        "cpu": by_name(table.requested["cpu"]),
        "gpu": by_name(table.requested[GPU]),
        "pod count": by_name(table.pod_count),
        "max pods": by_name(table.max_pods),
        "unschedulable": by_name(table.unschedulable),
        "taints": {n: table.taints.distinct[i] for n, i in by_name(table.taints.ids).items()},
        "priorities": {bound: by_name(table.priorities.below(bound)) for bound in (1, 11, 21)},
    }


def drive(scheduler: Scheduler, clock: ManualClock, limit_s: float) -> None:
    """Advance the clock until no timer can change anything."""
    until, attempts = clock.monotonic() + limit_s, 0
    while True:
        while scheduler.schedule_one() is not None:
            attempts += 1
            assert attempts < 5_000, "pods are retried without end"
        if scheduler.is_settled:
            return
        due = scheduler.next_timer()
        assert due is not None, "something is under way that no timer ends"
        assert due <= until, f"not settled after {limit_s} s"
        clock.advance(max(due - clock.monotonic(), 0))
        scheduler.run_timers()
