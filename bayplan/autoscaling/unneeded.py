"""Unneeded nodes: the nodes that Cluster Autoscaler removes.

Facts from cluster-autoscaler 1.36 (core/scaledown): a node is unneeded while the larger share of its cpu and memory
that is requested, or the share of its GPUs if it has some, is at most a threshold, nothing keeps it, and all its pods
fit elsewhere, beside those of the nodes that were found before it. One that was unneeded for its time is removed,
unless a node was added, removed, or could not be removed shortly before. Empty nodes come first; those with pods are
drained one at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from ..api.node import Node
from ..api.pod import Pod
from ..api.resources import CPU, MEMORY
from ..cluster.memory.absent_owners import is_daemon, stays_with_node
from ..planning.pools import NodePool
from ..table import Bools, Ints
from ..trials import TrialCluster
from .blockers import Blockers
from .cluster_autoscaler_flags import ClusterAutoscalerFlags
from .consolidation import RemovalCommand
from .expanders import GPUS
from .pool_nodes import EMPTY, UNNEEDED, PoolNode, PoolNodes, next_of

MOVED = "-moved"
"""At the end of the uid of a pod that is tried on another node."""


class UnneededNodes:
    """Follows since when nodes are unneeded."""

    def __init__(
        self,
        nodes: PoolNodes,
        blockers: Blockers,
        shadow: TrialCluster,
        flags: ClusterAutoscalerFlags,
    ) -> None:
        self._nodes, self._blockers = nodes, blockers
        self._shadow, self._flags = shadow, flags
        self.since_s: dict[str, float] = {}
        self.added_s = self.removed_s = self.failed_s = -math.inf
        """Time when nodes were launched last, when one was removed last, and when that failed last."""
        self._tried_again_s: dict[str, float] = {}
        """Time when a node that was kept for a pod is tried again."""
        self._last_row = 0
        """Place of the last pod that was found to fit elsewhere; the next search begins after it."""

    def update(self, now_s: float, leaving: set[str]) -> None:
        """Find the unneeded nodes; those that were unneeded before keep their time."""
        if not self._flags.scale_down_enabled:
            return
        found: dict[str, float] = {}
        most, rows = self._most_unneeded(), self._shadow.table.row_of
        is_open = np.ones(len(self._shadow.table), dtype=np.bool_)
        is_open[[rows[name] for name in {*leaving, *self._nodes.booting} if name in rows]] = False
        self._blockers.forget_plans()
        self._tried_again_s = {
            name: at_s for name, at_s in self._tried_again_s.items() if at_s > now_s
        }
        tried = 0
        with ExitStack() as moves:
            for node in sorted(self._underutilised(), key=self._rank):
                if len(found) >= most or tried >= self._flags.scale_down_non_empty_candidates_count:
                    break
                if node.name in self._tried_again_s or not self._may_go(node, leaving):
                    continue
                tried += bool(node.pods)
                if self._is_emptied(node, is_open, moves):
                    found[node.name] = self.since_s.get(node.name, now_s)
                else:
                    recheck_s = self._flags.unremovable_node_recheck_timeout
                    self._tried_again_s[node.name] = now_s + recheck_s
        self.since_s = found

    def _is_emptied(self, node: PoolNode, is_open: Bools, moves: ExitStack) -> bool:
        """Whether the pods of a node are movable and were put on other open rows; its own row is closed."""
        pods, row = self._pods_of(node), self._shadow.table.row_of[node.name]
        if self._blockers.of_pods(node) or self._blockers.of_budgets(pods):
            return False
        is_open[row] = False
        if not self._move(pods, is_open, moves):
            is_open[row] = True
            return False
        self._blockers.plan_evictions(pods)
        return True

    def _rank(self, node: PoolNode) -> tuple[bool, bool, int, str]:
        """Empty nodes come first, then those that were unneeded before."""
        return bool(node.pods), node.name not in self.since_s, len(node.pods), node.name

    def _most_unneeded(self) -> int:
        """Number of unneeded nodes after which no further ones are searched."""
        flags = self._flags
        at_once = flags.max_scale_down_parallelism
        rounds = max(flags.scale_down_unneeded_time // flags.scan_interval, 1)
        return min(len(self.since_s) + 2 * at_once, int(rounds + 1) * at_once)

    def _move(self, pods: list[Pod], is_open: Bools, moves: ExitStack) -> bool:
        """Put the pods on open rows until `moves` end; False if one of them has no place there.

        They get other uids: a pod may be moved again with the node that it is on.
        """
        with ExitStack() as trial:
            if pods:
                trial.enter_context(self._shadow.trial())
            for pod in [self._shadow.lift(pod) for pod in pods]:
                rows: Ints = np.flatnonzero((self._shadow.totals(pod) >= 0) & is_open)
                if not len(rows):
                    return False
                self._last_row = row = next_of(rows, self._last_row)
                moved = pod.replace(uid=f"{pod.uid}{MOVED}")
                self._shadow.place(moved, self._shadow.table.names[row])
            moves.enter_context(trial.pop_all())
        return True

    def _pods_of(self, node: PoolNode) -> list[Pod]:
        """The pods that need another node if this one is removed, including those that were moved to it."""
        on_node = self._shadow.pods_on(node.name).values()
        return [pod for pod in on_node if not (pod.is_terminating or stays_with_node(pod))]

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
        """The nodes that can be removed with every pool at its minimum or above."""
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
        return not self._blockers.of_annotation(stored)

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
