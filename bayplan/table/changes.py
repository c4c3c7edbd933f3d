"""Changes: which rows changed since a given moment, without looking at every row.

DESIGN.md gives each row a version; a log of changed rows answers the same question ("what changed since I
last looked") in time proportional to the changes instead of to the nodes.
"""

from __future__ import annotations

KEEP = 65_536


class ChangeLog:
    """An append-only log of row numbers; `version` is its length since the beginning."""

    __slots__ = ("_dropped", "_rows", "version")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._dropped = 0
        self.version = 0

    def mark(self, row: int) -> None:
        """Note that `row` changed."""
        self._rows.append(row)
        self.version = version = self.version + 1
        if not version % KEEP:
            self._drop()

    def _drop(self) -> None:
        """Forget all but the last KEEP changes."""
        dropped = max(len(self._rows) - KEEP, 0)
        del self._rows[:dropped]
        self._dropped += dropped

    def since(self, version: int) -> list[int] | None:
        """Rows changed after `version`, ascending; None when the log no longer reaches back that far."""
        start = version - self._dropped
        if start < 0:
            return None
        rows = self._rows[start:]
        return rows if len(rows) == 1 else sorted(set(rows))
