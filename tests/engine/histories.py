"""Histories: a small cluster that changes at random, and two ways to a decision: the engine's, and the reference."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.config.load import parse_config
from bayplan.config.types import Profile
from bayplan.engine import Decision, Engine, Reason
from bayplan.framework import CycleState, Handle, Plugin, Status
from bayplan.framework.diagnosis import Diagnosis
from bayplan.plugins.in_tree import IN_TREE
from bayplan.queue.nominator import PodNominator
from bayplan.runtime import ProfileRuntime, Registry
from bayplan.scheduler.find_nodes import rows_to_judge
from bayplan.table import ALL
from bayplan.testing.builders import ObjectLister, make_node, make_object, make_pod
from bayplan.testing.devices import make_class
from tests.rig.mixed_cluster import (
    GPU,
    NODES,
    PACKED,
    PREFERRED,
    PROFILES,
    REQUIRED,
    SERVICES,
    TEMPLATES,
    even,
    make_storage,
    near,
    on_disk,
    weighted,
)

from .user_plugins import ANYTHING, BY_SPEC, CLOSED, NOISY, STRICT, WHOLE_POD

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
USER_PROFILES: dict[str, Sequence[type[Plugin]]] = {
    "default": (),
    "whole pod": WHOLE_POD,
    "by spec": BY_SPEC,
    "anything": ANYTHING,
    PACKED: (),
    "room": (),
    "gpus": (),
}
SMALL_NODES: list[dict[str, Any]] = [
    {"zone": "z1", "cpu": "2", "memory": "4Gi", "pods": 3},
    {"zone": "z2", "cpu": "2", "memory": "3Gi", "labels": {"disk": "hdd"}},
    {"zone": "z3", "cpu": "1", "memory": "1Gi", "labels": {"disk": "nvme"}},
    {"zone": "z1", "cpu": "3", "labels": {"disk": "ssd"}, "taints": ["slow:PreferNoSchedule"]},
]
KINDS = [*NODES, *SMALL_NODES]


def pinned(node: str) -> dict[str, Any]:
    """Affinity of a pod that names its node, as a DaemonSet's pods do."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}


# Twins differ in one field only: a cached answer of one must not be used for the other.
CLASSES: list[dict[str, Any]] = [
    *TEMPLATES,
    *({"cpu": "1", "annotations": {NOISY: noise}} for noise in ("0", "2")),
    *({"cpu": "1", "annotations": {STRICT: "yes"}, "priority": p} for p in (0, 10)),
    *({"node_selector": {"disk": disk}, "cpu": "1"} for disk in ("ssd", "hdd")),
    *(
        {"node_affinity": {PREFERRED: [{"weight": w, "preference": on_disk(disk)}]}}
        for w, disk in ((3, "ssd"), (80, "hdd"))
    ),
    {"images": ["app:1", "app:2"], "tolerations": [""]},
    *(
        {"labels": {"app": "web"}, "spread": [even(ZONE, "ScheduleAnyway", maxSkew=2)], **more}
        for more in ({"node_affinity": pinned("n1")}, {})
    ),
    {"labels": {"app": "job"}, "spread": [even(ZONE, "DoNotSchedule", "job")], "cpu": "1"},
    {
        "labels": {"app": "web"},
        "affinity": {
            "podAffinity": {PREFERRED: [weighted(50, near("db"))]},
            "podAntiAffinity": {REQUIRED: [near("web", HOST)]},
        },
        "tolerations": ["gpu"],
    },
    {"requests": {GPU: 2}, "labels": {"app": "job"}},
    {"cpu": "100"},
    *({"cpu": "1", "node_affinity": pinned(f"n{number}")} for number in (1, 3, 5)),
    *(
        {"node_affinity": pinned(f"n{number}"), "tolerations": [""], "priority": 10}
        for number in (0, 2)
    ),
    {"cpu": "6", "memory": "20Gi"},
    {"cpu": "3", "memory": "3Gi", "tolerations": ["gpu"], "images": ["app:2"]},
    {"node_selector": {"disk": "none"}},
    {"node_selector": {"disk": "nvme"}, "cpu": "3"},
    {"host_ports": [80, 81], "cpu": "3", "node_selector": {"disk": "hdd"}},
]
BOUND: list[dict[str, Any]] = [
    *(wish for wish in TEMPLATES if "volumes" not in wish.get("spec", {})),
    {"cpu": "1", "annotations": {NOISY: "1"}, "labels": {"app": "db"}},
    {"memory": "1Gi", "annotations": {NOISY: "3"}},
    {"labels": {"app": "web"}, "terminating": True},
]
"""Pods that come to nodes."""


