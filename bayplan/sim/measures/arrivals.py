"""Arrivals: how much was allocated when how much had been asked for, pod by pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...api.node import Node
from ...api.pod import Pod
from ..outcomes import NodeUse, PodResult
from .over_time import known_resources


def arrival_rows(pods: Sequence[PodResult], nodes: Sequence[NodeUse]) -> Iterator[dict[str, Any]]:
    """One row per pod, in the order of the first attempts: the demand that has arrived, and what is allocated.

    Both are shares of what the nodes offer, per resource, with what was in use before the run. What ends or is
    preempted is not subtracted: this is the course of a cluster that is filled.
    """
    left = [use for use in nodes if use.removed_s is None]
    objects: list[Pod | Node] = [*(use.node for use in left), *(result.pod for result in pods)]
    names = known_resources(objects)[:-1]
    offered = {name: sum(use.node.allocatable.get(name, 0) for use in left) for name in names}
    arrived = {name: sum(use.before.get(name, 0) for use in left) for name in names}
    allocated = dict(arrived)
    for result in pods:
        row: dict[str, Any] = {"namespace": result.pod.namespace, "pod": result.pod.name}
        for name in names:
            amount = result.pod.requests.get(name, 0)
            arrived[name] += amount
            allocated[name] += amount if result.is_placed else 0
            whole = offered[name] or 1
            row[f"{name}Requested"] = arrived[name] / whole
            row[f"{name}Utilisation"] = allocated[name] / whole
        yield row
