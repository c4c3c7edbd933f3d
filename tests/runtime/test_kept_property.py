"""What a long-lived profile answers equals what a fresh one answers, whatever happened to the cluster meanwhile."""

from functools import cache as memoized
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.config import default_config
from bayplan.framework import CycleState, Diagnosis, Handle, Status
from bayplan.plugins.registry import IN_TREE
from bayplan.runtime import ProfileRuntime, Registry, kept
from bayplan.runtime.standing import Standing
from bayplan.runtime.survey import Survey
from bayplan.table import ALL
from bayplan.testing.builders import ObjectLister, make_node, make_object, make_pod

(PROFILE,) = default_config().profiles
REGISTRY = Registry(IN_TREE)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_COUNT = 12


def near(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def even(key: str, action: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": action,
        "labelSelector": selector,
    }


NODES: list[dict[str, Any]] = [
    {"zone": "z1"},
    {"zone": "z2", "images": {"app:1": 700 << 20}, "labels": {"disk": "ssd"}},
    {"zone": "z2", "taints": ["gpu=yes:NoSchedule"], "labels": {"disk": "hdd"}},
    {"zone": "z3", "taints": ["slow:PreferNoSchedule"], "images": {"app:1": 700 << 20}},
    {"zone": "z1", "unschedulable": True, "cpu": "2"},
    {"cpu": "1", "memory": "2Gi", "pods": 2, "extended": {"example.com/gpu": 1}},
    {"zone": "z3", "cpu": "64", "memory": "64Gi", "features": ["F"]},
]
THERE: list[dict[str, Any]] = [
    {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}},
    {"cpu": "500m", "labels": {"app": "db"}, "host_ports": [80]},
    {"labels": {"app": "web"}, "terminating": True},
    {"affinity": {"podAntiAffinity": {REQUIRED: [near("web")]}}, "labels": {"app": "db"}},
    {
        "affinity": {"podAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": near("web")}]}},
        "namespace": "other",
        "labels": {"app": "web"},
    },
    {"requests": {"example.com/gpu": 1}, "memory": "2Gi", "priority": 5},
    {
        "affinity": {
            "podAntiAffinity": {
                REQUIRED: [near("web", HOST, namespaceSelector={"matchLabels": {"team": "x"}})]
            }
        }
    },
]
INCOMING: list[dict[str, Any]] = [
    {},
    {"cpu": "1", "memory": "1Gi", "labels": {"app": "web"}, "images": ["app:1"]},
    {"cpu": "2", "tolerations": ["gpu", "slow"], "host_ports": [80]},
    {"node_selector": {"disk": "ssd"}, "requests": {"example.com/gpu": 1}},
    {
        "labels": {"app": "web"},
        "spread": [even(ZONE, "DoNotSchedule"), even(HOST, "ScheduleAnyway")],
        "node_affinity": {
            PREFERRED: [
                {
                    "weight": 5,
                    "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                }
            ]
        },
    },
    {
        "labels": {"app": "web"},
        "affinity": {
            "podAffinity": {REQUIRED: [near("web", namespaceSelector={})]},
            "podAntiAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": near("db", HOST)}]},
        },
    },
    {"labels": {"app": "db"}, "affinity": {"podAntiAffinity": {REQUIRED: [near("db", HOST)]}}},
    {
        "node_affinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}
                ]
            }
        }
    },
]
# Twins differ in one thing only: an answer kept for one of them must not be given to the other.
INCOMING += [{"host_ports": [80]}, {"host_ports": [81]}]
INCOMING += [{"node_selector": {"disk": disk}} for disk in ("ssd", "hdd")]
INCOMING += [{"tolerations": [key]} for key in ("gpu", "slow")]
INCOMING += [{"images": [image]} for image in ("app:1", "app:2")]
INCOMING += [{"cpu": "3"}, {"memory": "3Gi"}]
SERVICE = make_object("Service", "web", namespace="default", spec={"selector": {"app": "web"}})


