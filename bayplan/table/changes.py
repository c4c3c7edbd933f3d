"""Changes: a log of changed rows or objects, so that readers need not read everything again.

A log answers "what changed since version v" in time proportional to the changes instead of to the nodes or objects. A
reader keeps the `version` up to which it has read; -1 stands for nothing yet.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from .columns import Ints

INT64 = np.dtype(np.int64)
KEEP = 65_536
"""Number of entries that a log retains; it is cut to this length when it has twice as many."""

FIRST_ROOM = 64
NO_ROWS: Ints = np.empty(0, INT64)
NO_CELLS = memoryview(NO_ROWS)  # type: ignore[arg-type]  # it has a buffer

Entry = TypeVar("Entry")


class ChangeLog(Generic[Entry]):
    """An append-only log; `version` is its length since the beginning."""

    __slots__ = ("_dropped", "_entries", "version")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._dropped = 0
        self.version = 0

    def mark(self, entry: Entry) -> None:
        """Note a change."""
        entries = self._entries
        entries.append(entry)
        self.version += 1
        if len(entries) > 2 * KEEP:
            self._dropped += len(entries) - KEEP
            del entries[:-KEEP]

    def entries_since(self, version: int) -> list[Entry] | None:
        """Entries after `version`, in order, some more than once; None when the log does not reach back that far."""
        start = version - self._dropped
        if start < 0:
            return None
        return self._entries[start:]

    def since(self, version: int) -> list[Entry] | None:
        """Entries after `version`, each once; None when the log does not reach back that far."""
        if version == self.version:
            return []
        entries = self.entries_since(version)
        return None if entries is None else list(dict.fromkeys(entries))


class RowLog(ChangeLog[int]):
    """A log of row numbers, in an array: readers get a slice of it."""

    __slots__ = ("_cells", "_rows")

    def __init__(self) -> None:
        super().__init__()
        self._rows, self._cells = NO_ROWS, NO_CELLS

    def mark(self, entry: int) -> None:
        place = self.version - self._dropped
        try:
            self._cells[place] = entry
        except IndexError:
            place = self._make_room(place)
            self._cells[place] = entry
        self.version += 1

    def _make_room(self, used: int) -> int:
        """Double the room, or drop all but the last entries; returns the number that is left."""
        kept = min(used, KEEP)
        rows = np.empty(min(max(FIRST_ROOM, 2 * used), 2 * KEEP), INT64)
        rows[:kept] = self._rows[used - kept : used]
        self._dropped += used - kept
        self._rows, self._cells = rows, memoryview(rows)  # type: ignore[arg-type]  # it has a buffer
        return kept

    def rows_since(self, version: int) -> Ints | None:
        """The same as `entries_since`, int64 per change; not to be kept."""
        start = version - self._dropped
        return None if start < 0 else self._rows[start : self.version - self._dropped]

    def entries_since(self, version: int) -> list[int] | None:
        rows = self.rows_since(version)
        return None if rows is None else rows.tolist()

    def since(self, version: int) -> list[int] | None:
        """Rows that changed after `version`, ascending, each once; None when the log does not reach back that far."""
        rows = super().since(version)
        if rows is not None:
            rows.sort()
        return rows
