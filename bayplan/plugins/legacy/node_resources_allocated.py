"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated, RequestedToCapacityRatio: how full a node would be.

Mirrors pkg/scheduler/framework/plugins/noderesources/{resource_allocation,least_allocated,most_allocated,
requested_to_capacity_ratio}.go of v1.20. NodeResourcesFit scores by the same ideas since, with other details: here
every configured resource counts, whether the node has it and the pod asks for it or not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ...api.pod import Pod, PodSpec
from ...api.resources import CPU, PODS, parse_amounts
from ...api.text.quantity import nano_to_milli, nano_to_value
from ...config.plugin_args import (
    AllocatedArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
)
from ...errors import InputError
from ...framework import MAX_SCORE, NODE_ROW, CycleState, Handle, ScorePlugin, typed_args
from ...framework.scores import MAX_UTILIZATION, shape_heights
from ...table import Ints, NodeTable, Rows


class AllocationScorer(ScorePlugin):
    """A weighted mean, over resources, of points from 0 to 100."""

    scope = NODE_ROW
    args_type: ClassVar[type[Any]] = AllocatedArgs

    def __init__(self, weights: Mapping[str, int]) -> None:
        if not weights:
            raise InputError("resources not found")
        self._weights = dict(weights)

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        plugin = cls(weights_of(typed_args(cls.args_type, args).resources))
        plugin.handle = handle
        return plugin

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        wanted = incoming_requests(pod.spec)
        total = np.zeros(table.count(rows), dtype=np.int64)
        weight_sum = np.zeros_like(total)
        for resource, weight in self._weights.items():
            capacity = requested = np.zeros_like(total)
            if resource != PODS:  # these plugins do not count `pods` as a resource
                capacity = table.allocatable[resource][rows]
                requested = table.scoring_usage[resource][rows] + wanted.get(resource, 0)
            points = self.points(requested, capacity)
            total += points * weight
            weight_sum += np.where(self.counts(points), weight, 0)
        return self.mean(total, np.maximum(weight_sum, 1))

    @abstractmethod
    def points(self, requested: Ints, capacity: Ints) -> Ints:
        """int64 per node: points for one resource."""

    def counts(self, points: Ints) -> Any:
        """bool per node: a resource with these points takes part in the mean."""
        return True

    def mean(self, total: Ints, weight_sum: Ints) -> Ints:
        """The weighted mean in whole points."""
        mean: Ints = total // weight_sum
        return mean


class NodeResourcesLeastAllocated(AllocationScorer):
    """Favours empty nodes."""

    name = "NodeResourcesLeastAllocated"

    def points(self, requested: Ints, capacity: Ints) -> Ints:
        free = np.maximum(capacity - requested, 0)
        points: Ints = free * MAX_SCORE // np.maximum(capacity, 1)
        return points


class NodeResourcesMostAllocated(AllocationScorer):
    """Favours full nodes."""

    name = "NodeResourcesMostAllocated"

    def points(self, requested: Ints, capacity: Ints) -> Ints:
        used = np.minimum(requested, capacity)
        points: Ints = used * MAX_SCORE // np.maximum(capacity, 1)
        return points


class RequestedToCapacityRatio(AllocationScorer):
    """Favours the utilisation with the highest points of the shape, a broken line."""

    name = "RequestedToCapacityRatio"
    args_type = RequestedToCapacityRatioArgs

    def __init__(self, weights: Mapping[str, int], shape: Sequence[tuple[int, int]]) -> None:
        # A weight that was not given is 1 here; the other two take it as it is.
        super().__init__({resource: weight or 1 for resource, weight in weights.items()})
        if not shape:
            raise InputError("shape: expected at least one point; got none")
        self._heights = shape_heights(shape)

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        given = typed_args(RequestedToCapacityRatioArgs, args)
        shape = [(point.utilization, point.score) for point in given.shape]
        plugin = cls(weights_of(given.resources), shape)
        plugin.handle = handle
        return plugin

    def points(self, requested: Ints, capacity: Ints) -> Ints:
        # The free share is rounded down, so the used share is rounded up; a resource that the node lacks counts as
        # used up.
        free = np.maximum(capacity - requested, 0)
        used = MAX_UTILIZATION - free * MAX_UTILIZATION // np.maximum(capacity, 1)
        heights: Ints = self._heights[used]
        return heights

    def counts(self, points: Ints) -> Any:
        # A resource that scores nothing drops out of the mean.
        return points > 0

    def mean(self, total: Ints, weight_sum: Ints) -> Ints:
        # Rounds half up, where the other two truncate.
        mean: Ints = (2 * total + weight_sum) // (2 * weight_sum)
        return mean


def weights_of(resources: Iterable[ResourceSpec]) -> dict[str, int]:
    """The weights by resource; of a resource given twice the last counts."""
    return {resource.name: resource.weight for resource in resources}


def incoming_requests(spec: PodSpec) -> Mapping[str, int]:
    """Requests of a pod that is to be placed.

    v1.20 read the overhead of cpu in whole cores and added it to millicores; reproduced, because it affects scores.
    """
    overhead = parse_amounts(spec.overhead).get(CPU, 0)
    if not overhead:
        return spec.scoring_requests
    slip = nano_to_value(overhead) - nano_to_milli(overhead)
    return {**spec.scoring_requests, CPU: spec.scoring_requests.get(CPU, 0) + slip}
