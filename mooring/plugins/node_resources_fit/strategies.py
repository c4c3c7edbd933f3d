"""Scoring strategies of NodeResourcesFit: how good a node's use of its resources would be with the pod on it.

Mirrors pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go.
All divisions are of non-negative integers, so NumPy's floor and Go's truncation agree, except where said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ...api.resources import is_scalar
from ...config.plugin_args import MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, ScoringStrategy
from ...framework import MAX_SCORE, divide
from ...table import Ints, NodeTable, Rows

MAX_UTILIZATION = 100
SHAPE_SCALE = MAX_SCORE // 10  # a shape's scores go from 0 to 10


class Strategy(ABC):
    """A weighted mean, over resources, of points from 0 to 100."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = dict(weights)

    def score(self, wanted: Mapping[str, int], table: NodeTable, rows: Rows) -> Ints:
        """int64 per row of `rows`: the score of the node with a pod asking for `wanted` on it."""
        total = np.zeros(table.count(rows), dtype=np.int64)
        weight_sum = np.zeros_like(total)
        for resource, weight in self._weights.items():
            amount = wanted.get(resource, 0)
            if amount == 0 and is_scalar(resource):
                continue  # an extended resource counts only when the pod asks for it
            capacity = table.allocatable[resource][rows]
            requested = table.scoring_usage[resource][rows] + amount
            points = self.points(requested, capacity, np.maximum(capacity, 1))
            counts = self.counts(points, capacity)
            total += np.where(counts, points, 0) * weight
            weight_sum += np.where(counts, weight, 0)
        return self.mean(total, np.maximum(weight_sum, 1))

    @abstractmethod
    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        """Points for one resource; `divisor` is `capacity`, or 1 where that is 0."""

    def counts(self, points: Ints, capacity: Ints) -> np.ndarray:
        """bool per row: the resource takes part in the mean."""
        return capacity > 0

    def mean(self, total: Ints, weight_sum: Ints) -> Ints:
        """The weighted mean in whole points."""
        mean: Ints = total // weight_sum
        return mean


class LeastAllocated(Strategy):
    """Favours empty nodes."""

    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        points: Ints = np.maximum(capacity - requested, 0) * MAX_SCORE // divisor
        return points


class MostAllocated(Strategy):
    """Favours full nodes."""

    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        points: Ints = np.minimum(requested, capacity) * MAX_SCORE // divisor
        return points


class RequestedToCapacityRatio(Strategy):
    """Favours whatever utilisation the shape, a broken line, says is good."""

    def __init__(self, weights: Mapping[str, int], shape: Sequence[tuple[int, int]]) -> None:
        super().__init__(weights)
        self._shape = [(utilization, score * SHAPE_SCALE) for utilization, score in shape]

    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        used = np.where(
            requested > capacity, MAX_UTILIZATION, requested * MAX_UTILIZATION // divisor
        )
        return broken_line(self._shape, used)

    def counts(self, points: Ints, capacity: Ints) -> np.ndarray:
        # A resource that scores nothing drops out of the mean here.
        return (capacity > 0) & (points > 0)

    def mean(self, total: Ints, weight_sum: Ints) -> Ints:
        # Rounds half up, where the other strategies truncate.
        mean: Ints = (2 * total + weight_sum) // (2 * weight_sum)
        return mean


def broken_line(shape: Sequence[tuple[int, int]], at: Ints) -> Ints:
    """int64 per entry of `at`: the height of the line through the (position, height) points of `shape`."""
    heights = np.full_like(at, shape[-1][1])
    for (left, low), (right, high) in reversed(list(pairwise(shape))):
        # A falling line gives negative numerators: divide truncates toward zero as Go does.
        inside = low + divide((high - low) * (at - left), right - left)
        heights = np.where(at <= right, inside, heights)
    return np.where(at <= shape[0][0], shape[0][1], heights)


def make_strategy(wanted: ScoringStrategy | None) -> Strategy:
    """The strategy that a configuration asks for."""
    if wanted is None:
        return LeastAllocated({"cpu": 1, "memory": 1})
    weights = {resource.name: resource.weight or 1 for resource in wanted.resources}
    if wanted.type == MOST_ALLOCATED:
        return MostAllocated(weights)
    if wanted.type == REQUESTED_TO_CAPACITY_RATIO and wanted.requested_to_capacity_ratio:
        shape = wanted.requested_to_capacity_ratio.shape
        return RequestedToCapacityRatio(weights, [(p.utilization, p.score) for p in shape])
    return LeastAllocated(weights)
