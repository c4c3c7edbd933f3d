"""Cuts: rows of the fluid problem that hold for whole pods, though not for all mixes of parts of pods.

A weight for each pod such that no set of pods on one node weighs more than 1: the pods on the nodes of an option then
weigh no more than there are nodes. The weights are dual feasible functions (Fekete and Schepers) of the share of one
resource that a pod takes: with *rounding*, shares are rounded down to k-ths as long as k + 1 of them do not fit;
with a *threshold*, pods below it weigh nothing and those that leave less than it weigh 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..table import Ints
from .fleet import NodeOption

Floats = NDArray[np.float64]
ROUNDINGS = range(1, 25)
MOST_THRESHOLDS = 40
SMALLEST_VIOLATION = 1e-3
"""The share of the nodes by which a solution must exceed a cut."""


@dataclass(frozen=True, slots=True)
class FluidUse:
    """The nodes of one option in a solution: how many, and the pods on them for each class of `wanted`."""

    number: int
    option: NodeOption
    nodes: float
    wanted: Ints
    pods: Floats


@dataclass(frozen=True, slots=True)
class FluidCut:
    """`weights @ pods <= nodes` of an option; a weight per class of its variables."""

    option: int
    weights: Floats


def violated_cuts(requests: Ints, use: Iterable[FluidUse]) -> Iterator[FluidCut]:
    """For each option and resource the cut that a solution exceeds most, if any."""
    for one in use:
        for i, room in enumerate(one.option.free.tolist()):
            sizes = requests[one.wanted, i]
            if not room or not sizes.any():
                continue
            weights = max(
                _functions(sizes, room), key=lambda found: float(found @ one.pods), default=None
            )
            if weights is not None and weights @ one.pods > one.nodes * (1 + SMALLEST_VIOLATION):
                yield FluidCut(one.number, weights)


def _functions(sizes: Ints, room: int) -> Iterator[Floats]:
    """The weights of pods of some sizes on a node with so much room, by each function."""
    for k in ROUNDINGS:
        yield rounded(sizes, room, k)
    thresholds = np.unique(sizes[(sizes > 0) & (2 * sizes <= room)])
    step = max(len(thresholds) // MOST_THRESHOLDS, 1)
    for least in thresholds[::step].tolist():
        yield above_threshold(sizes, room, least)


def rounded(sizes: Ints, room: int, k: int) -> Floats:
    """Shares rounded down to k-ths of which k + 1 would not fit; exact multiples of 1 / (k + 1) stay."""
    parts, rest = np.divmod(sizes * (k + 1), room)
    weights: Floats = np.where(rest == 0, sizes / room, parts / k)
    return weights


def above_threshold(sizes: Ints, room: int, least: int) -> Floats:
    """0 for pods below a size, 1 for those that leave less than it, the share for the others."""
    weights: Floats = np.where(
        sizes < least, 0.0, np.where(sizes > room - least, 1.0, sizes / room)
    )
    return weights