def make_profile(name: str, more: Sequence[type[Plugin]] = ()) -> Profile:
    """The profile of a name in USER_PROFILES, with its plugins, and some `more`."""
    packed = next(p for p in PROFILES["profiles"] if p["schedulerName"] == PACKED)
    tree: dict[str, Any] = dict(packed) if name == PACKED else {}
    plugins = (*USER_PROFILES[name], *more)
    if name == "room":  # no plugin but these
        names = ("PrioritySort", "DefaultBinder", "NodeResourcesFit", "NodeUnschedulable")
        enabled = [{"name": plugin} for plugin in names]
        tree["plugins"] = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    elif name == "gpus":  # an extended resource counts in the score, which devices may stand for
        scored = [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 5}]
        strategy = {"type": "MostAllocated", "resources": scored}
        fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
        tree["pluginConfig"] = [fit]
    elif plugins:
        listed = [{"name": plugin.name, "weight": 2} for plugin in plugins]
        tree["plugins"] = {"multiPoint": {"enabled": listed}}
    kind = {"apiVersion": PROFILES["apiVersion"], "kind": PROFILES["kind"], "profiles": [tree]}
    (profile,) = parse_config(kind, "test").profiles
    return profile


@dataclass(slots=True)
class Outcome:
    """Decision of the reference about one pod."""

    is_general: bool
    """PreFilter leaves all nodes to the filters."""
    totals: dict[int, int] = field(default_factory=dict)
    """By feasible row."""
    statuses: dict[int, Status] = field(default_factory=dict)
    """The status of each row with a node, if no node is feasible."""


