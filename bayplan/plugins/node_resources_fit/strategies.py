"""Scoring strategies of NodeResourcesFit: how good a node's use of its resources would be with the pod on it.

Mirrors pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go.
All divisions are of non-negative integers, so NumPy's floor and Go's truncation agree, except where said.

Dividing integers takes NumPy ten times as long as dividing floats, and floats do as well: for whole numbers a and b
with 0 <= a < 2**53 and 0 < b < 2**53, rounding a/b down gives the same before and after it is rounded to float64. Were
it otherwise, a/b would lie below a whole number q+1 and be rounded up to it. It lies at least 1/b below, and numbers
just below q+1 are rounded up only from within (q+1) * 2**-54; so b*(q+1) would be 2**54 or more. But b*q <= a, hence
b*(q+1) <= a+b < 2**54. `NodeTable.offered` hands out amounts that are small enough for that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...api.resources import is_scalar
from ...config.plugin_args import MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, ScoringStrategy
from ...framework import MAX_SCORE, NodeInfo, RowScore, broken_line
from ...table import Floats, Ints, NodeTable, Rows

DeviceUse: TypeAlias = Mapping[str, tuple[Ints, Ints]]
"""By resource, int64 per row: how many devices stand in for it, and how many of them are in use."""

MAX_UTILIZATION = 100
SHAPE_SCALE = MAX_SCORE // 10  # a shape's scores go from 0 to 10

Counted = tuple[str, int, int]
"""A resource that counts, how much of it the pod asks for, and its weight."""


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
        devices: DeviceUse | None = None,
    ) -> Ints:
        """int64 per row of `rows`: the score of the node with a pod asking for `wanted` on it.

        `devices` are what stands in for resources on nodes without them: per row how many there are, and in use.
        """
        counted = [
            (resource, wanted.get(resource, 0), weight)
            for resource, weight, extended in self._resources
            if wanted.get(resource, 0) or not extended
        ]
        quick = self.score_all_there(counted, table, rows) if not devices else None
        return quick if quick is not None else self.score_any(counted, table, rows, devices)

    def score_any(
        self,
        counted: Sequence[Counted],
        table: NodeTable,
        rows: Rows,
        devices: DeviceUse | None = None,
    ) -> Ints:
        """`score` whatever the nodes offer."""
        total = np.zeros(table.count(rows), dtype=np.int64)
        weight_sum = np.zeros_like(total)
        for resource, amount, weight in counted:
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

    def score_all_there(
        self, counted: Sequence[Counted], table: NodeTable, rows: Rows
    ) -> Ints | None:
        """`score` where every node offers every resource, in floats; None when that will not do."""
        return None

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

    def row_score(self, wanted: Mapping[str, int], table: NodeTable) -> RowScore | None:
        """The same row by row, for a pod asking for `wanted`; None: `score_node` does as well."""
        return None

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


class LinearStrategy(Strategy):
    """Points grow with what would be free, or with what would be used, in hundredths of what the node offers."""

    def score_all_there(
        self, counted: Sequence[Counted], table: NodeTable, rows: Rows
    ) -> Ints | None:
        total: Floats | None = None
        weight_sum = 0
        for resource, amount, weight in counted:
            offered = table.offered(resource, rows)
            if offered is None:
                return None
            points = self.share(offered, table.scoring_usage[resource][rows], amount)
            points *= MAX_SCORE
            points /= offered
            np.floor(points, out=points)
            if weight != 1:
                points *= weight
            total = points if total is None else np.add(total, points, out=total)
            weight_sum += weight
        if total is None:
            return None
        if weight_sum != 1:
            total /= weight_sum
        return total.astype(np.int64)  # which cuts off what is behind the point

    @abstractmethod
    def share(self, offered: Floats, used: Ints, amount: int) -> Floats:
        """What counts of one resource: a whole number from 0 to what the node offers."""


class LeastAllocated(LinearStrategy):
    """Favours empty nodes."""

    def share(self, offered: Floats, used: Ints, amount: int) -> Floats:
        # What is too large to be exact is larger than what is offered, also when it is rounded.
        free: Floats = offered - used.astype(np.float64)
        free -= amount
        return np.maximum(free, 0.0, out=free)

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

    def row_score(self, wanted: Mapping[str, int], table: NodeTable) -> RowScore:
        # The default strategy, asked about every changed row.
        wants = [
            (resource, wanted.get(resource, 0), weight)
            for resource, weight, extended in self._resources
            if wanted.get(resource, 0) or not extended
        ]
        allocatable, usage = table.allocatable.rows, table.scoring_usage.rows
        if (
            len(wants) == 2
        ):  # cpu and memory, as by default: without a loop it takes two thirds of the time
            return _least_of_two(wants, allocatable, usage)

        def score(row: int) -> int:
            offered, used = allocatable[row], usage[row]
            total = weight_sum = 0
            for resource, amount, weight in wants:
                capacity = offered.get(resource)
                if capacity:
                    free = capacity - used.get(resource, 0) - amount
                    if free > 0:
                        total += free * MAX_SCORE // capacity * weight
                    weight_sum += weight
            return total // weight_sum if weight_sum else 0

        return score


def _least_of_two(
    wants: Sequence[tuple[str, int, int]],
    allocatable: Sequence[Mapping[str, int]],
    usage: Sequence[Mapping[str, int]],
) -> RowScore:
    """LeastAllocated over two resources, by (resource, amount, weight)."""
    (first, much_first, weight_first), (second, much_second, weight_second) = wants
    weights = weight_first + weight_second

    def score(row: int) -> int:
        offered, used = allocatable[row], usage[row]
        here, there = offered.get(first, 0), offered.get(second, 0)
        free, spare = (
            here - used.get(first, 0) - much_first,
            there - used.get(second, 0) - much_second,
        )
        if free < 0 or not here:
            free = 0
        if spare < 0 or not there:
            spare = 0
        if here and there:
            return (
                free * MAX_SCORE // here * weight_first + spare * MAX_SCORE // there * weight_second
            ) // weights
        if here:
            return free * MAX_SCORE // here
        return spare * MAX_SCORE // there if there else 0

    return score


class MostAllocated(LinearStrategy):
    """Favours full nodes."""

    def share(self, offered: Floats, used: Ints, amount: int) -> Floats:
        taken = used.astype(np.float64)
        taken += amount
        return np.minimum(taken, offered, out=taken)

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
