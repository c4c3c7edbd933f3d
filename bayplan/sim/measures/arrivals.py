"""Arrivals: the allocated share by the requested share, pod by pod.

Pods that end or are preempted are not subtracted: this is the course of a cluster that is filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...api.node import Node
from ...api.pod import Pod
from ..outcomes import NodeUse, PodResult
from .amounts import Floats
from .over_time import known_resources


def arrival_rows(pods: Sequence[PodResult], nodes: Sequence[NodeUse]) -> Iterator[dict[str, Any]]:
    """One row per pod, in the order of the first attempts: the demand so far, and the allocated amounts.

    Both are shares of the nodes' capacity, per resource, and include the use before the run.
    """
    left = [use for use in nodes if use.removed_s is None]
    objects: list[Pod | Node] = [*(use.node for use in left), *(result.pod for result in pods)]
    courses = {name: arrival_course(pods, left, name) for name in known_resources(objects)[:-1]}
    for i, result in enumerate(pods):
        row: dict[str, Any] = {"namespace": result.pod.namespace, "pod": result.pod.name}
        for name, (arrived, allocated) in courses.items():
            row[f"{name}Requested"] = arrived.item(i)
            row[f"{name}Utilisation"] = allocated.item(i)
        yield row


def arrival_course(
    pods: Sequence[PodResult], nodes: Sequence[NodeUse], resource: str
) -> tuple[Floats, Floats]:
    """float64 per pod, in the order of the first attempts: the share that has arrived, and that is allocated."""
    offered = sum(use.node.allocatable.get(resource, 0) for use in nodes) or 1
    before = sum(use.before.get(resource, 0) for use in nodes)
    asked = np.array([result.pod.requests.get(resource, 0) for result in pods], dtype=np.int64)
    is_placed = np.array([result.is_placed for result in pods], dtype=np.bool_)
    arrived = before + np.cumsum(asked)
    return arrived / offered, (before + np.cumsum(np.where(is_placed, asked, 0))) / offered


def at_full_demand(
    pods: Sequence[PodResult], nodes: Sequence[NodeUse], resource: str
) -> float | None:
    """The share allocated when 100 % had arrived: the mean over arrivals that round to it; None if there is none."""
    left = [use for use in nodes if use.removed_s is None]
    arrived, allocated = arrival_course(pods, left, resource)
    found = allocated[np.rint(100 * arrived) == 100]
    return float(found.mean()) if len(found) else None