class World:
    """A cluster, the engine of one profile that sees it change, and runtimes for the reference."""

    def __init__(
        self, profile: str = "default", nodes: int = 10, plugins: Sequence[type[Plugin]] = ()
    ) -> None:
        self.cache = Cache()
        self.table = self.cache.table
        self.lister = ObjectLister(make_storage())
        self.nominator = PodNominator(on_change=self.cache.nominations_changed)
        self._profile = make_profile(profile, plugins)
        self._registry = Registry([*IN_TREE, *USER_PROFILES[profile], *plugins])
        self.nodes: dict[int, dict[str, Any]] = {}
        self.pods: dict[str, Pod] = {}
        self.nominated: dict[str, Pod] = {}
        self.engine = Engine(self.make_runtime(), self.table)
        self.declined = self.decided = self.refused = self.pinned = 0
        """Counts: left to the reference, decided, found no node, took the node that a pod names."""
        for number in range(nodes):
            self.set_node(number, KINDS[number % len(KINDS)])

    def make_runtime(self) -> ProfileRuntime:
        """A runtime with new plugins, without caches."""
        handle = Handle(self.table, lister=self.lister, nominator=self.nominator)
        return ProfileRuntime(self._profile, self._registry, handle)

    # Changes

    def set_node(self, number: int, wish: dict[str, Any]) -> None:
        """Add a node, or change it."""
        self.nodes[number] = wish
        self.cache.set_node(make_node(f"n{number}", **wish))

    def change_node(self, number: int, **wish: Any) -> None:
        """Change some fields of a node."""
        self.set_node(number, {**self.nodes[number], **wish})

    def remove_node(self, number: int) -> None:
        """Take a node away; its pods stay."""
        del self.nodes[number]
        self.cache.remove_node(f"n{number}")

    def bind(self, name: str, node: int, **wish: Any) -> None:
        """Add a pod to a node."""
        self.pods[name] = make_pod(name, node_name=f"n{node}", **wish)
        self.cache.add_pod(self.pods[name])

    def remove_pod(self, name: str) -> None:
        """Remove a pod from its node."""
        self.cache.remove_pod(self.pods.pop(name))

    def change_pod(self, name: str, **changes: Any) -> None:
        """Change a pod on a node."""
        old = self.pods[name]
        self.pods[name] = old.replace(**changes)
        self.cache.update_pod(old, self.pods[name])

    def nominate(self, name: str, node: int, **wish: Any) -> None:
        """Nominate a waiting pod to a node."""
        self.nominated[name] = make_pod(name, **wish)
        self.nominator.add(self.nominated[name], f"n{node}")

    def end_nomination(self, name: str) -> None:
        """End the nomination of a pod."""
        self.nominator.delete(self.nominated.pop(name))

    def close(self, disk: str) -> None:
        """Add or change an object of the lister that a plugin reads."""
        labels = {"labels": {"disk": disk}}
        self.lister.add(
            make_object("PodDisruptionBudget", CLOSED, namespace="default", metadata=labels)
        )

    # Decisions

    def decide(self, pod: Pod) -> Decision | Reason:
        """Decision of the engine, after a snapshot as the scheduler takes it."""
        self.cache.snapshot.update()
        return self.engine.decide(CycleState(), pod)

    def refer(self, pod: Pod, runtime: ProfileRuntime | None = None) -> Outcome:
        """Results of the plugins, one after the other, without caches."""
        self.cache.snapshot.update()
        runtime = runtime or self.make_runtime()
        table, state = self.table, CycleState()
        filtering, scoring = runtime.filtering, runtime.scoring
        pre = filtering.run_pre_filters(state, pod, table)
        if not pre.status.is_success:
            return Outcome(is_general=False)
        diagnosis = Diagnosis(table, node_count=table.node_count)
        rows = rows_to_judge(pre, diagnosis, table)
        found = filtering.run_filters(state, pod, table, rows)
        found = filtering.filter_nominated(state, pod, table, found, diagnosis)
        rows = table.numbers(found)
        if len(rows):
            scoring.run_pre_scores(state, pod, table, rows)
            totals = scoring.run_scores(state, pod, table, rows)
            by_row = dict(zip(rows.tolist(), totals.tolist(), strict=True))
            return Outcome(pre.node_names is None, by_row)
        if pre.node_names is not None:
            return Outcome(is_general=False)
        filtering.diagnose(state, pod, table, ALL, diagnosis)
        live = np.flatnonzero(table.live).tolist()
        return Outcome(True, statuses={row: diagnosis.status_of(row) for row in live})

    def check(self, pod: Pod, runtime: ProfileRuntime | None = None) -> Outcome:
        """The engine's decision about a pod is the reference's."""
        expected, decision = self.refer(pod, runtime), self.decide(pod)
        if isinstance(decision, Reason):
            self.declined += 1
            is_hard = not expected.is_general or not expected.totals
            assert is_hard or self.is_special(pod), f"{pod.name} is left to the reference"
            return expected
        self.decided += 1
        if pod.spec.pin:
            self.pinned += 1
            found = (decision.best.row, decision.best.feasible, decision.best.ties)
            assert [found] == [(row, 1, 1) for row in expected.totals], "the node that it names"
            return expected
        assert expected.is_general, "PreFilter refuses the pod, or narrows the nodes"
        feasible = np.flatnonzero(decision.ranked.totals() >= 0).tolist()
        assert feasible == list(expected.totals), "feasible rows"
        assert decision.best.feasible == len(feasible)
        if feasible:
            self._check_totals(decision, expected.totals)
        else:
            self.refused += 1
            self._check_refusals(decision, expected.statuses)
        return expected

    def is_special(self, pod: Pod) -> bool:
        """Whether the pod differs from others of its class."""
        status = pod.status
        is_nominated = status.nominated_node_name or self.nominator.node_of(pod)
        return bool(pod.node_name or status.has_resources or is_nominated)

    def _check_totals(self, decision: Decision, expected: dict[int, int]) -> None:
        best, highest = decision.best, max(expected.values())
        leaders = [row for row, total in expected.items() if total == highest]
        assert (best.ties, best.row) == (len(leaders), leaders[0])
        if len(expected) > 1:  # a single node is taken unscored
            totals = {row: int(decision.ranked.totals()[row]) for row in expected}
            assert totals == expected, "totals"
            assert best.total == highest

    def _check_refusals(self, decision: Decision, expected: dict[int, Status]) -> None:
        refusals = decision.refusals
        assert refusals is not None, "no node fits: each row has a status"
        assert {row: refusals.at(row) for row in expected} == expected, "statuses"
        assert refusals.refused == len(expected), "rows without a node say nothing"

    def check_all(self, pods: Iterable[Pod]) -> list[Outcome]:
        """Check many pods; the reference is the same runtime for all of them."""
        runtime = self.make_runtime()
        return [self.check(pod, runtime) for pod in pods]


