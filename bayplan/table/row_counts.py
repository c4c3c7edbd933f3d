"""RowCounts: how often each of many things occurs on each row, kept only where it does.

A column per thing would waste memory: a cluster has as many claims as pods, and most are on one node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

KEEP = 65_536
NO_ROWS: dict[int, int] = {}
"""Stands for the rows of a thing that occurs nowhere; shared, so never written to."""


class CountStep(NamedTuple, Generic[K]):
    """A thing came to a row that did not have it (`change` 1), or the last one of it went (-1)."""

    key: K
    row: int
    change: int


class RowCounts(Generic[K]):
    """Counts by thing and row. With a log, readers can ask what came and went since they last looked."""

    __slots__ = ("_dropped", "_log", "_rows")

    def __init__(self, logged: bool = False) -> None:
        self._rows: dict[K, dict[int, int]] = {}
        self._log: list[CountStep[K]] | None = [] if logged else None
        self._dropped = 0

    def __len__(self) -> int:
        """How many things occur somewhere."""
        return len(self._rows)

    def __iter__(self) -> Iterator[K]:
        """The things that occur somewhere."""
        return iter(self._rows)

    def rows(self, key: K) -> Mapping[int, int]:
        """Where a thing occurs, and how often there."""
        return self._rows.get(key, NO_ROWS)

    def at(self, key: K, row: int) -> int:
        """How often a thing occurs on one row."""
        return self.rows(key).get(row, 0)

    @property
    def changes(self) -> Mapping[K, int]:
        """How a what-if's row differs from the row it is a copy of; nothing for a whole table."""
        return {}

    def add(self, key: K, row: int, change: int) -> int:
        """Count `change` more; returns 1 when the thing is new to the row, -1 when it left it, else 0."""
        rows = self._rows.setdefault(key, {})
        before = rows.get(row, 0)
        after = before + change
        if after:
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del self._rows[key]
        step = bool(after) - bool(before)
        if step and self._log is not None:
            self._note(CountStep(key, row, step))
        return step

    @property
    def version(self) -> int:
        """Where the log stands."""
        return self._dropped + len(self._log or ())

    def since(self, version: int) -> list[CountStep[K]] | None:
        """What came and went after `version`, in order; None when the log no longer reaches back that far."""
        start = version - self._dropped
        if start < 0 or self._log is None:
            return None
        return self._log[start:]

    def fork(self, row: int) -> RowCounts[K]:
        """The counts of one row, which can be changed without touching these."""
        return _ForkedCounts(self, row)

    def _note(self, step: CountStep[K]) -> None:
        assert self._log is not None, "only a logged count is noted"
        self._log.append(step)
        if len(self._log) > 2 * KEEP:
            del self._log[:KEEP]
            self._dropped += KEEP


class _ForkedCounts(RowCounts[K]):
    """One row of other counts: those, and the changes since."""

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
