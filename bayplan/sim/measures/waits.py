"""Waits: how long pods waited for a node, and how much longer they took for it, as distributions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..outcomes import PodResult

PERCENTILES = (50, 95, 99)


def latencies(pods: Iterable[PodResult]) -> list[float]:
    """Seconds from creation until the pod had a node, for each pod that got one."""
    return [result.time_s - result.created_s for result in pods if result.is_placed]


def slowdowns(pods: Iterable[PodResult]) -> list[float]:
    """Time from creation to end divided by the time on the node, for each pod that ran and finished."""
    return [
        (result.finished_s - result.created_s) / (result.finished_s - result.time_s)
        for result in pods
        if result.finished_s is not None and result.finished_s > result.time_s
    ]


def distribution(name: str, values: list[float]) -> dict[str, float]:
    """Mean, percentiles and maximum by the names of their measures; percentiles are interpolated between two values."""
    if not values:
        return dict.fromkeys(
            (f"mean{name}", *(f"p{each}{name}" for each in PERCENTILES), f"max{name}"), 0.0
        )
    found = {f"mean{name}": float(np.mean(values))}
    for each, value in zip(PERCENTILES, np.percentile(values, PERCENTILES), strict=True):
        found[f"p{each}{name}"] = float(value)
    return {**found, f"max{name}": max(values)}