def make_classes() -> list[Pod]:
    """A pod of each class in play."""
    return [make_pod(f"new-{i}", **wish) for i, wish in enumerate(CLASSES)]


class History:
    """Random changes of a world, the same for the same seed."""

    def __init__(self, world: World, seed: int, nominates: bool = True) -> None:
        self.world = world
        self.nominates = nominates
        self._random = random.Random(seed)
        self._count = 0
        self._objects = {
            "services": SERVICES,
            "classes": [make_class("gpu", resource=GPU)],
            "sets": [
                make_object("ReplicaSet", "rs", spec={"selector": {"matchLabels": {"app": app}}})
                for app in ("web", "db")
            ],
        }
        self._steps = {
            self.set_node: 4,
            self.change_node: 5,
            self.remove_node: 1,
            self.bind: 10,
            self.remove_pod: 5,
            self.change_pod: 4,
            self.bind_many: 1,
            self.change_namespace: 1,
            self.nominate: 3 * nominates,
            self.end_nomination: 2 * nominates,
            self.change_object: 2,
            self.close: 1,
        }

    def step(self) -> None:
        """One change."""
        (change,) = self._random.choices(list(self._steps), list(self._steps.values()))
        change()

    def some(self, pods: Sequence[Pod]) -> list[Pod]:
        """Some of the pods: the views of the others fall behind."""
        return [pod for pod in pods if self._random.random() < 0.35]

    def set_node(self) -> None:
        number = self._random.randrange(len(self.world.nodes) + 2)
        self.world.set_node(number, self._random.choice(KINDS))

    def change_node(self) -> None:
        if not self.world.nodes:
            return
        number = self._random.choice(list(self.world.nodes))
        wish: dict[str, Any] = self._random.choice(
            [
                {"unschedulable": True},
                {"unschedulable": False},
                {"taints": ["slow:PreferNoSchedule"]},
                {"taints": ["gpu=yes:NoSchedule"]},
                {"taints": []},
                {"labels": {"disk": "ssd"}},
                {"labels": {"disk": "hdd"}},
                {"zone": "z2"},
                {"images": {"app:1": 700 << 20}},
                {"images": {"app:2": 300 << 20, "app:3": 9 << 20}},
                {"cpu": "1"},
                {"cpu": "5", "pods": 4},
                {"extended": {GPU: 1}},
            ]
        )
        self.world.change_node(number, **wish)

    def remove_node(self) -> None:
        if len(self.world.nodes) > 3:
            self.world.remove_node(self._random.choice(list(self.world.nodes)))

    def bind(self) -> None:
        self._count += 1
        # Sometimes to a node that is not added yet, or was deleted.
        node = self._random.randrange(max(self.world.nodes, default=0) + 2)
        self.world.bind(f"p{self._count}", node, **self._random.choice(BOUND))

    def bind_many(self) -> None:
        for _ in range(len(self.world.nodes)):
            self.bind()

    def remove_pod(self) -> None:
        for name in self._random.sample(list(self.world.pods), min(2, len(self.world.pods))):
            self.world.remove_pod(name)

    def change_pod(self) -> None:
        if not self.world.pods:
            return
        name = self._random.choice(list(self.world.pods))
        changes: dict[str, Any] = self._random.choice(
            [
                {"annotations": {NOISY: "4"}},
                {"annotations": {}},
                {"labels": {"app": "db"}},
                {"labels": {"app": "web"}},
            ]
        )
        self.world.change_pod(name, **changes)

    def change_namespace(self) -> None:
        team = self._random.choice(["x", "y"])
        self.world.cache.set_namespace(self._random.choice(["default", "other"]), {"team": team})

    def nominate(self) -> None:
        self._count += 1
        node = self._random.randrange(max(self.world.nodes, default=0) + 1)
        wish = self._random.choice(BOUND)
        self.world.nominate(f"q{self._count}", node, **{"priority": 10, **wish})

    def end_nomination(self) -> None:
        if self.world.nominated:
            self.world.end_nomination(self._random.choice(list(self.world.nominated)))

    def change_object(self) -> None:
        obj = self._random.choice(self._random.choice(list(self._objects.values())))
        if self.world.lister.get(obj.kind, obj.namespace, obj.name) is None:
            self.world.lister.add(obj)
        else:
            self.world.lister.remove(obj)

    def close(self) -> None:
        self.world.close(self._random.choice(["ssd", "hdd", "none"]))
