"""Scoring strategies of NodeResourcesFit, as rules on amounts.

Mirrors pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go;
the arithmetic is in `amounts/scoring.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ...amounts import ShareKind, ShareRule
from ...api.resources import is_scalar
from ...config.plugin_args import MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, ScoringStrategy
from ...framework import MAX_SCORE
from ...framework.scores import broken_line
from ...table import Ints

MAX_UTILIZATION = 100
SHAPE_SCALE = MAX_SCORE // 10  # a shape's scores go from 0 to 10


class Strategy:
    """A weighted mean, over resources, of points from 0 to 100; `heights` is for RATIO."""

    def __init__(
        self, kind: ShareKind, weights: Mapping[str, int], heights: Ints | None = None
    ) -> None:
        self._kind = kind
        self._heights = heights
        # Whether the resource is an extended one: those count only when the pod asks for them.
        self._resources = [(name, weight, is_scalar(name)) for name, weight in weights.items()]

    @property
    def resources(self) -> list[str]:
        """The resources that count."""
        return [name for name, _, _ in self._resources]

    @property
    def weights(self) -> dict[str, int]:
        """The resources that count, with their weights."""
        return {name: weight for name, weight, _ in self._resources}

    def rule(self, wanted: Mapping[str, int]) -> ShareRule:
        """The rule for a pod asking for `wanted`."""
        parts = [
            (resource, wanted.get(resource, 0), weight)
            for resource, weight, extended in self._resources
            if not extended or wanted.get(resource)
        ]
        return ShareRule(self._kind, tuple(parts), self._heights)


def least_allocated(weights: Mapping[str, int]) -> Strategy:
    """Favours empty nodes."""
    return Strategy(ShareKind.LEAST, weights)


def most_allocated(weights: Mapping[str, int]) -> Strategy:
    """Favours full nodes."""
    return Strategy(ShareKind.MOST, weights)


def requested_to_capacity_ratio(
    weights: Mapping[str, int], shape: Sequence[tuple[int, int]]
) -> Strategy:
    """Favours the utilisation with the highest points of the shape, a broken line."""
    points = [(utilization, score * SHAPE_SCALE) for utilization, score in shape]
    heights = broken_line(points, np.arange(MAX_UTILIZATION + 1, dtype=np.int64))
    return Strategy(ShareKind.RATIO, weights, heights)


def make_strategy(wanted: ScoringStrategy | None) -> Strategy:
    """The strategy of a configuration."""
    if wanted is None:
        return least_allocated({"cpu": 1, "memory": 1})
    weights = Counter[str]()
    for resource in wanted.resources:  # one that is listed twice counts twice
        weights[resource.name] += resource.weight or 1
    if wanted.type == MOST_ALLOCATED:
        return most_allocated(weights)
    if wanted.type == REQUESTED_TO_CAPACITY_RATIO and wanted.requested_to_capacity_ratio:
        shape = wanted.requested_to_capacity_ratio.shape
        return requested_to_capacity_ratio(weights, [(p.utilization, p.score) for p in shape])
    return least_allocated(weights)
