"""Budget: the memory that a profile may take for what it keeps; the least recently used thing is dropped first."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Budget:
    """Views, node parts and groups of rows by key, in order of last use."""

    MOST_CELLS = 6_000_000
    """Numbers that all of them hold at most: 48 MB."""
    MOST_ENTRIES = 8192

    __slots__ = ("_cells", "_kept")

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, int]] = {}
        self._cells = 0

    def get(self, key: Hashable) -> Any | None:
        """What is kept under `key`, which is now used last; None: nothing."""
        entry = self._kept.pop(key, None)
        if entry is None:
            return None
        self._kept[key] = entry
        return entry[0]

    def put(self, key: Hashable, thing: Any, cells: int) -> None:
        """Keep a thing of `cells` numbers; the least recently used ones are dropped until there is room."""
        kept = self._kept
        self._cells -= kept.pop(key, (None, 0))[1]
        while kept and (self._cells + cells > self.MOST_CELLS or len(kept) >= self.MOST_ENTRIES):
            self._cells -= kept.pop(next(iter(kept)))[1]
        kept[key] = (thing, cells)
        self._cells += cells

    def clear(self) -> None:
        self._kept.clear()
        self._cells = 0
