"""Node removal: evict the pods of nodes, then remove the nodes.

A draining node has a taint that keeps pods away. Its pods are evicted as far as their disruption budgets and
annotations allow, again after every change of the cluster, and it is removed when no pod is left. An interrupted node
is removed at its time, whatever is on it. Cluster Autoscaler limits the grace period of pods, and gives a node up that
has pods which could not be evicted for some time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..api.pod import Pod
from ..api.taints import NO_SCHEDULE, Taint
from ..cluster.memory.absent_owners import successor_of
from ..manifests.timeline import TimelineEvent, TimelineTarget
from ..sim.autoscaling_record import ScalingEviction
from ..sim.simulation import Simulation
from .blockers import Blockers
from .cluster_autoscaler_flags import ClusterAutoscalerFlags
from .pool_nodes import UNNEEDED, PoolNode

KARPENTER_TAINT = Taint(key="karpenter.sh/disrupted", effect=NO_SCHEDULE)
GROUP_TAINT = Taint(key="ToBeDeletedByClusterAutoscaler", effect=NO_SCHEDULE)


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
    """The nodes that are drained."""

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
