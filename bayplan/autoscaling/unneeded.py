"""Unneeded nodes: which nodes Cluster Autoscaler takes away.

Facts from cluster-autoscaler 1.36 (core/scaledown): a node is unneeded while the larger share of its cpu and memory
that is requested, or the share of its GPUs if it has some, is at most a threshold, nothing keeps it, and all its pods
fit elsewhere. One that was unneeded for its time is removed, unless a node was added, removed, or could not be removed
shortly before. Empty nodes come first; those with pods are drained one at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..api.node import Node
from ..api.resources import CPU, MEMORY
from ..cluster.memory.absent_owners import is_daemon
from ..planning.pools import NodePool
from ..trials import TrialCluster
from .blockers import Blockers
from .cluster_autoscaler_flags import ClusterAutoscalerFlags
from .consolidation import RemovalCommand
from .expanders import GPUS
from .pool_nodes import EMPTY, UNNEEDED, PoolNode, PoolNodes
from .relocation import Relocation


class UnneededNodes:
    """Follows since when nodes are unneeded."""

    def __init__(
        self,
        nodes: PoolNodes,
        relocation: Relocation,
        blockers: Blockers,
        shadow: TrialCluster,
        flags: ClusterAutoscalerFlags,
    ) -> None:
        self._nodes, self._relocation, self._blockers = nodes, relocation, blockers
        self._shadow, self._flags = shadow, flags
        self.since_s: dict[str, float] = {}
        self.added_s = self.removed_s = self.failed_s = -math.inf
        """Time when nodes were launched last, when one was removed last, and when that failed last."""

    def update(self, now_s: float, leaving: set[str]) -> None:
        """Find the nodes that are unneeded now; those that were before keep their time."""
        found: dict[str, float] = {}
        closed = set(leaving)
        tried = 0
        if not self._flags.scale_down_enabled:
            return
        for node in sorted(self._underutilised(), key=lambda node: (len(node.pods), node.name)):
            if not self._may_go(node, leaving):
                continue
            if node.pods:
                tried += 1
                if tried > self._flags.scale_down_non_empty_candidates_count:
                    break
                if self._relocation.find([node], closed, may_replace=False) is None:
                    continue
            closed.add(node.name)
            found[node.name] = self.since_s.get(node.name, now_s)
        self.since_s = found

    def due_s(self) -> float | None:
        """Time when the next node may be removed; None if none is unneeded."""
        due = [
            since + self._time_of(self._nodes.live[name])
            for name, since in self.since_s.items()
            if name in self._nodes.live
        ]
        return max(min(due), self._open_s()) if due else None

    def commands(self, now_s: float, leaving: set[str]) -> list[RemovalCommand]:
        """The nodes to remove now: empty ones, then those with pods, as many as may go at a time."""
        if now_s < self._open_s():
            return []
        due = [
            self._nodes.live[name]
            for name, since in self.since_s.items()
            if name in self._nodes.live
            and name not in leaving
            and since + self._time_of(self._nodes.live[name]) <= now_s
        ]
        going = [self._nodes.live[name] for name in leaving if name in self._nodes.live]
        budget = self._flags.max_scale_down_parallelism - len(going)
        drains = self._flags.max_drain_parallelism - sum(bool(node.pods) for node in going)
        allowed = self._within_minimum(sorted(due, key=lambda node: bool(node.pods)), leaving)
        empty = [node for node in allowed if not node.pods][: max(budget, 0)]
        room = max(min(budget - len(empty), drains), 0)
        used = [node for node in allowed if node.pods][:room]
        found = ((empty, EMPTY), (used, UNNEEDED))
        return [RemovalCommand(nodes, why) for nodes, why in found if nodes]

    def _open_s(self) -> float:
        """Time when nodes may be removed again."""
        flags = self._flags
        return max(
            self.added_s + flags.scale_down_delay_after_add,
            self.removed_s + (flags.scale_down_delay_after_delete or flags.scan_interval),
            self.failed_s + flags.scale_down_delay_after_failure,
        )

    def _time_of(self, node: PoolNode) -> float:
        """Seconds for which a node must have been unneeded."""
        stored, options = self._shadow.node(node.name), node.pool.group_options
        if stored is None or is_ready(stored):
            return options.get("scaledownunneededtime", self._flags.scale_down_unneeded_time)
        return options.get("scaledownunreadytime", self._flags.scale_down_unready_time)

    def _within_minimum(self, nodes: list[PoolNode], leaving: set[str]) -> list[PoolNode]:
        """As many of the nodes as leave every pool its minimum."""
        left = self._nodes.use.nodes.copy()
        for name in leaving:
            if name in self._nodes.live:
                left[self._nodes.live[name].pool.name] -= 1
        found = []
        for node in nodes:
            if left[node.pool.name] > node.pool.minimum:
                left[node.pool.name] -= 1
                found.append(node)
        return found

    def _may_go(self, node: PoolNode, leaving: set[str]) -> bool:
        if not node.is_joined or node.name in leaving:
            return False
        stored = self._shadow.node(node.name)
        if stored is None or not (self._flags.scale_down_unready_enabled or is_ready(stored)):
            return False
        return not self._blockers.of_node(node, stored)

    def _underutilised(self) -> Iterator[PoolNode]:
        """The nodes whose requested share is at most the threshold."""
        table, bound = self._shadow.table, self._highest_threshold()
        is_low = np.ones(len(table), dtype=np.bool_)
        for name in (CPU, MEMORY):
            offered = np.maximum(table.allocatable[name], 1)
            is_low &= table.requested[name] <= bound * offered
        for name in GPUS:
            if name in table.allocatable:
                is_low |= table.allocatable[name] > 0
        for row in np.flatnonzero(is_low).tolist():
            node = self._nodes.live.get(table.names[row])
            if node is not None and self._is_low(node, row):
                yield node

    def _highest_threshold(self) -> float:
        """No node without GPUs is unneeded above this utilisation by requests, daemons included."""
        known = [self._flags.scale_down_utilization_threshold]
        for pool in {node.pool.name: node.pool for node in self._nodes}.values():
            known.append(pool.group_options.get("scaledownutilizationthreshold", 0.0))
            if self._ignores_daemons(pool):
                return math.inf
        return max(known)

    def _ignores_daemons(self, pool: NodePool) -> bool:
        default = self._flags.ignore_daemonsets_utilization
        return bool(pool.group_options.get("ignoredaemonsetsutilization", default))

    def _is_low(self, node: PoolNode, row: int) -> bool:
        flags, options, offered = self._flags, node.pool.group_options, node.type.allocatable
        gpus = [name for name in GPUS if offered.get(name)]
        if gpus:
            threshold = options.get(
                "scaledowngpuutilizationthreshold", flags.scale_down_gpu_utilization_threshold
            )
        else:
            threshold = options.get(
                "scaledownutilizationthreshold", flags.scale_down_utilization_threshold
            )
        names = gpus[:1] or [CPU, MEMORY]
        return all(self._share(node, row, name) <= threshold for name in names)

    def _share(self, node: PoolNode, row: int, name: str) -> float:
        """The share of a resource that is requested; without daemons, if they do not count."""
        table = self._shadow.table
        requested, offered = int(table.requested[name][row]), int(table.allocatable[name][row])
        if self._ignores_daemons(node.pool):
            pods = self._shadow.pods_on(node.name).values()
            of_daemons = sum(pod.requests.get(name, 0) for pod in pods if is_daemon(pod))
            requested, offered = requested - of_daemons, offered - of_daemons
        return requested / offered if offered > 0 else 0.0


def is_ready(node: Node) -> bool:
    """Whether the node is ready, or has no such condition."""
    found = node.condition("Ready")
    return found is None or found.status == "True"
