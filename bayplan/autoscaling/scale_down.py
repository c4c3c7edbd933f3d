"""Scale down: when nodes are removed: by consolidation, by expiry, or by an interruption of the cloud.

Timers are set only for nodes that may be removed, so a run still ends by itself. Expiry and interruptions do not
prolong a run: they happen while other events are pending, or until the end that the user set.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..api.pod import Pod
from ..api.taints import NO_SCHEDULE, Taint
from ..clock import whole_micros
from ..cluster.memory.absent_owners import successor_of
from ..manifests.timeline import TimelineEvent, TimelineTarget
from ..sim.autoscaling_record import ScalingEviction
from ..sim.simulation import Simulation
from ..trials import TrialCluster
from .autoscaler_settings import AutoscalerOptions
from .blockers import Blockers
from .cluster_autoscaler_flags import ClusterAutoscalerFlags
from .consolidation import Consolidation, RemovalCommand
from .launch_options import LaunchOption, LaunchOptions
from .pool_nodes import UNNEEDED, PoolNode, PoolNodes, is_active
from .relocation import Relocation
from .unneeded import UnneededNodes

PAUSE_S = 60.0
"""Seconds between two searches for unneeded nodes with pods, if the last one found none."""
VALIDATION_DELAY_S = 15.0
"""From a decision of Karpenter to its validation, after which it acts."""
NOTICE_S = 120.0
"""From the notice of an interruption to the end of the node."""
EXPIRED, INTERRUPTED = "expired", "interrupted"
KARPENTER_TAINT = Taint(key="karpenter.sh/disrupted", effect=NO_SCHEDULE)
GROUP_TAINT = Taint(key="ToBeDeletedByClusterAutoscaler", effect=NO_SCHEDULE)


class ScalingTools(Protocol):
    """Tools that an autoscaler has for both directions."""

    nodes: PoolNodes
    choices: LaunchOptions
    shadow: TrialCluster

    def waiting(self) -> list[Pod]:
        """The pods that were refused, and for which a node may help."""

    def launch(self, option: LaunchOption) -> PoolNode:
        """Launch a node."""


class ScaleDown:
    """Removes nodes."""

    def __init__(
        self, simulation: Simulation, tools: ScalingTools, options: AutoscalerOptions
    ) -> None:
        self._simulation, self._options = simulation, options
        self._nodes, self._launch, self._waiting = tools.nodes, tools.launch, tools.waiting
        self._shadow = tools.shadow
        self._clock = simulation.clock
        flags = None if options.is_karpenter else options.flags
        blockers = Blockers(options.is_karpenter, simulation.budgets, options.flags)
        self.drains = NodeDrains(simulation, blockers, flags)
        relocation = Relocation(tools.choices, tools.shadow, tools.nodes)
        self._consolidation = Consolidation(tools.nodes, relocation, blockers, tools.shadow.node)
        self._unneeded = UnneededNodes(tools.nodes, blockers, tools.shadow, options.flags)
        self._due: list[tuple[float, str]] = []
        """Times when nodes may be removed by Karpenter."""
        self._queued: set[str] = set()
        self._is_stale = False
        """Whether nodes changed since the last search that found nothing."""
        self._searches_s = 0.0
        """Time when nodes with pods may be searched again."""
        self._polled_s = 0.0
        """Time when nodes were searched last, or removed; the next search is one or several intervals later."""
        self._decided: tuple[float, RemovalCommand] | None = None
        """Karpenter's decision, and the time of its validation."""
        self._moves = True
        """Whether drains may have something to do."""
        self._alarm = Alarm(simulation, self._woken)
        self._fates: list[tuple[float, int, str, str]] = []
        """Times at which nodes expire or are interrupted."""
        self._until_s: float | None = None

    @property
    def evictions(self) -> list[ScalingEviction]:
        """The pods that were taken off nodes."""
        return self.drains.evictions

    def begin(self, until_s: float | None) -> None:
        """Take over the end of the run."""
        self._until_s = until_s

    # Changes of nodes

    def launched(self) -> None:
        """Nodes were launched."""
        self._unneeded.added_s = self._clock.monotonic()

    def follow(self, node: PoolNode) -> None:
        """Set the timer of an initial or a new node whose end is known."""
        now = self._clock.monotonic()
        if node.pool.expire_after_s is not None and self._options.is_karpenter:
            self._expect_fate(node.record.launched_s + node.pool.expire_after_s, node, EXPIRED)
        if node.type.interruption_rate > 0:
            draws = random.Random(f"{self._options.seed}/{node.name}")
            hours = draws.expovariate(node.type.interruption_rate)
            self._expect_fate(now + hours * 3600, node, INTERRUPTED)
        self.changed(node)

    def changed(self, node: PoolNode) -> None:
        """Handle a pod that was added to the node or removed from it, or a node that joined."""
        node.change(self._clock.monotonic())
        self._moves = self._is_stale = True
        if self._options.is_karpenter:
            self._queue(node)

    def gone(self, node: PoolNode) -> None:
        """A node was removed: budgets may allow to remove others."""
        if self.drains.under_way.pop(node.name, None) is not None:
            self._unneeded.removed_s = self._clock.monotonic()
        self._moves = self._is_stale = True

    def _queue(self, node: PoolNode) -> None:
        if node.eligible_s < math.inf and node.name not in self._queued:
            self._queued.add(node.name)
            heapq.heappush(self._due, (node.eligible_s, node.name))

    # Time

    def idle(self) -> None:
        """Go on with drains, and set the next timer; called when no pod is ready."""
        if self._moves:
            self._moves = False
            self.drains.proceed()
            self.drains.bring_back()
        if self.drains.failed_s > self._unneeded.failed_s:
            self._unneeded.failed_s = self.drains.failed_s
        due = self._due_s()
        if self._decided is not None:
            self._alarm.set(self._decided[0])
        elif due is not None:
            self._alarm.set(self._at_scan(due))
        self._wake_for_fate()

    def _due_s(self) -> float | None:
        """Time when the next search is due; None if it is due after the next change."""
        now = self._clock.monotonic()
        if self._options.is_karpenter:
            due = self._due[0][0] if self._due else None
            if self._is_stale and len(self._nodes.live):
                has_empty = any(node.eligible_s <= now for node in self._nodes.empty())
                search = now if has_empty else max(now, self._searches_s)
                return search if due is None else min(search, due)
            return due
        due = self._unneeded.due_s()
        if self._is_stale and len(self._nodes.live):
            search = max(now, self._searches_s)
            return search if due is None else min(search, max(due, now))
        return due if due is not None and due > now else None

    def _at_scan(self, due_s: float) -> float:
        """The next scan at `due_s` or later, and after now, as the clock can show it."""
        interval, now = self._options.flags.scan_interval, self._clock.monotonic()
        start_s = self._polled_s % interval if self._options.is_karpenter else 0.0
        at_s = whole_micros(math.ceil(round((due_s - start_s) / interval, 6)) * interval + start_s)
        if at_s > now:
            return at_s
        scans = math.floor(round((now - start_s) / interval, 6)) + 1
        return whole_micros(scans * interval + start_s)

    def _woken(self) -> None:
        if self._options.is_karpenter:
            self._consolidate()
        else:
            self._remove_unneeded()

    # Decisions

    def _validate(self) -> bool:
        """Carry out the decisions that still hold; True if Karpenter is free to search."""
        if self._decided is None:
            return True
        at_s, command = self._decided
        now, leaving = self._clock.monotonic(), set(self.drains.under_way)
        if now < at_s:
            return False
        self._decided = None
        holds = self._consolidation.confirmed(
            command, now, self._clock.now(), leaving, self._waiting()
        )
        if holds is not None:
            self._execute(holds)
            self._polled_s = now
        return False

    def _consolidate(self) -> None:
        if not self._validate():
            return
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, name = heapq.heappop(self._due)
            self._queued.discard(name)
            node = self._nodes.live.get(name)
            if node is not None and now < node.eligible_s < math.inf:
                self._queue(node)
            else:
                self._is_stale = True
        if not self._is_stale:
            return
        leaving, moment = set(self.drains.under_way), self._clock.now()
        command = self._consolidation.empty(now, moment, leaving)
        if command is None and now >= self._searches_s:
            command = self._consolidation.underutilized(now, moment, leaving, self._waiting())
            self._searches_s = now if command is not None else now + PAUSE_S
            self._is_stale = command is not None or self._is_held_back()
        if command is not None:
            self._decided = whole_micros(now + VALIDATION_DELAY_S), command

    def _is_held_back(self) -> bool:
        """Whether a budget with a schedule applies now, so that more nodes may be removed later."""
        now = self._clock.now()
        return self._until_s is not None and any(
            budget.schedule and is_active(budget, now)
            for node in self._nodes.live.values()
            for budget in node.pool.budgets
        )

    def _remove_unneeded(self) -> None:
        now, leaving = self._clock.monotonic(), set(self.drains.under_way)
        if self._is_stale and now >= self._searches_s:
            self._unneeded.update(now, leaving)
            self._searches_s, self._is_stale = now + PAUSE_S, False
        elif self._unneeded.commands(now, leaving):
            self._unneeded.update(now, leaving)  # some may be needed again
        for command in self._unneeded.commands(now, leaving):
            self._execute(command)

    def _execute(self, command: RemovalCommand) -> None:
        new = [self._launch(option) for option, _ in command.plan.launches]
        self._move_pods(command, new)
        for node in command.nodes:
            self.drains.begin(node, command.why, new)
        self._moves = True

    def _move_pods(self, command: RemovalCommand, new: list[PoolNode]) -> None:
        """Keep the places of pods that are evicted later, when the new nodes have joined."""
        if not new:
            return
        places = dict(command.plan.existing)
        for node, (_, pods) in zip(new, command.plan.launches, strict=True):
            places |= {pod.uid: node.name for pod in pods}
        for node in command.nodes:
            for pod in list(self._shadow.pods_on(node.name).values()):
                if pod.uid in places:
                    self._shadow.move(pod, places[pod.uid])
        joined_s = max(node.expected_until_s for node in new)
        self._nodes.expect_pods(command.plan.existing.values(), joined_s)

    # Expiry and interruptions

    def _expect_fate(self, at_s: float, node: PoolNode, why: str) -> None:
        heapq.heappush(self._fates, (at_s, len(self._fates), node.name, why))

    def _wake_for_fate(self) -> None:
        """Set a timer for the next end of a node, if other events follow."""
        while self._fates and self._fates[0][2] not in self._nodes.live:
            heapq.heappop(self._fates)
        following = self._simulation.scheduler.timers.next()
        if self._fates and following is not None and self._fates[0][0] <= following:
            at_s, _, name, why = heapq.heappop(self._fates)
            self._simulation.expect(at_s, self._fate(name, why))

    def _fate(self, name: str, why: str) -> Callable[[], None]:
        def happen() -> None:
            node = self._nodes.live.get(name)
            if node is None or not node.is_joined:
                return
            self.drains.begin(node, why)
            self._moves = True
            if why == INTERRUPTED:
                now = self._clock.monotonic()
                self._simulation.expect(now + NOTICE_S, lambda: self._end(node))

        return happen

    def _end(self, node: PoolNode) -> None:
        self.drains.finish(node)
        self._moves = True


