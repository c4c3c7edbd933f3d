"""Seen: what has come up before, so that nothing is kept for what comes once."""

from __future__ import annotations

from array import array
from collections.abc import Hashable

SLOTS = 1 << 13
"""More than there is room for answers in a large cluster."""


class Seen:
    """Remembers things by their hash, each in one of a fixed number of places.

    It forgets what another thing took the place of, and may take one thing for another: that costs time, nothing else.
    """

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: array[int] = array("q")

    def add(self, thing: Hashable) -> bool:
        """Remember `thing`; whether it came up before."""
        places, number = self._places, hash(thing)
        if not places:
            places.frombytes(bytes(8 * SLOTS))
        place = (number ^ number >> 20) % SLOTS  # addresses, as of specs, end in zeros
        if places[place] == number:
            return True
        places[place] = number
        return False
