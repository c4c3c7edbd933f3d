"""Volume scores: how well the volumes that a node offers suit the claims of the pod; behind a feature gate.

Mirrors pkg/scheduler/framework/plugins/volumebinding/scorer.go and Score of volume_binding.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ...api.text.quantity import parse_value
from ...config.plugin_args import UtilizationShapePoint
from ...framework import MAX_SCORE
from ...framework.scores import divide
from ...table import Bools, Ints
from .volume_columns import NONE, VolumeColumns
from .volume_search import FoundVolumes

DEFAULT_SHAPE = ((0, 10), (100, 0))
MAX_UTILIZATION = 100
MAX_SHAPE_SCORE = 10


class CapacityScorer:
    """Turns the share of the offered storage that would be used into a score, by a broken line."""

    def __init__(self, shape: Sequence[UtilizationShapePoint] | None = None) -> None:
        given = [(point.utilization, point.score) for point in shape or ()] or DEFAULT_SHAPE
        scale = MAX_SCORE // MAX_SHAPE_SCORE
        line = [(utilization, score * scale) for utilization, score in given]
        self._heights = _heights(line)

    def score(self, found: FoundVolumes, volumes: VolumeColumns, size: int) -> Ints:
        """int64 per row: the mean over the storage classes of the claims, in whole points.

        Where the pod would take volumes that are there, only those count; else the room for new ones does.
        """
        total = np.zeros(size, dtype=np.int64)
        classes = np.zeros(size, dtype=np.int64)
        for counted, requested, capacity in _by_class(found, volumes, size):
            used = requested * MAX_UTILIZATION // np.maximum(capacity, 1)
            used = np.where((capacity == 0) | (requested > capacity), MAX_UTILIZATION, used)
            total += np.where(counted, self._heights[used], 0)
            classes += counted
        at_least_one = np.maximum(classes, 1)
        mean: Ints = (2 * total + at_least_one) // (2 * at_least_one)  # halves are rounded up
        return mean


Share = tuple[Bools, Ints, Ints]
"""Per row: whether the class counts there, its requested and its offered bytes."""


def _by_class(found: FoundVolumes, volumes: VolumeColumns, size: int) -> Iterator[Share]:
    static: Bools = np.zeros(size, dtype=np.bool_)
    shares: dict[int, Share] = {}
    for binding in found.bindings:
        chosen = binding.numbers != NONE
        if not chosen.any():
            continue
        static |= chosen
        classes, capacities = volumes.offers(binding.numbers)
        for number in np.unique(classes[chosen]).tolist():
            here = chosen & (classes == number)
            asked = np.where(here, binding.claim.requested_bytes, 0)
            _add(shares, number, (here, asked, np.where(here, capacities, 0)))
    yield from shares.values()
    yield from _rooms_by_class(found, ~static)


def _rooms_by_class(found: FoundVolumes, rows: Bools) -> Iterator[Share]:
    shares: dict[str, Share] = {}
    for provision in found.provisions:
        if provision.places is None:
            continue
        here = rows & provision.needed & (provision.places != NONE)
        sizes = [0 if room is None else parse_value(room.capacity) for room in provision.rooms]
        offered = np.array([*sizes, 0], dtype=np.int64)[provision.places]
        asked = np.where(here, provision.claim.requested_bytes, 0)
        name = provision.claim.spec.storage_class_name or ""
        if name in shares:
            counted, before, capacity = shares[name]
            # Not added up: the claims share the room, and the last one's amount counts.
            shares[name] = counted | here, before + asked, np.where(here, offered, capacity)
        else:
            shares[name] = here, asked, np.where(here, offered, 0)
    yield from shares.values()


def _add(shares: dict[int, Share], number: int, share: Share) -> None:
    known = shares.get(number)
    if known is None:
        shares[number] = share
    else:
        shares[number] = known[0] | share[0], known[1] + share[1], known[2] + share[2]


def _heights(line: Sequence[tuple[int, int]]) -> Ints:
    """int64 per whole percent: the height of the line there."""
    at = np.arange(MAX_UTILIZATION + 1, dtype=np.int64)
    heights = np.full_like(at, line[-1][1])
    for (left, low), (right, high) in reversed(list(pairwise(line))):
        # A falling line gives negative numerators: divide truncates toward zero as Go does.
        heights = np.where(
            at <= right, low + divide((high - low) * (at - left), right - left), heights
        )
    return np.where(at <= line[0][0], line[0][1], heights)
