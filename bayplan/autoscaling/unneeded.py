"""Unneeded nodes: which nodes Cluster Autoscaler takes away.

Facts from its FAQ: a node is unneeded while the requests on it are below half of its cpu and of its memory, nothing
keeps it, and all its pods fit elsewhere. One that was unneeded for ten minutes is removed, empty ones up to ten at a
time, others one at a time; nothing is removed in the ten minutes after a node was added. At most 30 nodes with pods are
tried at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..api.node import Node
from ..api.resources import CPU, MEMORY
from ..planning.shadow import ShadowScheduler
from .blockers import Blockers
from .consolidation import RemovalCommand
from .pool_nodes import EMPTY, PoolNode, PoolNodes
from .relocation import Relocation

UNNEEDED_S, DELAY_AFTER_ADD_S = 600.0, 600.0
THRESHOLD = 0.5
MAX_EMPTY, MAX_CANDIDATES = 10, 30


class UnneededNodes:
    """Follows since when nodes are unneeded."""

    def __init__(
        self,
        nodes: PoolNodes,
        relocation: Relocation,
        blockers: Blockers,
        shadow: ShadowScheduler,
        find_node: Callable[[str], Node | None],
    ) -> None:
        self._nodes, self._relocation, self._blockers = nodes, relocation, blockers
        self._shadow, self._find_node = shadow, find_node
        self.since_s: dict[str, float] = {}
        self.added_s = -DELAY_AFTER_ADD_S
        """When a node was added last."""

    def update(self, now_s: float, leaving: set[str]) -> None:
        """Find the nodes that are unneeded now; those that were before keep their time."""
        found: dict[str, float] = {}
        closed = set(leaving)
        tried = 0
        for node in sorted(self._underutilised(), key=lambda node: (len(node.pods), node.name)):
            if not self._may_go(node, leaving):
                continue
            if node.pods:
                tried += 1
                if tried > MAX_CANDIDATES:
                    break
                if self._relocation.find([node], closed, may_replace=False) is None:
                    continue
            closed.add(node.name)
            found[node.name] = self.since_s.get(node.name, now_s)
        self.since_s = found

    def due_s(self) -> float | None:
        """When the next node may be removed; None: none is unneeded."""
        if not self.since_s:
            return None
        return max(min(self.since_s.values()) + UNNEEDED_S, self.added_s + DELAY_AFTER_ADD_S)

    def command(self, now_s: float, leaving: set[str]) -> RemovalCommand | None:
        """The nodes to remove now; None: none is due."""
        if now_s < self.added_s + DELAY_AFTER_ADD_S:
            return None
        due = [
            self._nodes.live[name]
            for name, since in self.since_s.items()
            if since + UNNEEDED_S <= now_s and name in self._nodes.live and name not in leaving
        ]
        empty = self._within_minimum([node for node in due if not node.pods], leaving)[:MAX_EMPTY]
        if empty:
            return RemovalCommand(empty, EMPTY)
        if any(self._nodes.live[name].pods for name in leaving if name in self._nodes.live):
            return None  # one node with pods at a time
        used = self._within_minimum(due, leaving)[:1]
        return RemovalCommand(used, "unneeded") if used else None

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
        stored = self._find_node(node.name)
        return stored is not None and not self._blockers.of_node(node, stored)

    def _underutilised(self) -> list[PoolNode]:
        """The nodes on which pods, daemons included, request less than half of the cpu and of the memory."""
        table = self._shadow.table
        is_low = np.ones(len(table), dtype=np.bool_)
        for name in (CPU, MEMORY):
            offered = table.allocatable[name]
            shares = table.requested[name] / np.maximum(offered, 1)
            is_low &= (shares < THRESHOLD) | (offered == 0)
        names = (table.names[row] for row in np.flatnonzero(is_low).tolist())
        nodes = (self._nodes.live.get(name) for name in names)
        return [node for node in nodes if node is not None]
