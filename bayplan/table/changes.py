"""Changes: which rows changed since a given version, without reading every row.

A log of changed rows answers "what changed since version v" in time proportional to the changes instead of to the
nodes. This is the one place where that question is asked: a reader keeps the `version` up to which it has read.
"""

from __future__ import annotations

import numpy as np

from .columns import Ints

KEEP = 65_536


class ChangeLog:
    """An append-only log of row numbers; `version` is its length since the beginning."""

    __slots__ = ("_cells", "_dropped", "_rows", "version")

    def __init__(self) -> None:
        self._rows: Ints = np.zeros(64, dtype=np.int64)
        self._cells: memoryview = memoryview(self._rows)  # type: ignore[arg-type]  # it has a buffer
        self._dropped = 0
        self.version = 0

    def mark(self, row: int) -> None:
        """Note that `row` changed."""
        place = self.version - self._dropped
        try:
            self._cells[place] = row
        except IndexError:
            place = self._make_room(place)
            self._cells[place] = row
        self.version += 1

    def _make_room(self, used: int) -> int:
        """Double the room, or forget all but the last KEEP changes; returns how many are kept."""
        kept = min(used, KEEP)
        rows = np.zeros(min(2 * used, 2 * KEEP), dtype=np.int64)
        rows[:kept] = self._rows[used - kept : used]
        self._dropped += used - kept
        self._rows, self._cells = rows, memoryview(rows)  # type: ignore[arg-type]
        return kept

    def rows_since(self, version: int) -> Ints | None:
        """Rows changed after `version`, in the order of the changes, some more than once; not to be kept.

        None when the log does not reach back that far.
        """
        start = version - self._dropped
        if start < 0:
            return None
        return self._rows[start : self.version - self._dropped]

    def since(self, version: int) -> list[int] | None:
        """Rows changed after `version`, ascending, each once; None when the log does not reach back that far."""
        if version == self.version:
            return []
        rows = self.rows_since(version)
        if rows is None:
            return None
        listed: list[int] = rows.tolist()
        return listed if len(listed) == 1 else sorted(set(listed))
