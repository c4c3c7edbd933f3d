"""The score of a placement: how full its nodes would be, taken together, with the pods of a group on them.

Mirrors scorePlacement of pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...api.pod import Pod
from ...api.resources import is_scalar
from ...framework import MAX_SCORE
from ...table import Ints, NodeTable


def most_allocated_together(
    table: NodeTable, rows: Ints, pods: Sequence[Pod], weights: Mapping[str, int]
) -> int:
    """The weighted mean, over resources, of the share that would be in use, from 0 to 100.

    Resources that the nodes lack do not count, nor extended ones that none of the pods asks for.
    """
    points = total_weight = 0
    alike = Counter([id(pod.spec) for pod in pods])
    samples = {id(pod.spec): pod.scoring_requests for pod in pods}
    for resource, weight in weights.items():
        wanted = sum(samples[spec].get(resource, 0) * count for spec, count in alike.items())
        if not wanted and is_scalar(resource):
            continue
        capacity = int(table.allocatable[resource][rows].sum())
        if capacity:
            used = wanted + int(table.scoring_usage[resource][rows].sum())
            points += weight * (min(used, capacity) * MAX_SCORE // capacity)
            total_weight += weight
    return points // total_weight if total_weight else 0
