"""Autoscaler: a controller of a simulation that launches nodes for pending pods, and takes nodes away.

It follows the cluster, and when the scheduler has nothing left to try it plans nodes for the pods that were refused: at
the end of Karpenter's batching window, or at the next scan of Cluster Autoscaler. A launched node joins the cluster
after its boot time; then the scheduler binds pods to it as to any other.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..cluster.memory import is_daemon, is_static
from ..cluster.objects import ClusterObject
from ..manifests.timeline import TimelineEvent
from ..planning.pools import NodePool
from ..planning.shadow import ShadowScheduler
from ..sim.autoscaling_record import ScalingReport, UnplaceablePods
from ..sim.report import SimulationReport
from ..sim.settings import Settings
from ..sim.simulation import Simulation
from .autoscaler_settings import AutoscalerOptions
from .group_estimates import GroupPlanner
from .launch_options import LaunchOption, LaunchOptions, LaunchPlan, class_label
from .node_claims import ClaimPlanner
from .pool_nodes import EXPECTED_S, PoolNode, PoolNodes
from .scale_down import Alarm, ScaleDown

MAX_LAUNCHES = 3
"""So many nodes are launched for one pod; if it still waits after that, further ones do not help."""


PRIORITY_CUTOFF = -10
"""Cluster Autoscaler launches nothing for pods of a lower priority."""


class Autoscaler:
    """Adds nodes of `pools` to a simulation. Watches its cluster; `Simulation.let_control` calls the rest."""

    def __init__(
        self,
        simulation: Simulation,
        pools: Sequence[NodePool],
        settings: Settings,
        options: AutoscalerOptions,
    ) -> None:
        self._simulation, self._settings, self._options = simulation, settings, options
        self._pools = pools
        self._random = random.Random(options.seed)
        self._cluster, self._clock = simulation.cluster, simulation.clock
        self.shadow = ShadowScheduler(settings, simulation.clock)
        self.nodes = PoolNodes(pools)
        self._pending: dict[str, Pod] = {}
        """Pods that the scheduler refused, by uid."""
        self._launches: Counter[str] = Counter()
        """Nodes launched for a pod, by uid."""
        self._first_s: float | None = None
        """When something changed that new nodes depend on, first since the last round, and last."""
        self._last_s = 0.0
        self._alarm = Alarm(simulation, self._woken)
        self._unplaceable: dict[str, UnplaceablePods] = {}
        self._refused: set[str] = set()
        self._remarks: dict[str, None] = {}

    # The run

    def begin(self, until_s: float | None) -> None:
        """Take over the cluster as it is."""
        self._cluster.watch(self.shadow)
        everything = (obj for kind in self._cluster.kinds() for obj in self._cluster.list(kind))
        self.choices = LaunchOptions(self._pools, everything, self._settings, self.shadow)
        self._remarks.update(dict.fromkeys(self.choices.remarks))
        if self._options.is_karpenter:
            self.shadow.put(self.choices.make_domains())
        self._down = ScaleDown(self._simulation, self, self._options)
        self._down.begin(until_s)
        self._cluster.watch(self)
        if until_s is not None:
            self._simulation.expect(until_s, _nothing)  # costs are for the whole time

    def idle(self) -> None:
        """Plan for pods that were refused, once their batch is complete; go on with nodes that go."""
        self._down.idle()
        if self._first_s is not None and self._pending:
            self._alarm.set(self._due())

    def conclude(self, report: SimulationReport) -> None:
        """Add nodes and costs to the report."""
        report.scaling = ScalingReport(
            self._options.autoscaler,
            self.nodes.records,
            self._down.evictions,
            unplaceable=list(self._unplaceable.values()),
            remarks=list(self._remarks),
            end_s=report.time_s,
        )

    def _due(self) -> float:
        assert self._first_s is not None, "asked only after a change"
        options = self._options
        if not options.is_karpenter:
            interval = options.scan_interval_s
            return math.ceil(self._first_s / interval) * interval
        return min(self._first_s + options.batch_max_s, self._last_s + options.batch_idle_s)

    def _woken(self) -> None:
        if self._first_s is None or not self._pending:
            return
        if self._due() > self._clock.monotonic():
            self._alarm.set(self._due())
            return
        self._first_s = None
        self._scale_up()

    # The cluster

    def on_add(self, obj: Any) -> None:
        """Follow a pod or a node."""
        if isinstance(obj, Pod):
            self._follow(obj)
        elif isinstance(obj, Node):
            if obj.name not in self.nodes.live:
                node = self.nodes.adopt(obj, self._clock.monotonic())
                if node is not None:
                    self._down.follow(node)
            self._changed()

    def on_update(self, old: Any, new: Any) -> None:
        """Follow a pod that was refused, bound or changed."""
        if isinstance(new, Pod):
            self._follow(new)
        elif isinstance(new, Node):
            self._changed()

    def on_delete(self, obj: Any) -> None:
        """Follow a deletion."""
        if isinstance(obj, Pod):
            self._pending.pop(obj.uid, None)
            self._launches.pop(obj.uid, None)
            self._leave(obj)
        elif isinstance(obj, Node):
            known = self.nodes.live.get(obj.name)
            if known is not None:
                self.nodes.remove(known, self._clock.monotonic(), "deleted")
                self._down.gone(known)
            self._changed()

    def _leave(self, pod: Pod) -> None:
        node = self.nodes.live.get(pod.node_name)
        if node is not None and self.nodes.take_pod(node, pod):
            self._down.changed(node)

    def _arrive(self, pod: Pod) -> None:
        node = self.nodes.live.get(pod.node_name)
        if node is None or is_daemon(pod) or is_static(pod):
            return
        if self.nodes.put_pod(node, pod):
            self._down.changed(node)

    def _follow(self, pod: Pod) -> None:
        if pod.node_name:
            self._pending.pop(pod.uid, None)
            if pod.is_finished:
                self._leave(pod)
            else:
                self._arrive(pod)
            return
        if not is_provisionable(pod) or pod.scheduler_name not in self.shadow.profiles:
            self._pending.pop(pod.uid, None)
            return
        if pod.uid not in self._pending:
            if not self._pending:
                self._first_s = None  # what changed while no pod waited begins no batch
            self._changed()
        self._pending[pod.uid] = pod

    def _changed(self) -> None:
        """Begin a batch, or make it longer."""
        self._last_s = self._clock.monotonic()
        if self._first_s is None:
            self._first_s = self._last_s

    # Scaling up

    def _scale_up(self) -> None:
        pods = self.waiting()
        if not pods:
            return
        plan = self._plan(pods)
        now = self._clock.monotonic()
        self.nodes.expect_pods(plan.existing.values(), now + EXPECTED_S)
        for option, planned in plan.launches:
            self.launch(option)
            for pod in planned:
                self._launches[pod.uid] += 1
        if plan.launches and plan.left:
            self._changed()  # a further round may place them beside the new nodes

    def _plan(self, pods: list[Pod]) -> LaunchPlan:
        tools = self.choices, self.shadow, self.nodes.use
        if not self._options.is_karpenter:
            draws = self._options.expander, self._random
            return GroupPlanner(*tools, *draws, self._settings).plan(pods)
        planner = ClaimPlanner(*tools)
        with self.shadow.trial():
            plan = planner.plan(pods)
        planner.close()
        return plan

    def waiting(self) -> list[Pod]:
        """The pods for which a node may help; those that no pool can run are recorded."""
        self.choices.learn(self._pending.values())
        found = []
        for pod in self._pending.values():
            choice = self.choices.choice(pod)
            if not choice.is_possible:
                self._refuse(pod, choice.reasons)
            elif pod.priority < PRIORITY_CUTOFF and not self._options.is_karpenter:
                continue
            elif self._launches[pod.uid] < MAX_LAUNCHES:
                found.append(pod)
            else:
                self._remarks[
                    f"{pod.key} still waits after {MAX_LAUNCHES} nodes were launched for it"
                ] = None
        return found

    def _refuse(self, pod: Pod, reasons: dict[str, list[str]]) -> None:
        if pod.uid in self._refused:
            return
        self._refused.add(pod.uid)
        label = class_label(pod)
        if label in self._unplaceable:
            self._unplaceable[label].count += 1
        else:
            self._unplaceable[label] = UnplaceablePods(label, 1, reasons)

    def launch(self, option: LaunchOption) -> PoolNode:
        """Launch a node, which joins after its boot time."""
        now = self._clock.monotonic()
        node = self.nodes.launch(option, now, self._is_taken)
        node.expect(now + option.type.boot_s + EXPECTED_S)
        self.shadow.put(option.make_objects(node.name, is_shadow=True))
        self._simulation.expect(now + option.type.boot_s, lambda: self._join(node, option))
        return node

    def _is_taken(self, name: str) -> bool:
        cluster = self._cluster
        return cluster.get("Node", "", name) is not None or cluster.was_deleted("Node", "", name)

    def _join(self, node: PoolNode, option: LaunchOption) -> None:
        """A node has booted."""
        if node.name not in self.nodes.live:
            return
        self.nodes.join(node, self._clock.monotonic())
        objects = tuple(option.make_objects(node.name))
        self._simulation.happen(TimelineEvent(0, add=objects))
        self._down.joined(node)


def _nothing() -> None:
    """Let time pass until now."""


def is_provisionable(pod: Pod) -> bool:
    """Whether the scheduler refused the pod, and a new node could help."""
    said = pod.status.condition("PodScheduled")
    is_refused = said is not None and said.status == "False" and said.reason == "Unschedulable"
    if not is_refused or pod.node_name or pod.is_finished or pod.is_terminating:
        return False
    return not (pod.nominated_node_name or is_daemon(pod) or is_static(pod) or pod.spec.pin)


def first_nodes(pools: Iterable[NodePool], objects: Iterable[ClusterObject]) -> list[ClusterObject]:
    """The nodes that bring each pool to its minimum at the start."""
    known = PoolNodes(pools)
    names = set()
    for obj in objects:
        if isinstance(obj, Node):
            known.adopt(obj, 0.0)
            names.add(obj.name)
    found: list[ClusterObject] = []
    for pool in pools:
        kind = min(pool.types, key=lambda one: (one.price is None, one.price or 0.0))
        for i in range(pool.minimum - known.use.nodes[pool.name]):
            number, name = i, f"{pool.name}-min-{i}"
            while name in names:
                number += 1
                name = f"{pool.name}-min-{number}"
            names.add(name)
            found += kind.make_objects(name, kind.zones[i % len(kind.zones)])
    return found