class Alarm:
    """Calls `ring` once in virtual time; a later time than the one it is set to changes nothing."""

    def __init__(self, simulation: Simulation, ring: Callable[[], None]) -> None:
        self._simulation, self._ring = simulation, ring
        self._at_s: float | None = None

    def set(self, at_s: float) -> None:
        """Ring at this time, unless it rings before."""
        if self._at_s is not None and self._at_s <= at_s:
            return
        self._at_s = at_s
        self._simulation.expect(at_s, lambda: self._reached(at_s))

    def _reached(self, at_s: float) -> None:
        if self._at_s == at_s:  # else replaced by an earlier one
            self._at_s = None
            self._ring()


@dataclass(slots=True)
class NodeDrain:
    """A node that is drained, and why."""

    node: PoolNode
    why: str
    waits_for: list[PoolNode] = field(default_factory=list)
    """New nodes that must have joined before the first pod is evicted."""

    @property
    def is_ready(self) -> bool:
        """Whether its pods may be evicted."""
        return all(one.is_joined or one.record.removed_s is not None for one in self.waits_for)


class NodeDrains:
    """The nodes that are drained.

    A draining node has a taint that keeps pods away. Its pods are evicted as far as their disruption budgets and
    annotations allow, again after every change of the cluster, and it is removed when no pod is left. An interrupted
    node is removed at its time, whatever is on it. Cluster Autoscaler limits the grace period of pods, and gives a node
    up that has pods which could not be evicted for some time.
    """

    def __init__(
        self, simulation: Simulation, blockers: Blockers, flags: ClusterAutoscalerFlags | None
    ) -> None:
        """Without `flags`, taint and limits are those of Karpenter."""
        self._simulation, self._cluster = simulation, simulation.cluster
        self._blockers, self._flags = blockers, flags
        self._taint = KARPENTER_TAINT if flags is None else GROUP_TAINT
        self.failed_s = -math.inf
        """Time when a node was given up last."""
        self.under_way: dict[str, NodeDrain] = {}
        self.evictions: list[ScalingEviction] = []
        self._lost: list[Pod] = []

    def __contains__(self, name: str) -> bool:
        return name in self.under_way

    def begin(self, node: PoolNode, why: str, waits_for: list[PoolNode] | None = None) -> None:
        """Taint the node, and evict its pods."""
        if node.name in self.under_way:
            return
        stored = self._cluster.get("Node", "", node.name)
        if stored is None:
            return
        now = self._simulation.clock.monotonic()
        self.under_way[node.name] = NodeDrain(node, why, waits_for or [])
        if self._flags is not None and node.pods and why == UNNEEDED:
            drain, until_s = self.under_way[node.name], now + self._flags.max_pod_eviction_time
            self._simulation.expect(until_s, lambda: self._give_up(drain))
        self._cluster.update(stored.replace(taints=(*stored.taints, self._taint)))

    def proceed(self) -> None:
        """Evict the pods that may be evicted now, and remove the nodes that are empty."""
        for drain in list(self.under_way.values()):
            if drain.is_ready:
                self._evict(drain)
                if not drain.node.pods:
                    self._remove(drain)

    def _give_up(self, drain: NodeDrain) -> None:
        """Keep a node whose pods could not all be evicted in time."""
        stored = self._cluster.get("Node", "", drain.node.name)
        if self.under_way.get(drain.node.name) is not drain or stored is None:
            return
        if all(pod.is_terminating for pod in drain.node.pods.values()):
            return
        del self.under_way[drain.node.name]
        self.failed_s = self._simulation.clock.monotonic()
        left = tuple(taint for taint in stored.taints if taint != self._taint)
        self._cluster.update(stored.replace(taints=left))

    def finish(self, node: PoolNode) -> None:
        """Remove a node at once, with the pods that are still on it."""
        drain = self.under_way.get(node.name)
        if drain is None:
            return
        for pod in list(node.pods.values()):
            self._take_off(pod, drain, 0.0)
        self._remove(drain)

    def _evict(self, drain: NodeDrain) -> None:
        for pod in list(drain.node.pods.values()):
            if pod.is_terminating or self._blockers.is_protected(pod):
                continue
            if not self._simulation.budgets.eviction_refusal(pod):
                grace_s = pod.spec.grace_s
                if self._flags is not None:
                    grace_s = min(grace_s, self._flags.max_graceful_termination_sec)
                self._take_off(pod, drain, grace_s)

    def _take_off(self, pod: Pod, drain: NodeDrain, grace_s: float) -> None:
        """Delete a pod; a pod without a controller is created anew later, as if submitted again."""
        stored = self._cluster.get("Pod", pod.namespace, pod.name)
        if stored is None or stored.uid != pod.uid:
            return
        if not stored.is_terminating:
            now = self._simulation.clock.monotonic()
            self.evictions.append(ScalingEviction(now, pod.key, drain.node.name, drain.why))
            if pod.controller is None:
                self._lost.append(pod)
        self._cluster.delete(stored, grace_s)

    def bring_back(self) -> None:
        """Add the pods again that no controller creates, after the old ones were deleted."""
        waiting, self._lost = self._lost, []
        for pod in waiting:
            if self._cluster.get("Pod", pod.namespace, pod.name) is not None:
                self._lost.append(pod)
            else:
                self._simulation.happen(
                    TimelineEvent(0, add=(successor_of(pod),)), is_replacement=True
                )

    def _remove(self, drain: NodeDrain) -> None:
        del self.under_way[drain.node.name]
        drain.node.record.why = drain.why
        targets = [TimelineTarget("Node", "", drain.node.name)]
        if self._cluster.get("CSINode", "", drain.node.name) is not None:
            targets.append(TimelineTarget("CSINode", "", drain.node.name))
        targets += [
            TimelineTarget("ResourceSlice", "", one.name)
            for one in self._cluster.list("ResourceSlice")
            if one.spec.node_name == drain.node.name
        ]
        self._simulation.happen(TimelineEvent(0, remove=tuple(targets)))
