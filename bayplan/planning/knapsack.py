"""Knapsack: the most valuable set of pods that one node can hold.

The values are prices of pods that the master problem gives. A greedy answer is enough to improve the master; a bound
needs the exact one, or an upper bound of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..table import Ints
from .fleet import NodeOption
from .solver import Rows, maximize

Floats = NDArray[np.float64]

EXACT_UP_TO_S = 1.0
RELATIVE_GAP = 0.002


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pods on one node: copies per class, and their value."""

    copies: Ints
    value: float
    bound: float
    """No pattern is worth more."""


def most_copies(option: NodeOption, requests: Ints, demand: Ints) -> Ints:
    """int64 per class: how many copies alone fit on a node."""
    with np.errstate(divide="ignore"):
        fits = np.where(
            requests > 0, option.free // np.maximum(requests, 1), np.iinfo(np.int64).max
        )
    return np.where(
        option.accepts, np.minimum(np.minimum(fits.min(axis=1), option.caps), demand), 0
    )


def greedy_pattern(option: NodeOption, requests: Ints, limits: Ints, values: Floats) -> Pattern:
    """The best of some orders by value per size."""
    wanted = np.flatnonzero((values > 1e-12) & (limits > 0))
    best = Pattern(np.zeros(len(values), dtype=np.int64), 0.0, np.inf)
    if not len(wanted):
        return best
    share = requests[wanted] / np.maximum(option.free, 1)
    sizes = [share.sum(axis=1), share.max(axis=1), *share.T]
    for size in sizes:
        copies = np.zeros(len(values), dtype=np.int64)
        room = option.free.copy()
        for number in wanted[np.argsort(-values[wanted] / np.maximum(size, 1e-9), kind="stable")]:
            need = requests[number]
            used = need > 0
            count = min(int((room[used] // need[used]).min(initial=limits[number])), limits[number])
            if count > 0:
                copies[number] = count
                room -= need * count
        value = float(values @ copies)
        if value > best.value:
            best = Pattern(copies, value, np.inf)
    return best


def best_pattern(option: NodeOption, requests: Ints, limits: Ints, values: Floats) -> Pattern:
    """The most valuable pattern, or nearly, with an upper bound."""
    wanted = np.flatnonzero((values > 1e-12) & (limits > 0))
    copies = np.zeros(len(values), dtype=np.int64)
    if not len(wanted):
        return Pattern(copies, 0.0, 0.0)
    rows = Rows(requests[wanted].T.astype(float), option.free.astype(float))
    found, bound = maximize(
        values[wanted], rows, limits[wanted].astype(float), EXACT_UP_TO_S, RELATIVE_GAP
    )
    if found is not None:
        copies[wanted] = np.floor(found + 1e-6).astype(np.int64)
    return Pattern(copies, float(values @ copies), bound)
