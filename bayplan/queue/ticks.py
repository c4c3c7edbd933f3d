"""Ticks: the time of the queue, exact to the microsecond, and the beat of its two periodic flushes.

Times are floats, in seconds since 1970. They carry whole microseconds without loss, but their sums and differences do
not: where a limit is compared, it is compared in whole microseconds.
"""

from __future__ import annotations

import math

SECOND = 1_000_000
LEFTOVER_TICK_S = 30


def micros(seconds: float) -> int:
    """`seconds` in whole microseconds."""
    return round(seconds * SECOND)


def window(seconds: float) -> int:
    """The whole second a time falls in: pods whose backoff ends in one window are let go together."""
    return math.floor(seconds)


def leftover_tick(start: float, moment: float) -> float:
    """The last beat of the flush of leftovers, which started at `start`, that is not later than `moment`."""
    beat = LEFTOVER_TICK_S * SECOND
    beats = (micros(moment) - micros(start)) // beat
    return (micros(start) + beats * beat) / SECOND
