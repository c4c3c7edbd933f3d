"""The score of a placement: how full its nodes would be, taken together, with the pods of a group on them.

Mirrors scorePlacement of pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...api.pod import Pod
from ...api.resources import is_scalar
from ...framework import MAX_SCORE
from ...table import Ints, NodeTable


def requests_together(pods: Sequence[Pod], resources: Iterable[str]) -> dict[str, int]:
    """Sum of the pods' requests for each resource."""
    return {
        resource: sum(pod.scoring_requests.get(resource, 0) for pod in pods)
        for resource in resources
    }


def most_allocated_together(
    table: NodeTable, rows: Ints, requests: Mapping[str, int], weights: Mapping[str, int]
) -> int:
    """The weighted mean, over resources, of the share that would be in use with `requests`, from 0 to 100.

    Resources that the nodes lack do not count, nor extended ones that are not requested. A node that lacks a resource
    has none of it in use, whatever its pods request.
    """
    points = total_weight = 0
    for resource, weight in weights.items():
        wanted = requests[resource]
        if not wanted and is_scalar(resource):
            continue
        capacities = table.allocatable[resource][rows]
        capacity = int(capacities.sum())
        if capacity:
            usage = table.scoring_usage[resource][rows]
            used = wanted + int(usage[capacities != 0].sum())
            points += weight * (min(used, capacity) * MAX_SCORE // capacity)
            total_weight += weight
    return points // total_weight if total_weight else 0
