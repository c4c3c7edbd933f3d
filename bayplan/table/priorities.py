"""PriorityColumns: how many pods of each priority every row has."""

from __future__ import annotations

import numpy as np

from .columns import Column, Ints, Size


class PriorityColumns:
    """One count column per distinct priority."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._columns: dict[int, Column] = {}

    def column(self, priority: int) -> Column:
        """The counts of one priority, made on first use (writer only)."""
        column = self._columns.get(priority)
        if column is None:
            column = self._columns[priority] = Column(self._size)
        return column

    def below(self, priority: int) -> Ints:
        """int64 per row: pods with a lower priority than `priority`."""
        total = np.zeros(self._size.rows, dtype=np.int64)
        for known, column in self._columns.items():
            if known < priority:
                total += column.view
        return total

    def may_have_below(self, priority: int) -> bool:
        """Whether pods with a lower priority than `priority` are, or were, on some row."""
        return any(known < priority for known in self._columns)

    def has_below(self, row: int, priority: int) -> bool:
        """Whether a pod with a lower priority than `priority` is at `row`."""
        return any(
            known < priority and column.view[row] > 0 for known, column in self._columns.items()
        )

    def counts_at(self, row: int) -> dict[int, int]:
        """The pods at `row` by priority."""
        return {key: column.view.item(row) for key, column in self._columns.items()}
