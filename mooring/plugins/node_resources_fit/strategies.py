"""Scoring strategies of NodeResourcesFit: how good a node's use of its resources would be with the pod on it.

Mirrors pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go.
All divisions are of non-negative integers, so NumPy's floor and Go's truncation agree, except where said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...api.resources import is_scalar
from ...config.plugin_args import MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, ScoringStrategy
from ...framework import MAX_SCORE, NodeInfo, broken_line
from ...table import Ints, NodeTable, Rows

MAX_UTILIZATION = 100
SHAPE_SCALE = MAX_SCORE // 10  # a shape's scores go from 0 to 10


class Strategy(ABC):
    """A weighted mean, over resources, of points from 0 to 100. Each formula is there for many nodes and for one."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        # Whether the resource is an extended one: those count only when the pod asks for them.
        self._resources = [(name, weight, is_scalar(name)) for name, weight in weights.items()]

    @property
    def resources(self) -> Iterable[str]:
        """The resources that count."""
        return [name for name, _, _ in self._resources]

    def score(
        self,
        wanted: Mapping[str, int],
        table: NodeTable,
        rows: Rows,
        devices: Mapping[str, tuple[Ints, Ints]] | None = None,
    ) -> Ints:
        """int64 per row of `rows`: the score of the node with a pod asking for `wanted` on it.

        `devices` are what stands in for resources on nodes without them: per row how many there are, and in use.
        """
        total = np.zeros(table.count(rows), dtype=np.int64)
        weight_sum = np.zeros_like(total)
        for resource, weight, extended in self._resources:
            amount = wanted.get(resource, 0)
            if amount == 0 and extended:
                continue
            capacity = table.allocatable[resource][rows]
            used = table.scoring_usage[resource][rows]
            if devices and resource in devices:
                there, in_use = devices[resource]
                used = np.where((capacity == 0) & (there > 0), in_use, used)
                capacity = np.where(capacity == 0, there, capacity)
            requested = used + amount
            points = self.points(requested, capacity, np.maximum(capacity, 1))
            counts = (capacity > 0) & self.counts(points)
            total += np.where(counts, points, 0) * weight
            weight_sum += np.where(counts, weight, 0)
        scores: Ints = self.mean(total, np.maximum(weight_sum, 1))
        return scores

    def score_node(self, wanted: Mapping[str, int], node: NodeInfo) -> int:
        """The same for one node."""
        allocatable, used = node.allocatable, node.scoring_usage
        total = weight_sum = 0
        for resource, weight, extended in self._resources:
            amount = wanted.get(resource, 0)
            capacity = allocatable.get(resource, 0)
            if capacity == 0 or (amount == 0 and extended):
                continue
            points = self.points_of_one(used.get(resource, 0) + amount, capacity)
            if self.counts(points):
                total += points * weight
                weight_sum += weight
        return int(self.mean(total, max(weight_sum, 1)))

    @abstractmethod
    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        """Points for one resource; `divisor` is `capacity`, or 1 where that is 0."""

    @abstractmethod
    def points_of_one(self, requested: int, capacity: int) -> int:
        """Points for one resource of one node; `capacity` is not 0."""

    def counts(self, points: Any) -> Any:
        """Whether a resource with these points takes part in the mean."""
        return True

    def mean(self, total: Any, weight_sum: Any) -> Any:
        """The weighted mean in whole points."""
        return total // weight_sum


class LeastAllocated(Strategy):
    """Favours empty nodes."""

    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        points: Ints = np.maximum(capacity - requested, 0) * MAX_SCORE // divisor
        return points

    def points_of_one(self, requested: int, capacity: int) -> int:
        return max(capacity - requested, 0) * MAX_SCORE // capacity

    def score_node(self, wanted: Mapping[str, int], node: NodeInfo) -> int:
        # The default strategy, asked about every changed row: the same sum without a call per resource.
        allocatable, used = node.allocatable, node.scoring_usage
        total = weight_sum = 0
        for resource, weight, extended in self._resources:
            amount = wanted.get(resource, 0)
            capacity = allocatable.get(resource, 0)
            if capacity and (amount or not extended):
                free = capacity - used.get(resource, 0) - amount
                if free > 0:
                    total += free * MAX_SCORE // capacity * weight
                weight_sum += weight
        return total // weight_sum if weight_sum else 0


class MostAllocated(Strategy):
    """Favours full nodes."""

    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        points: Ints = np.minimum(requested, capacity) * MAX_SCORE // divisor
        return points

    def points_of_one(self, requested: int, capacity: int) -> int:
        return min(requested, capacity) * MAX_SCORE // capacity


class RequestedToCapacityRatio(Strategy):
    """Favours whatever utilisation the shape, a broken line, says is good."""

    def __init__(self, weights: Mapping[str, int], shape: Sequence[tuple[int, int]]) -> None:
        super().__init__(weights)
        points = [(utilization, score * SHAPE_SCALE) for utilization, score in shape]
        self._heights = broken_line(points, np.arange(MAX_UTILIZATION + 1, dtype=np.int64))

    def points(self, requested: Ints, capacity: Ints, divisor: Ints) -> Ints:
        used = np.where(
            requested > capacity, MAX_UTILIZATION, requested * MAX_UTILIZATION // divisor
        )
        heights: Ints = self._heights[used]
        return heights

    def points_of_one(self, requested: int, capacity: int) -> int:
        used = MAX_UTILIZATION if requested > capacity else requested * MAX_UTILIZATION // capacity
        return int(self._heights[used])

    def counts(self, points: Any) -> Any:
        # A resource that scores nothing drops out of the mean here.
        return points > 0

    def mean(self, total: Any, weight_sum: Any) -> Any:
        # Rounds half up, where the other strategies truncate.
        return (2 * total + weight_sum) // (2 * weight_sum)


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
