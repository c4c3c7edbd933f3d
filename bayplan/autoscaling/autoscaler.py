"""Autoscaler: a controller of a simulation that launches nodes for pending pods, and takes nodes away.

It follows the cluster, and when the scheduler has nothing left to try it plans nodes for the pods that were refused: at
the end of Karpenter's batching window, or at the next scan of Cluster Autoscaler. A launched node joins the cluster
after its boot time; then the scheduler binds pods to it as to any other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..choices import PRIORITY
from ..clock import whole_micros
from ..cluster.memory.absent_owners import stays_with_node
from ..cluster.objects.object_index import ClusterObject
from ..manifests.timeline import TimelineEvent
from ..planning.node_probe import class_label
from ..planning.pools import NodePool
from ..sim.autoscaling_record import NeglectedPod, ScalingReport, UnplaceablePods
from ..sim.report import SimulationReport
from ..sim.settings import Settings
from ..sim.simulation import Simulation
from ..trials import TrialCluster
from .autoscaler_settings import AutoscalerOptions
from .cluster_autoscaler_flags import PRIORITIES
from .group_estimates import GroupPlanner
from .launch_options import (
    PROBE,
    ChoiceKey,
    LaunchOption,
    LaunchOptions,
    LaunchPlan,
    choice_key,
)
from .node_claims import ClaimPacker
from .pool_nodes import EXPECTED_S, PoolNode, PoolNodes, PoolUse
from .scale_down import Alarm, ScaleDown

MAX_UNUSED = 3
"""Launches for one pod of nodes that never ran a pod; after that, further ones do not help."""
LOOK_S = 10.0
"""Time between two rounds of Karpenter for a waiting pod."""
DISRUPTION = ("budgets", "consolidation_policy", "consolidate_after_s")


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
        self._cluster, self._clock = simulation.cluster, simulation.clock
        self.shadow = TrialCluster((), settings, simulation.clock, in_full=False)
        self.nodes = PoolNodes(pools)
        self._pending: dict[str, Pod] = {}
        """Pods that the scheduler refused, by uid."""
        self._launches: defaultdict[str, list[PoolNode]] = defaultdict(list)
        """Nodes launched for a pod, by uid."""
        self._first_s: float | None = None
        """Time when a pod was refused, or its refusal changed: first since the last round, and last."""
        self._last_s = 0.0
        self._round_s = -math.inf
        """Time when nodes were planned last."""
        self._is_stale = False
        """Whether the cluster changed since the last round, so that another one may give another result."""
        self._served_s: dict[str, float] = {}
        """By uid of a waiting pod: the time of its first refusal, or the time when its planned node was due."""
        self._refused_s: dict[str, float] = {}
        """By uid of a waiting pod: the time of its first refusal."""
        self._alarm = Alarm(simulation, self._woken)
        self._unplaceable: dict[str, UnplaceablePods] = {}
        self._refused: set[str] = set()
        self._remarks = dict.fromkeys(unused_settings(options, pools))

    # The run

    def begin(self, until_s: float | None) -> None:
        """Read the present state of the cluster."""
        self._cluster.watch(self.shadow)
        is_karpenter = self._options.is_karpenter
        self.choices = LaunchOptions(
            self._pools,
            self._cluster.objects(),
            self._settings,
            self.shadow,
            respects_wishes=is_karpenter,
        )
        self._remarks.update(dict.fromkeys(self.choices.remarks))
        if is_karpenter:
            self.shadow.put(self.choices.make_domains())
        self._groups = GroupPlanner(
            self.choices, self.shadow, self.nodes, self._options, self._settings
        )
        self._down = ScaleDown(self._simulation, self, self._options)
        self._down.begin(until_s)
        self._cluster.watch(self)
        if until_s is not None:
            self._simulation.expect(until_s, lambda: None)  # costs are for the whole time

    def idle(self) -> None:
        """Plan for refused pods when their batch is complete, and continue the removal of nodes."""
        self._down.idle()
        due_s = self._due_s()
        if due_s is not None:
            self._alarm.set(due_s)

    def conclude(self, report: SimulationReport) -> None:
        """Add nodes and costs to the report."""
        report.scaling = ScalingReport(
            self._options.autoscaler,
            self.nodes.records,
            self._down.evictions,
            unplaceable=list(self._unplaceable.values()),
            remarks=list(self._remarks),
            neglected=self._neglected(),
            end_s=report.time_s,
        )

    def _neglected(self) -> list[NeglectedPod]:
        """The pods that wait at the end, for longer than it takes to plan, though a new node would take them."""
        options, now = self._options, self._clock.monotonic()
        patience_s = 2 * max(LOOK_S, options.batch_max_s, options.flags.scan_interval)
        pods = [
            pod
            for uid, pod in self._pending.items()
            if now - self._served_s[uid] > patience_s and self._is_heeded(pod)
        ]
        return neglected_pods(pods, self.choices, self.shadow, self.nodes.use)

    def _due_s(self) -> float | None:
        """Time when the next round is due; None if no pod waits, or nothing changed since the last one.

        It is one that the clock can show: an alarm at another rings before it, and would be set again and again.
        """
        if not self._pending or (self._first_s is None and not self._is_stale):
            return None
        options = self._options
        if not options.is_karpenter:
            interval = options.flags.scan_interval
            since_s = self._clock.monotonic() if self._first_s is None else self._first_s
            due_s = max(since_s, self._round_s + interval)
            return whole_micros(math.ceil(round(due_s / interval, 6)) * interval)
        if self._first_s is None:
            return max(whole_micros(self._round_s + LOOK_S), self._clock.monotonic())
        due_s = min(self._first_s + options.batch_max_s, self._last_s + options.batch_idle_s)
        return whole_micros(due_s)

    def _woken(self) -> None:
        due_s, now = self._due_s(), self._clock.monotonic()
        if due_s is None:
            return
        if due_s > now:
            self._alarm.set(due_s)
            return
        self._first_s, self._is_stale, self._round_s = None, False, now
        self._scale_up()

    # The cluster

    def on_add(self, obj: Any) -> None:
        """Follow a pod or a node."""
        self._is_stale = True
        if isinstance(obj, Pod):
            self._follow(obj)
        elif isinstance(obj, Node) and obj.name not in self.nodes.live:
            node = self.nodes.adopt(obj, self._clock.monotonic())
            if node is not None:
                self._down.follow(node)

    def on_update(self, old: Any, new: Any) -> None:
        """Follow a pod that was refused, bound or changed."""
        if isinstance(new, Pod):
            self._follow(new)
        else:
            self._is_stale = True

    def on_delete(self, obj: Any) -> None:
        """Follow a deletion."""
        self._is_stale = True
        if isinstance(obj, Pod):
            self._forget(obj)
            self._launches.pop(obj.uid, None)
            self._leave(obj)
        elif isinstance(obj, Node):
            known = self.nodes.live.get(obj.name)
            if known is not None:
                self.nodes.remove(known, self._clock.monotonic(), "deleted")
                self._down.gone(known)

    def _leave(self, pod: Pod) -> None:
        node = self.nodes.live.get(pod.node_name)
        if node is not None and self.nodes.take_pod(node, pod):
            self._down.changed(node)

    def _arrive(self, pod: Pod) -> None:
        node = self.nodes.live.get(pod.node_name)
        if node is None or stays_with_node(pod):
            return
        if self.nodes.put_pod(node, pod):
            self._down.changed(node)

    def _follow(self, pod: Pod) -> None:
        if pod.node_name:
            self._is_stale = True
            self._forget(pod)
            if pod.is_finished:
                self._leave(pod)
            else:
                self._arrive(pod)
            return
        if not is_provisionable(pod) or pod.scheduler_name not in self.shadow.scheduler.profiles:
            self._forget(pod)
            return
        known = self._pending.get(pod.uid)
        if known is None or refusal_of(known) != refusal_of(pod):
            self._refused_now(pod)
        self._pending[pod.uid] = pod

    def _forget(self, pod: Pod) -> None:
        """Note that a pod does not wait for a node any more."""
        self._pending.pop(pod.uid, None)
        self._served_s.pop(pod.uid, None)
        self._refused_s.pop(pod.uid, None)

    def _refused_now(self, pod: Pod) -> None:
        """Begin a batch of pods, or extend the current one."""
        self._last_s = self._clock.monotonic()
        if self._first_s is None or not self._pending:
            self._first_s = self._last_s
        self._served_s.setdefault(pod.uid, self._last_s)
        self._refused_s.setdefault(pod.uid, self._last_s)

    # Scaling up

    def _scale_up(self) -> None:
        pods = self.waiting()
        if not pods:
            return
        plan = self._plan(pods)
        now = self._clock.monotonic()
        self.nodes.expect_pods(plan.existing.values(), now + EXPECTED_S)
        for uid, name in plan.existing.items():
            booting = self.nodes.booting.get(name)
            self._served_s[uid] = now if booting is None else booting.boots_until_s
        for option, planned in plan.launches:
            node = self.launch(option)
            for pod in planned:
                self._launches[pod.uid].append(node)
                self._served_s[pod.uid] = node.boots_until_s
            self._is_stale = True  # a further round may place pods that are left
        if plan.launches:
            self._down.launched()

    def _plan(self, pods: list[Pod]) -> LaunchPlan:
        if not self._options.is_karpenter:
            return self._groups.plan(pods)
        booting = self.nodes.booting_rows(self.shadow.table)
        packer = ClaimPacker(self.choices, self.shadow, self.nodes.use, booting=booting)
        with self.shadow.trial():
            plan = packer.plan(pods)
        packer.close()
        return plan

    def waiting(self) -> list[Pod]:
        """The pods for which a node may help; those that no pool can run are recorded."""
        self.choices.learn(self._pending.values())
        found = []
        for pod in self._pending.values():
            if not self.choices.is_possible(pod):
                self._refuse(pod, self.choices.choice(pod).reasons)
            elif not self._is_heeded(pod):
                self._is_stale |= (
                    pod.priority >= self._options.flags.expendable_pods_priority_cutoff
                )
            elif sum(node.is_unused for node in self._launches[pod.uid]) < MAX_UNUSED:
                found.append(pod)
            else:
                self._remarks[
                    f"{pod.key} still waits after {MAX_UNUSED} nodes were launched for it that ran no pod"
                ] = None
        return found

    def _is_heeded(self, pod: Pod) -> bool:
        """Whether the autoscaler launches nodes for the pod, which depends on its priority and its waiting time."""
        if self._options.is_karpenter:
            return True
        flags = self._options.flags
        waited_s = self._clock.monotonic() - self._refused_s.get(pod.uid, 0.0)
        is_new = waited_s < flags.new_pod_scale_up_delay
        return pod.priority >= flags.expendable_pods_priority_cutoff and not is_new

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
        self._down.follow(node)


def refusal_of(pod: Pod) -> str | None:
    """The message with which the scheduler refused the pod; None if it did not."""
    found = pod.status.condition("PodScheduled")
    if found is None or found.status != "False" or found.reason != "Unschedulable":
        return None
    return found.message or ""


def is_provisionable(pod: Pod) -> bool:
    """Whether the scheduler refused the pod, and a new node could help."""
    if refusal_of(pod) is None or pod.node_name or pod.is_finished or pod.is_terminating:
        return False
    return not (pod.nominated_node_name or stays_with_node(pod) or pod.spec.pin)


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


def neglected_pods(
    pods: Iterable[Pod], options: LaunchOptions, shadow: TrialCluster, use: PoolUse
) -> list[NeglectedPod]:
    """The pods that fit on no existing or booting node, but on a new one that its pool allows. A correct run has none:
    checked with the filters on new nodes, apart from how an autoscaler plans.
    """
    pods = list(pods)
    options.learn(pods)
    open_options = [one for one in options.all if use.allows(one.pool, one.type)]
    answers: dict[ChoiceKey, LaunchOption | None] = {}
    found = []
    for pod in pods:
        key = choice_key(pod)
        if key not in answers:
            able = [one for one in open_options if options.choice(pod).accepts[one.number]]
            answers[key] = _taker(pod, able, shadow)
        taker = answers[key]
        if taker is not None:
            found.append(NeglectedPod(pod.key, taker.pool.name, taker.type.name, taker.zone))
    return found


def _taker(pod: Pod, options: list[LaunchOption], shadow: TrialCluster) -> LaunchOption | None:
    """The first option whose new node can run the pod; None if there is none, or if an existing node can.

    Each is tried alone: a further node could be a further domain of a spread. Of a pool in a zone the largest is tried.
    """
    if not options or (shadow.totals(pod) >= 0).any():
        return None
    largest: dict[tuple[str, str], LaunchOption] = {}
    for one in options:
        key = one.pool.name, one.zone
        if key not in largest or largest[key].size < one.size:
            largest[key] = one
    for one in largest.values():
        name = f"{PROBE}{one.number}"
        objects = one.make_objects(name, is_shadow=True)
        shadow.put(objects)
        is_taken = bool(shadow.totals(pod)[shadow.table.row_of[name]] >= 0)
        shadow.drop(objects)
        if is_taken:
            return one
    return None


def unused_settings(options: AutoscalerOptions, pools: Sequence[NodePool]) -> Iterator[str]:
    """The settings of pools and of Cluster Autoscaler without effect in a run, a sentence for each."""
    if options.is_karpenter:
        names = [pool.name for pool in pools if pool.group_options]
        yield from _without_effect("autoscalingOptions", names, "Karpenter has none")
        return
    reason = "Cluster Autoscaler has none"
    names = [pool.name for pool in pools if _has_set(pool, *DISRUPTION)]
    yield from _without_effect("disruption", names, reason)
    names = [pool.name for pool in pools if _has_set(pool, "expire_after_s")]
    yield from _without_effect("expireAfter", names, reason)
    is_by_priority = PRIORITY in options.flags.expanders
    if not is_by_priority or options.priorities is not None:
        names = [pool.name for pool in pools if pool.weight]
        reason = f"only the expander {PRIORITY} without a ConfigMap goes by it"
        yield from _without_effect("weight", names, reason)
    if options.priorities is None:
        return
    if not is_by_priority:
        expander = options.flags.expander
        yield f"ConfigMap {PRIORITIES}: without effect; the expander is {expander}, not {PRIORITY}"
        return
    groups = [f"{pool.name}/{one.name}" for pool in pools for one in pool.types]
    for _, patterns in options.priorities.rules:
        for pattern in patterns:
            if not any(map(pattern.search, groups)):
                found = ", ".join(groups)
                yield f'ConfigMap {PRIORITIES}: no group matches "{pattern.pattern}"; there are {found}'


def _has_set(pool: NodePool, *names: str) -> bool:
    """Whether one of these fields has another value than by default."""
    return any(getattr(pool, name) != getattr(NodePool, name) for name in names)


def _without_effect(setting: str, pools: Sequence[str], reason: str) -> Iterator[str]:
    if pools:
        yield f"{setting} of {', '.join(pools)}: without effect; {reason}"
