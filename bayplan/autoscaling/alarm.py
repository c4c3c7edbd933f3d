"""Alarm: work at the earliest of the times that were asked for."""

from __future__ import annotations

from collections.abc import Callable

from ..sim.simulation import Simulation


class Alarm:
    """Calls `ring` once in virtual time; a later time than the one it is set to changes nothing."""

    def __init__(self, simulation: Simulation, ring: Callable[[], None]) -> None:
        self._simulation, self._ring = simulation, ring
        self._at_s: float | None = None

    def set(self, at_s: float) -> None:
        """Ring at this time, unless it rings before."""
        if self._at_s is not None and self._at_s <= at_s:
            return
        self._at_s = at_s
        self._simulation.expect(at_s, lambda: self._reached(at_s))

    def _reached(self, at_s: float) -> None:
        if self._at_s == at_s:  # else replaced by an earlier one
            self._at_s = None
            self._ring()
