"""Invariants of every run with an autoscaler, on random workloads, pools and changes."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.autoscaling import Autoscaler, AutoscalerOptions, autoscaled
from bayplan.planning import NodePool
from bayplan.planning.pools import NodeBudget
from bayplan.sim import Simulation
from bayplan.sim.autoscaling_record import ScalingReport
from bayplan.sim.settings import Settings
from tests.autoscaling.scaled import make_pool, make_timeline, make_type, make_workload
from tests.rig.random_examples import examples

KEPT = {
    "karpenter": {"karpenter.sh/do-not-disrupt": "true"},
    "cluster-autoscaler": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
}
TAINTS = ("karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler")
HOURS = 3


@st.composite
def make_case(draw: st.DrawFn) -> tuple[list[Any], NodePool, AutoscalerOptions]:
    options = AutoscalerOptions(
        autoscaler=draw(st.sampled_from(["karpenter", "cluster-autoscaler"])),
        expander=draw(st.sampled_from(["least-waste", "price", "random"])),
        seed=draw(st.integers(0, 9)),
    )
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    objects: list[Any] = []
    for name in names:
        kept = KEPT[options.autoscaler] if draw(st.booleans()) and name == "b" else {}
        cpu = draw(st.sampled_from(["300m", "1", "2500m"]))
        objects.append(make_workload(name, draw(st.integers(0, 9)), cpu, annotations=kept))
    if draw(st.booleans()):
        objects.append(make_workload("agent", 0, "100m", kind="DaemonSet"))
    events = [
        (f"{minute}m", {draw(st.sampled_from(names)): draw(st.integers(0, 14))})
        for minute in sorted(draw(st.lists(st.integers(1, 90), max_size=4)))
    ]
    if events:
        objects.append(make_timeline(*events))
    rate = draw(st.sampled_from([0.0, 0.0, 1.0]))
    types = [
        make_type("small", 4, 0.2, zones=("x", "y")),
        make_type("big", 16, 0.7),
        make_type("spot", 8, 0.1, interruption_rate=rate),
    ]
    pool = make_pool(
        *types[: draw(st.integers(1, 3))],
        minimum=draw(st.integers(0, 1)),
        maximum=draw(st.sampled_from([None, 3])),
        budgets=(NodeBudget(draw(st.sampled_from(["1", "50%"]))),),
        consolidate_after_s=draw(st.sampled_from([0.0, 60.0, None])),
        expire_after_s=draw(st.sampled_from([None, 3000.0])),
    )
    return objects, pool, options


class RuleWatch:
    """Notes violations while a simulation runs."""

    def __init__(self, simulation: Simulation, pool: NodePool, kept: dict[str, str]) -> None:
        self._cluster, self._pool, self._kept = simulation.cluster, pool, kept
        self._tainted: set[str] = set()
        self.doomed: set[str] = set()
        """Nodes that were removed with a pod that must not be disrupted."""
        self.begun: list[tuple[int, int]] = []
        """Number of drained nodes when one more was, and of all nodes."""
        simulation.cluster.watch(self)

    def on_add(self, obj: Any) -> None:
        if isinstance(obj, Node):
            assert self._pool.maximum is None or self._size() <= self._pool.maximum

    def on_update(self, old: Any, new: Any) -> None:
        if not isinstance(new, Node) or new.name in self._tainted:
            return
        if any(taint.key in TAINTS for taint in new.taints):
            self._tainted.add(new.name)
            self.begun.append((len(self._tainted), self._size()))

    def on_delete(self, obj: Any) -> None:
        if isinstance(obj, Node):
            self._tainted.discard(obj.name)
            (key,) = self._kept
            for pod in self._cluster.list("Pod"):
                if pod.node_name == obj.name and pod.annotations.get(key) == self._kept[key]:
                    self.doomed.add(obj.name)

    def _size(self) -> int:
        return len(list(self._cluster.list("Node")))


def integral_of_cost(scaling: ScalingReport) -> float:
    """The cost per hour over time, summed up between all moments at which a node was added or removed."""
    ends = {scaling.end_s if n.removed_s is None else n.removed_s for n in scaling.nodes}
    moments = sorted({0.0, scaling.end_s} | {n.launched_s for n in scaling.nodes} | ends)
    total = 0.0
    for start, end in pairwise(moments):
        rate = sum(
            node.price or 0.0
            for node in scaling.nodes
            if node.launched_s <= start and (node.removed_s is None or node.removed_s >= end)
        )
        total += rate * (end - start) / 3600
    return total


def cluster_pods(simulation: Simulation) -> dict[str, str]:
    """The nodes of pods by their names. The shadow may leave out a pod whose node is being removed."""
    return {
        pod.name: pod.node_name
        for pod in simulation.cluster.list("Pod")
        if pod.node_name and not pod.is_terminating
    }


def shadow_pods(simulation: Simulation) -> dict[str, str]:
    """The nodes of pods in the shadow; pods that it has moved count on their present nodes."""
    scaler = simulation._controller
    assert isinstance(scaler, Autoscaler)
    shadow = scaler.shadow
    stored = simulation.cluster.by_name("Pod")
    return {
        pod.name: stored[pod.namespace, pod.name].node_name if pod.uid in shadow._moved else name
        for name in shadow.table.row_of
        for pod in shadow.pods_on(name).values()
        if not pod.is_terminating
    }


@settings(max_examples=examples(10), deadline=None, derandomize=True, phases=(Phase.generate,))
@given(make_case())
def test_rules_of_scaling(case: tuple[list[Any], NodePool, AutoscalerOptions]) -> None:
    objects, pool, options = case
    simulation = autoscaled(Settings(seed=0), objects, [pool], options)
    watch = RuleWatch(simulation, pool, KEPT[options.autoscaler])

    report = simulation.run(until_s=HOURS * 3600.0)

    scaling = report.scaling
    assert scaling is not None
    pods = [pod for pod in simulation.cluster.list("Pod") if not pod.is_terminating]
    for workload in simulation.cluster.list("Deployment"):
        own = [pod for pod in pods if pod.labels["app"] == workload.name]
        assert len(own) == workload.spec.replicas, "no pod is lost"
    assert scaling.cost == pytest.approx(integral_of_cost(scaling))
    if scaling.nodes:
        assert scaling.cost == pytest.approx(scaling.series()[0].mean * HOURS)
    interrupted = {node.name for node in scaling.nodes if node.why == "interrupted"}
    assert watch.doomed <= interrupted, "a pod that must not be disrupted lost its node"
    assert not scaling.neglected, "a pod waits though a new node would take it"
    assert shadow_pods(simulation) == cluster_pods(simulation), "the shadow follows the cluster"
    forced = sum(node.why in ("interrupted", "expired") for node in scaling.nodes)
    if options.is_karpenter and not forced and pool.expire_after_s is None:
        for leaving, nodes in watch.begun:
            assert leaving <= pool.budgets[0].allowed(nodes + len(scaling.nodes)), "budgets"
            assert pool.budgets[0].nodes.endswith("%") or leaving <= 1, "budgets"
    again = autoscaled(Settings(seed=0), objects, [pool], options).run(until_s=HOURS * 3600.0)
    assert report.to_dict() == again.to_dict(), "the same seed gives the same run"
