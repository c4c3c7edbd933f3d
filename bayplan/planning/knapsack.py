"""Knapsack: the most valuable set of pods that one node can hold.

The values are prices of pods that the master problem gives. A greedy answer is enough to improve the master; a bound
needs the exact one, or an upper bound of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..table import Bools, Ints
from .fleet import NodeOption
from .solver import Rows, maximize

Floats = NDArray[np.float64]

EXACT_UP_TO_S = 0.3
RELATIVE_GAP = 0.003


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pods on one node: copies per class, and their value."""

    copies: Ints
    value: float
    bound: float
    """Upper bound for the value of every pattern."""


def most_copies(option: NodeOption, requests: Ints, demand: Ints) -> Ints:
    """int64 per class: how many copies alone fit on a node."""
    with np.errstate(divide="ignore"):
        fits = np.where(
            requests > 0, option.free // np.maximum(requests, 1), np.iinfo(np.int64).max
        )
    return np.where(
        option.accepts, np.minimum(np.minimum(fits.min(axis=1), option.caps), demand), 0
    )


def greedy_patterns(
    option: NodeOption, requests: Ints, limits: Ints, values: Floats
) -> list[Pattern]:
    """A pattern for each of some orders by value per size."""
    wanted = np.flatnonzero((values > 1e-12) & (limits > 0))
    if not len(wanted):
        return []
    share = requests[wanted] / np.maximum(option.free, 1)
    found = []
    for size in [share.sum(axis=1), share.max(axis=1), *share.T]:
        copies = np.zeros(len(values), dtype=np.int64)
        room = option.free.copy()
        for number in wanted[np.argsort(-values[wanted] / np.maximum(size, 1e-9), kind="stable")]:
            need = requests[number]
            used = need > 0
            count = min(int((room[used] // need[used]).min(initial=limits[number])), limits[number])
            if count > 0:
                copies[number] = count
                room -= need * count
        found.append(Pattern(copies, float(values @ copies), np.inf))
    return found


def best_pattern(
    option: NodeOption, requests: Ints, limits: Ints, values: Floats, least: float = 0.0
) -> Pattern:
    """The most valuable pattern, or nearly, with an upper bound; an empty one if even parts of pods have a total below
    `least`.
    """
    wanted = np.flatnonzero((values > 1e-12) & (limits > 0))
    wanted = wanted[_is_useful(option, requests[wanted], limits[wanted], values[wanted])]
    copies = np.zeros(len(values), dtype=np.int64)
    if not len(wanted):
        return Pattern(copies, 0.0, 0.0)
    rows = Rows(requests[wanted].T.astype(float), option.free.astype(float))
    most = limits[wanted].astype(float)
    _, relaxed = maximize(values[wanted], rows, most, EXACT_UP_TO_S, is_integer=False)
    if relaxed < least:
        return Pattern(copies, 0.0, relaxed)
    found, bound = maximize(values[wanted], rows, most, EXACT_UP_TO_S, RELATIVE_GAP)
    bound = min(bound, relaxed)
    if found is not None:
        copies[wanted] = np.floor(found + 1e-6).astype(np.int64)
    return Pattern(copies, float(values @ copies), bound)


def _is_useful(option: NodeOption, requests: Ints, limits: Ints, values: Floats) -> Bools:
    """bool per class: False if another class replaces it: at least the same worth, not larger, and enough pods for a
    node.
    """
    fits = np.where(requests > 0, option.free // np.maximum(requests, 1), np.iinfo(np.int64).max)
    is_plenty = limits >= fits.min(axis=1, initial=np.iinfo(np.int64).max)
    # replaces[i, k]: class i can take the place of class k.
    replaces = (requests[:, None] <= requests[None]).all(axis=2) & (values[:, None] >= values)
    replaces &= is_plenty[:, None]
    first = np.arange(len(values))
    both = replaces & replaces.T & (first[:, None] > first)  # of equal ones the first stays
    replaces &= ~both
    np.fill_diagonal(replaces, False)
    return np.logical_not(replaces.any(axis=0), dtype=np.bool_)
