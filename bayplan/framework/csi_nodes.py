"""CSINodes: the CSINode of each node, as columns over the rows of the table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..api.storage import CSINode
from ..table import Bools, Column, Ints, NodeTable, Rows
from ..table.what_if import rows_in
from .lister import Lister, ObjectKey

NO_LIMIT = 2**62
"""A limit that no node reaches."""


class CSINodes:
    """The rows with a CSINode, and its drivers, limits and migrated plugins.

    `follow` brings the columns up to date; a row of a what-if is looked up under its node's name.
    """

    def __init__(self, table: NodeTable, lister: Lister) -> None:
        self._table = table
        self._lister = lister
        self._node_version = -1
        self._known: dict[int, CSINode] = {}
        self._exists = Column(table.size, np.bool_, False)
        self._limited = Column(table.size, np.bool_, False)
        self._limits: dict[str, Column] = {}
        self._lowest: dict[str, int] = {}
        self._installed: dict[str, Column] = {}
        self._migrated: dict[str, Column] = {}

    def follow(self, changes: Iterable[ObjectKey] | None) -> None:
        """Update the rows of nodes that changed, and of the CSINodes among `changes` (None for all)."""
        table = self._table
        log, since = table.node_changes, self._node_version
        self._node_version = log.version
        rows = None if changes is None else log.since(since)
        if rows is None:
            rows = list(range(len(table)))
        for row in rows:
            self._look(row)
        for key in changes or ():
            if key.kind == "CSINode" and (found := table.row_of.get(key.name)) is not None:
                self._look(found)

    def rows_of(self, table: NodeTable, rows: Rows) -> Rows:
        """The rows of the cluster's table for `rows` of `table`, which may be a what-if."""
        return rows_in(self._table, table, rows)

    @property
    def exists(self) -> Bools:
        """bool per row: the node has a CSINode."""
        return self._exists.view

    @property
    def limited(self) -> Bools:
        """bool per row: some driver there has a limit."""
        return self._limited.view

    def limit(self, driver: str) -> Ints:
        """int64 per row: how many volumes of the driver can be attached, NO_LIMIT where there is none."""
        return self._column(self._limits, driver, np.int64, NO_LIMIT).view

    def lowest_limit(self, driver: str) -> int:
        """A lower bound of `limit` on all rows."""
        return self._lowest.get(driver, NO_LIMIT)

    def installed(self, driver: str) -> Bools:
        """bool per row: the driver is installed."""
        return self._column(self._installed, driver, np.bool_, False).view

    def migrated(self, plugin: str) -> Bools:
        """bool per row: a driver serves the in-tree volumes of that kind there."""
        return self._column(self._migrated, plugin, np.bool_, False).view

    def _column(
        self, columns: dict[str, Column], key: str, kind: type[np.generic], fill: int | bool
    ) -> Column:
        column = columns.get(key)
        if column is None:
            column = columns[key] = Column(self._table.size, kind, fill)
        return column

    def _look(self, row: int) -> None:
        """Copy the CSINode of the row as it is now."""
        name = self._table.names[row]
        found = self._lister.get("CSINode", "", name) if name else None
        known = self._known.get(row)
        if found is known:
            return
        if known is not None:
            self._clear(row)
        if found is None:
            return
        self._known[row] = found
        self._exists.cells[row] = True
        limits = found.limits
        self._limited.cells[row] = bool(limits)
        for driver, limit in limits.items():
            self._column(self._limits, driver, np.int64, NO_LIMIT).cells[row] = limit
            self._lowest[driver] = min(limit, self.lowest_limit(driver))
        for installed in found.drivers:
            self._column(self._installed, installed.name, np.bool_, False).cells[row] = True
        for plugin in found.migrated_plugins:
            self._column(self._migrated, plugin, np.bool_, False).cells[row] = True

    def _clear(self, row: int) -> None:
        """Clear the columns of the row, which has no CSINode any more."""
        del self._known[row]
        self._exists.cells[row] = self._limited.cells[row] = False
        for column in self._limits.values():
            column.cells[row] = NO_LIMIT
        for columns in (self._installed, self._migrated):
            for column in columns.values():
                column.cells[row] = False
