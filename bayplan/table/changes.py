"""Changes: the rows that changed since a given version, without reading everything again.

A log answers "what changed since version v" in time proportional to the changes instead of to the nodes or objects. A
reader keeps the `version` up to which it has read; -1 stands for nothing yet.
"""

from __future__ import annotations

from array import array
from typing import Generic, TypeVar

import numpy as np

from .columns import Ints

INT64 = np.dtype(np.int64)
KEEP = 65_536
"""Entries that a log has at least, once it had that many; it is cut at twice the number."""

Entry = TypeVar("Entry")


class ChangeLog(Generic[Entry]):
    """An append-only log; `version` is its length since the beginning."""

    __slots__ = ("_dropped", "_entries", "version")

    def __init__(self, entries: list[Entry] | array[Entry] | None = None) -> None:  # type: ignore[type-var]  # array takes no type variable
        self._entries = [] if entries is None else entries
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

    def entries_since(self, version: int) -> list[Entry] | array[Entry] | None:  # type: ignore[type-var]  # array takes no type variable
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
    """A log of row numbers."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(array("q"))

    def rows_since(self, version: int) -> Ints | None:
        """The same as `entries_since`, int64 per change."""
        start = version - self._dropped
        if start < 0:
            return None
        return np.frombuffer(self._entries[start:], INT64)  # type: ignore[arg-type]  # they are an array

    def since(self, version: int) -> list[int] | None:
        """Rows that changed after `version`, ascending, each once; None when the log does not reach back that far."""
        rows = super().since(version)
        if rows is not None:
            rows.sort()
        return rows
