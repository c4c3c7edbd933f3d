"""Waits: the times that pods waited for a node, and their slowdowns, as distributions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from ...api.pod_groups import pod_group_of
from ...api.workloads import workload_of
from ..outcomes import PodResult

PERCENTILES = (50, 95, 99)


def latencies(pods: Iterable[PodResult]) -> list[float]:
    """Seconds from creation until the pod had a node, for each pod that got one."""
    return [result.time_s - result.created_s for result in pods if result.is_placed]


def slowdowns(pods: Iterable[PodResult]) -> list[float]:
    """The slowdown of each pod that ran and finished."""
    return [found for result in pods if (found := slowdown(result)) is not None]


def slowdown(result: PodResult) -> float | None:
    """Time from creation to end divided by the time on the node; None for a pod that did not run and finish."""
    if result.finished_s is None or result.finished_s <= result.time_s:
        return None
    return (result.finished_s - result.created_s) / (result.finished_s - result.time_s)


def job_completions(pods: Iterable[PodResult]) -> list[float]:
    """Seconds from the creation of the first pod of a job to the end of its last, for each job that finished.

    A job is a pod group, the pods of one controller, or a pod of its own.
    """
    jobs: dict[Hashable, list[PodResult]] = {}
    for result in pods:
        pod = result.pod
        key: Hashable = pod_group_of(pod) or workload_of(pod)
        jobs.setdefault((pod.namespace, key), []).append(result)
    found = []
    for job in jobs.values():
        ends = [result.finished_s for result in job if result.finished_s is not None]
        is_open = any(r.finished_s is None and r.deleted_s is None for r in job)
        if ends and not is_open:  # pods that were deleted, as with their node, were replaced
            found.append(max(ends) - min(result.created_s for result in job))
    return found


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
