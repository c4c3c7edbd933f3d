"""Seen: what has come up before, so that nothing is kept for what comes once."""

from __future__ import annotations

from collections.abc import Hashable

MAX_SEEN = 65_536


class Seen:
    """Remembers things by their hash, and not for ever: it may be wrong now and then, which costs time only."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: set[int] = set()
        self._before: set[int] = set()

    def add(self, thing: Hashable) -> bool:
        """Remember `thing`; whether it came up before."""
        number = hash(thing)
        if number in self._now or number in self._before:
            return True
        if len(self._now) >= MAX_SEEN // 2:
            self._before, self._now = self._now, set()
        self._now.add(number)
        return False
