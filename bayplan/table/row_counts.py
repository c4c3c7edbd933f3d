"""RowCounts: sparse counts of many things per row, stored only where they occur.

A column per thing would waste memory: a cluster has as many claims as pods, and most are on one node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

NO_ROWS: dict[int, int] = {}
"""The rows of a thing that occurs nowhere; shared, so never written to."""


class RowCounts(Generic[K]):
    """Counts by thing and row."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[K, dict[int, int]] = {}

    def __len__(self) -> int:
        """Number of things that occur somewhere."""
        return len(self._rows)

    def __iter__(self) -> Iterator[K]:
        """The things that occur somewhere."""
        return iter(self._rows)

    def rows(self, key: K) -> Mapping[int, int]:
        """Rows of a thing, and its number on each."""
        return self._rows.get(key, NO_ROWS)

    def at(self, key: K, row: int) -> int:
        """Number of occurrences of a thing on one row."""
        return self.rows(key).get(row, 0)

    @property
    def changes(self) -> Mapping[K, int]:
        """Difference of a what-if's row from the row it is a copy of; empty for a whole table."""
        return {}

    def add(self, key: K, row: int, change: int) -> int:
        """Add `change` to a count; returns 1 if the thing is new to the row, -1 if it is gone from it, else 0."""
        rows = self._rows.setdefault(key, {})
        before = rows.get(row, 0)
        after = before + change
        if after:
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del self._rows[key]
        return bool(after) - bool(before)

    def fork(self, row: int) -> RowCounts[K]:
        """The counts of one row, which can be changed without touching these."""
        return _ForkedCounts(self, row)


class _ForkedCounts(RowCounts[K]):
    """One row of other counts, as the original and the changes since."""

    __slots__ = ("_base", "_changes", "_row")

    def __init__(self, base: RowCounts[K], row: int) -> None:
        super().__init__()
        self._base = base
        self._row = row
        self._changes: dict[K, int] = {}

    def rows(self, key: K) -> Mapping[int, int]:
        count = self._base.at(key, self._row) + self._changes.get(key, 0)
        return {0: count} if count else NO_ROWS

    @property
    def changes(self) -> Mapping[K, int]:
        total = dict(self._base.changes)
        for key, change in self._changes.items():
            total[key] = total.get(key, 0) + change
        return total

    def add(self, key: K, row: int, change: int) -> int:
        before = self.at(key, 0)
        self._changes[key] = self._changes.get(key, 0) + change
        return bool(before + change) - bool(before)
