"""Fairness: the parts that namespaces got of what they asked for, by their dominant shares.

The dominant share of a namespace is the largest of its shares of each resource (Ghodsi et al., NSDI 2011). Shares are
means over the time of the run; without time, those at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

from ..outcomes import NodeUse, PodResult
from .waits import slowdown

AmountSeconds: TypeAlias = defaultdict[str, float]
"""By resource: amounts times seconds."""


def jain_index(values: Sequence[float]) -> float:
    """Jain's index: 1 when all values are equal, 1/n when one of n has all; 1 without values."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def measure_fairness(
    pods: Sequence[PodResult], nodes: Sequence[NodeUse], end_s: float
) -> dict[str, float]:
    """The measures over namespaces by name; empty when there is only one."""
    got: dict[str, AmountSeconds] = {}
    asked: dict[str, AmountSeconds] = {}
    for result in pods:
        namespace = result.pod.namespace
        mine = got.setdefault(namespace, defaultdict(float))
        wished = asked.setdefault(namespace, defaultdict(float))
        ran, waited = _times(result, end_s)
        for name, amount in result.pod.requests.items():
            mine[name] += amount * ran
            wished[name] += amount * (ran + waited)
    if len(got) < 2:
        return {}
    offered = _offered(nodes, end_s)
    shares = {name: _dominant(amounts, offered) for name, amounts in got.items()}
    wishes = {name: _dominant(amounts, offered) for name, amounts in asked.items()}
    found = {
        "namespaceFairness": jain_index([shares[n] / wish for n, wish in wishes.items() if wish]),
        "maxDominantShare": max(shares.values()),
    }
    slow = _mean_slowdowns(pods)
    return {**found, "slowdownFairness": jain_index(slow)} if len(slow) > 1 else found


def _times(result: PodResult, end_s: float) -> tuple[float, float]:
    """Seconds with a node and seconds of waiting for it; without time, 1 for the one that is true."""
    if not end_s:
        return float(result.is_placed), float(not result.is_placed)
    if not result.is_placed:
        return 0.0, end_s - result.created_s
    ends = [at_s for at_s in (result.finished_s, result.deleted_s) if at_s is not None]
    return min(ends, default=end_s) - result.time_s, result.time_s - result.created_s


def _offered(nodes: Iterable[NodeUse], end_s: float) -> AmountSeconds:
    """Amounts of all nodes, times the seconds that each was there."""
    found: AmountSeconds = defaultdict(float)
    for use in nodes:
        until_s = end_s if use.removed_s is None else use.removed_s
        seconds = until_s - (use.added_s or 0.0) if end_s else float(use.removed_s is None)
        for name, amount in use.node.allocatable.items():
            found[name] += amount * seconds
    return found


def _dominant(amounts: Mapping[str, float], offered: Mapping[str, float]) -> float:
    return max(
        (amount / offered[name] for name, amount in amounts.items() if offered.get(name)),
        default=0.0,
    )


def _mean_slowdowns(pods: Iterable[PodResult]) -> list[float]:
    """The mean slowdown of each namespace with pods that ran and finished."""
    by_namespace: dict[str, list[float]] = defaultdict(list)
    for result in pods:
        if (found := slowdown(result)) is not None:
            by_namespace[result.pod.namespace].append(found)
    return [fmean(values) for values in by_namespace.values()]