@memoized
def node_of(number: int, variant: int) -> Node:
    return make_node(f"n{number}", **NODES[variant])


@memoized
def pod_of(number: int, variant: int) -> Pod:
    return make_pod(f"p{number}", uid=f"u{number}", **THERE[variant])


@memoized
def incoming(variant: int) -> Pod:
    return make_pod(f"new-{variant}", **INCOMING[variant])


class Cluster:
    """A cache fed with small random events, and what a profile needs besides."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.lister = ObjectLister()
        self.pods: dict[int, Pod] = {}
        self.runtime = self.make_runtime()
        for number in range(NODE_COUNT):
            self.cache.set_node(node_of(number, number % len(NODES)))
        for number in range(6):
            self.flip_pod(number, number % len(THERE), number)

    def make_runtime(self) -> ProfileRuntime:
        return ProfileRuntime(PROFILE, REGISTRY, Handle(self.cache.table, lister=self.lister))

    def flip_node(self, number: int, variant: int) -> None:
        """Add or change a node; the same again takes it away."""
        node, table = node_of(number, variant), self.cache.table
        row = table.row_of.get(node.name)
        if row is not None and table.nodes[row] is node:
            self.cache.remove_node(node.name)
        else:
            self.cache.set_node(node)

    def flip_pod(self, number: int, variant: int, place: int) -> None:
        """Add a pod, change it, or take it away."""
        old = self.pods.get(number)
        new = pod_of(number, variant).with_node(f"n{place % NODE_COUNT}")
        if old is None:
            self.cache.assume_pod(new)
            if place % 2:
                self.cache.add_pod(new)
            self.pods[number] = new
        elif self.cache.is_assumed(old):
            self.cache.add_pod(new)
            self.pods[number] = new
        elif variant % 2:
            self.pods[number] = new.with_node(old.node_name)
            self.cache.update_pod(old, self.pods[number])
        else:
            self.cache.remove_pod(self.pods.pop(number))

    def apply(self, step: tuple[str, int, int, int]) -> None:
        what, number, variant, place = step
        if what == "node":
            self.flip_node(number % (NODE_COUNT + 2), variant % len(NODES))
        elif what == "pod":
            self.flip_pod(number, variant % len(THERE), place)
        elif what == "namespace":
            self.cache.set_namespace("default", {"team": "xy"[variant % 2]})
        else:
            self.lister.add(SERVICE)


Answer = tuple[Status, list[int], list[int]]


def answers(runtime: ProfileRuntime, pod: Pod, cluster: Cluster) -> Answer:
    """PreFilter's status, the feasible rows and their totals, as a cycle comes to them."""
    table, state = cluster.cache.table, CycleState()
    pre = runtime.filtering.run_pre_filters(state, pod, table)
    if not pre.status.is_success:
        return pre.status, [], []
    rows: Any = ALL
    if pre.node_names is not None:
        known = sorted(table.row_of[name] for name in pre.node_names if name in table.row_of)
        rows = np.array([row for row in known if table.live[row]], dtype=np.int64)
    rows = table.numbers(runtime.filtering.run_filters(state, pod, table, rows))
    if len(rows) == 0:
        return pre.status, [], []
    scored = ALL if len(rows) == len(table) else rows
    runtime.scoring.run_pre_scores(state, pod, table, scored)
    totals = runtime.scoring.run_scores(state, pod, table, scored)
    each = [
        scored.normalized * scored.weight
        for scored in runtime.scoring.each_score(state, pod, table, rows)
    ]
    assert sum(each).tolist() == totals.tolist(), "the total is the sum of what each plugin gives"
    return pre.status, rows.tolist(), totals.tolist()


def check_leaders(cluster: Cluster, pod: Pod, found: Answer) -> None:
    """Where the best rows are known without the long road, they are those that it comes to."""
    led, (_, rows, totals) = cluster.runtime.leaders.find(pod, cluster.cache.table), found
    if led is not None and led.feasible:
        assert led.feasible == len(rows)
        assert led.best == max(totals)
        best = [row for row, total in zip(rows, totals, strict=True) if total == led.best]
        assert led.leaders.in_order() == best
        assert [row for row in range(len(cluster.cache.table)) if row in led.leaders.rows] == best


