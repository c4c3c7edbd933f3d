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

STARTED, PRE_FILTERED, FILTERED, PRE_SCORING, PRE_SCORED, SCORED, DECIDED, BINDING, ENDED = range(9)
"""The attempt began; PreFilter and Filter ended with success; PreScore began, PreScore and Score ended with success; a
node was chosen, or there is none (DECIDED); Bind began (BINDING); the attempt was over (ENDED), as was Bind."""
ATTEMPTS, WAITED_S = 9, 10
"""Filled in at the end: which attempt of its pod it was, and seconds since the pod first was active."""
LENGTH = 11

NEVER: Times = [math.nan] * LENGTH
"""Where nobody has been yet. `NEVER.copy()` begins a new attempt."""

STRETCHES = {
    "PreFilter": (STARTED, PRE_FILTERED),
    "Filter": (PRE_FILTERED, FILTERED),
    "PreScore": (PRE_SCORING, PRE_SCORED),
    "Score": (PRE_SCORED, SCORED),
}
"""Extension points, from where to where."""


def as_rows(flat: Sequence[float]) -> Floats:
    """float64, a row of LENGTH for each attempt."""
    # Three times as fast as np.array(flat), and this is the better part of what timing a pod costs.
    return np.frombuffer(struct.pack(f"{len(flat)}d", *flat)).reshape(-1, LENGTH)
