"""Times: timestamps of the steps of an attempt, by the machine's clock.

A list of moments, filled in during an attempt: `times[FILTERED] = perf_counter()`. Steps that did
not happen stay NaN. The durations are computed later, for many attempts at once, so that a
timestamp costs hardly more than reading the clock.
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
"""The attempt began; PreFilter and Filter succeeded; PreScore began, PreScore and Score succeeded;
a node was chosen, or there is none (DECIDED); Bind began (BINDING); the attempt ended (ENDED); Bind
ended."""
ATTEMPTS, WAITED_S = 9, 10
"""Filled in at the end: the pod's number of attempts, and seconds since the pod was first active."""
LENGTH = 11

NEVER: Times = [math.nan] * LENGTH
"""An empty attempt; `NEVER.copy()` starts a new one."""

STRETCHES = {
    "PreFilter": (STARTED, PRE_FILTERED),
    "Filter": (PRE_FILTERED, FILTERED),
    "PreScore": (PRE_SCORING, PRE_SCORED),
    "Score": (PRE_SCORED, SCORED),
}
"""First and last moment of each extension point."""

STEPS = {
    "PreFilter": PRE_FILTERED,
    "Filter": FILTERED,
    "BeforePreScore": PRE_SCORING,
    "PreScore": PRE_SCORED,
    "Score": SCORED,
    "Decide": DECIDED,
    "Commit": BINDING,
    "Bind": ENDED,
}
"""The moment at which each step of an attempt ended, in order.

Decide chooses among the scored nodes; it is PostFilter when no node is feasible, and the whole search when no plugin
ran. Commit is Assume, Reserve, Permit and PreBind.
"""


def as_rows(flat: Sequence[float]) -> Floats:
    """float64, a row of LENGTH for each attempt."""
    # Three times as fast as np.array(flat), which would dominate the cost of timing a pod.
    return np.frombuffer(struct.pack(f"{len(flat)}d", *flat)).reshape(-1, LENGTH)