def diagnosed(runtime: ProfileRuntime, pod: Pod, cluster: Cluster) -> list[int]:
    """The feasible rows as the account of every plugin's verdict has them."""
    table, state = cluster.cache.table, CycleState()
    pre = runtime.filtering.run_pre_filters(state, pod, table)
    if not pre.status.is_success or pre.node_names is not None:
        return answers(runtime, pod, cluster)[1]
    diagnosis = Diagnosis(table, node_count=table.node_count)
    runtime.filtering.diagnose(state, pod, table, ALL, diagnosis)
    rows = table.numbers(table.live_rows).tolist()
    return [row for row in rows if diagnosis.status_of(row).is_success]


STEPS = st.tuples(
    st.sampled_from(["node", "pod", "pod", "pod", "namespace", "service"]),
    st.integers(0, 13),
    st.integers(0, 6),
    st.integers(0, 11),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(STEPS, min_size=1, max_size=3),
            st.lists(st.integers(0, len(INCOMING) - 1), min_size=1, max_size=4, unique=True),
        ),
        min_size=1,
        max_size=10,
    ),
    st.sampled_from([0, 1, 8]),
    st.sampled_from([2 * NODE_COUNT, 16_000_000]),
)
def test_kept_answers_equal_those_of_a_fresh_profile(
    rounds: list[tuple[list[tuple[str, int, int, int]], list[int]]], few_rows: int, max_cells: int
) -> None:
    cluster = Cluster()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "FEW_ROWS", few_rows)
        patch.setattr(kept, "MAX_CELLS", max_cells)
        for steps, variants in rounds:
            for step in steps:
                cluster.apply(step)
            cluster.cache.snapshot.update()
            for variant in variants:
                pod = incoming(variant)
                fresh = cluster.make_runtime()
                found = answers(cluster.runtime, pod, cluster)
                assert found == answers(fresh, pod, cluster)
                assert found[1] == diagnosed(fresh, pod, cluster)
                check_leaders(cluster, pod, found)


@pytest.mark.parametrize(
    ("variant", "service", "kind"),
    [
        pytest.param(1, False, Standing, id="nobody looks beyond the row"),
        pytest.param(1, True, Survey, id="a service has its pods spread"),
        pytest.param(4, False, Survey, id="the pod wants to be spread"),
        pytest.param(5, False, Survey, id="the pod needs some pods and would avoid others"),
        pytest.param(6, False, Survey, id="the pod avoids its like"),
    ],
)
def test_the_best_rows_are_known_for_the_next_pods_of_a_class(
    variant: int, service: bool, kind: type
) -> None:
    cluster = Cluster()
    for number in list(cluster.pods):
        cluster.cache.remove_pod(cluster.pods.pop(number))
    cluster.flip_pod(0, 0, 0)
    if service:
        cluster.lister.add(SERVICE)
    cluster.cache.snapshot.update()
    pod, leaders, table = incoming(variant), cluster.runtime.leaders, cluster.cache.table

    assert leaders.find(pod, table) is None, "the first may be the only one"
    if kind is Survey:
        assert leaders.find(pod, table) is None, "and so may the first that has to ask"

    found = leaders.find(pod, table)
    assert isinstance(found, kind)
    assert found.feasible
    check_leaders(cluster, pod, answers(cluster.runtime, pod, cluster))


def test_the_cluster_of_these_tests_tells_pods_and_nodes_apart() -> None:
    """Were every pod refused or welcome everywhere, the property above would say little."""
    cluster = Cluster()
    cluster.cache.snapshot.update()

    found = [answers(cluster.runtime, incoming(i), cluster) for i in range(len(INCOMING))]

    assert len({tuple(rows) for _, rows, _ in found}) >= 6
    assert sum(len(set(totals)) > 1 for _, _, totals in found) >= 5
