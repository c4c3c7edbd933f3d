"""Snapshot: the state that stays fixed between two scheduling cycles.

The table itself is the snapshot: only the scheduler's thread writes it, and never during a cycle.
What remains of pkg/scheduler/backend/cache/snapshot.go is the order of the nodes, which
kube-scheduler updates only when nodes are added or removed, and the image counts, which it updates
only for nodes that changed.
"""

from __future__ import annotations

import numpy as np

from ..table import Ints, NodeTable
from .node_tree import NodeTree


class Snapshot:
    """The state of a cycle besides the table."""

    def __init__(self, table: NodeTable, tree: NodeTree) -> None:
        self._table = table
        self._tree = tree
        self._stale = True
        self._was_seen = False
        self._order: Ints = np.zeros(0, dtype=np.int64)

    def nodes_changed(self) -> None:
        """Rebuild the order after a node was added or removed."""
        self._stale = True
        self._was_seen = False

    def update(self) -> None:
        """Update the snapshot; called at the start of each cycle."""
        self._table.images.refresh()
        self._was_seen = True

    def zones_change(self) -> None:
        """Keep the order of the last cycle although a node changes its zone, until nodes are added or removed."""
        _ = self.order

    @property
    def order(self) -> Ints:
        """Rows in visiting order, as of the last cycle; computed on demand."""
        if self._stale and self._was_seen:
            rows = [self._table.row_of[name] for name in self._tree.names()]
            self._order = np.array(rows, dtype=np.int64)
            self._stale = False
        return self._order
