"""Times: when an attempt was where, by the machine's clock.

A list of moments, filled in on the way of a pod: `times[FILTERED] = perf_counter()`. What did not happen stays NaN. The
durations are worked out later, of many attempts at once, so that a moment costs hardly more than looking at the clock.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Times: TypeAlias = list[float]
Floats: TypeAlias = NDArray[np.float64]

STARTED, PRE_FILTERED, FILTERED, PRE_SCORED, SCORED, DECIDED, BINDING, ENDED = range(8)
"""The attempt began; PreFilter, Filter, PreScore, Score came to an end with success; a node was chosen, or refused for
good (DECIDED); Bind began (BINDING) and the attempt was over (ENDED), which is when Bind was, if it succeeded."""
ATTEMPTS, WAITED_S = 8, 9
"""Filled in at the end: which attempt of its pod it was, and seconds since the pod first was active."""
LENGTH = 10

NEVER: Times = [math.nan] * LENGTH
"""Where nobody has been yet. `NEVER.copy()` begins a new attempt."""

STRETCHES = {
    "PreFilter": (STARTED, PRE_FILTERED),
    "Filter": (PRE_FILTERED, FILTERED),
    "PreScore": (FILTERED, PRE_SCORED),
    "Score": (PRE_SCORED, SCORED),
}
"""Extension points, from where to where."""


def as_rows(flat: Sequence[float]) -> Floats:
    """float64, a row of LENGTH for each attempt."""
    # Three times as fast as np.array(flat), and this is the better part of what timing a pod costs.
    return np.frombuffer(struct.pack(f"{len(flat)}d", *flat)).reshape(-1, LENGTH)
