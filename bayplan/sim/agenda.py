"""Agenda: what the cluster itself is going to do, as opposed to what the scheduler waits for."""

from __future__ import annotations

from collections.abc import Callable

from ..clock import Clock, Timers


class Agenda:
    """Puts things on the timers of a simulation, and knows how many of them are still to come."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self.pending = 0
        """How many things are yet to happen."""

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do `action` in `seconds`."""
        self.pending += 1

        def happen() -> None:
            self.pending -= 1
            action()

        # The clock counts microseconds; a sum of floats may lie a hair beyond one.
        self._timers.at(round(self._clock.monotonic() + seconds, 6), happen)
