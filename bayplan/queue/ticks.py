"""Ticks: microsecond arithmetic of the queue, and the period of its two flushes.

Times are floats, in seconds since 1970. They represent whole microseconds exactly, but their sums
and differences do not: limits are compared in whole microseconds.
"""

from __future__ import annotations

import math

SECOND = 1_000_000
LEFTOVER_TICK_S = 30


def micros(seconds: float) -> int:
    """`seconds` in whole microseconds."""
    return round(seconds * SECOND)


def window(seconds: float) -> int:
    """The whole second of a time: pods whose backoff ends in one window are released together."""
    return math.floor(seconds)


def leftover_tick(start: float, moment: float) -> float:
    """The last tick of the leftover flush, which started at `start`, not later than `moment`."""
    beat = LEFTOVER_TICK_S * SECOND
    beats = (micros(moment) - micros(start)) // beat
    return (micros(start) + beats * beat) / SECOND
