"""Snapshot: what of the cluster holds still between two scheduling cycles.

The table itself is the snapshot: only the scheduler's thread writes it, and never during a cycle. What is left of
pkg/scheduler/backend/cache/snapshot.go is the order of the nodes, which kube-scheduler renews only when nodes come
or go, and the image counts, which it renews only for nodes that changed.
"""

from __future__ import annotations

import numpy as np

from ..table import Ints, NodeTable
from .node_tree import NodeTree


class Snapshot:
    """What a cycle sees of the cluster besides the table."""

    def __init__(self, table: NodeTable, tree: NodeTree) -> None:
        self._table = table
        self._tree = tree
        self._stale = True
        self._was_seen = False
        self._order: Ints = np.zeros(0, dtype=np.int64)

    def nodes_changed(self) -> None:
        """A node came or went: the order is made anew."""
        self._stale = True
        self._was_seen = False

    def update(self) -> None:
        """Take the snapshot: called at the start of each cycle."""
        self._table.images.refresh()
        self._was_seen = True

    def zones_change(self) -> None:
        """A node is about to change its zone: the order stays as the last cycle saw it until nodes come or go."""
        _ = self.order

    @property
    def order(self) -> Ints:
        """Rows in the order in which nodes are looked at, as of the last cycle; made when somebody asks."""
        if self._stale and self._was_seen:
            rows = [self._table.row_of[name] for name in self._tree.names()]
            self._order = np.array(rows, dtype=np.int64)
            self._stale = False
        return self._order
