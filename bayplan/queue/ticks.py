"""Ticks: microsecond arithmetic of the queue, and the period of its two flushes.

Times are floats, in seconds since 1970. They represent whole microseconds exactly, but their sums
and differences do not: limits are compared in whole microseconds.
"""

from __future__ import annotations

import math

SECOND = 1_000_000
LEFTOVER_TICK_S = 30
BACKOFF_TICK_S = 1


def micros(seconds: float) -> int:
    """`seconds` in whole microseconds."""
    return round(seconds * SECOND)


def window(seconds: float) -> int:
    """The whole second of a time: pods whose backoff ends in one window are released together."""
    return math.floor(seconds)


def leftover_tick(start: float, moment: float) -> float:
    """The last tick of the leftover flush, which started at `start`, not later than `moment`."""
    return _tick(start, moment, LEFTOVER_TICK_S)


def backoff_tick(start: float, moment: float) -> float:
    """The same for the backoff flush, when it is not aligned with the seconds of the wall clock."""
    return _tick(start, moment, BACKOFF_TICK_S)


def _tick(start: float, moment: float, period_s: int) -> float:
    beat = period_s * SECOND
    beats = (micros(moment) - micros(start)) // beat
    return (micros(start) + beats * beat) / SECOND
