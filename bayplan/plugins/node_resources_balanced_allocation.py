"""NodeResourcesBalancedAllocation: favour nodes whose resources the pod would bring closer to equal use.

Mirrors pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt
from typing import Any, Self

import numpy as np

from ..api.pod import Pod, PodSpec
from ..api.resources import is_scalar
from ..framework import (
    MAX_SCORE,
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    Handle,
    NodeInfo,
    PreScorePlugin,
    RowScore,
    ScorePlugin,
    Status,
)
from ..table import Floats, Ints, NodeTable, Rows


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Compares how evenly the resources are used with and without the pod: 75 is "no difference"."""

    name = "NodeResourcesBalancedAllocation"
    scope = NODE_ROW
    key_is_spec = True
    by_amounts = True

    def __init__(self, resources: Sequence[str] = ("cpu", "memory")) -> None:
        self._resources = tuple(resources)

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        plugin = cls([resource.name for resource in args.resources]) if args is not None else cls()
        plugin.handle = handle
        return plugin

    def pod_key(self, pod: Pod) -> Hashable:
        wanted = pod.balanced_requests
        return tuple([wanted.get(resource, 0) for resource in self._resources])

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return SUCCESS if self._asks_for_something(pod) else SKIP

    def pre_score_spec(self, spec: PodSpec) -> Status:
        asks = any(spec.requests.get(resource) for resource in self._resources)
        return SUCCESS if asks else SKIP

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        if not self._asks_for_something(pod):
            return np.zeros(table.count(rows), dtype=np.int64)
        wanted = pod.balanced_requests
        counted = tuple([r for r in self._resources if wanted.get(r, 0) or not is_scalar(r)])
        before = table.followed(
            ("balance", counted),
            lambda rows: balance(
                [table.requested[resource][rows] for resource in counted],
                [table.allocatable[resource][rows] for resource in counted],
            ),
            lambda row: _balance_at(table, row, counted),
        )
        gain = self._balance_after(wanted, counted, table, rows)
        gain -= before[rows]
        gain += MAX_SCORE // 2  # not negative: a balance is 50 or more
        gain >>= 1
        gain += MAX_SCORE // 2
        return gain

    def _balance_after(
        self, wanted: Mapping[str, int], counted: Sequence[str], table: NodeTable, rows: Rows
    ) -> Ints:
        """int64 per row: how evenly the resources `counted` are used with the pod."""
        offered = [table.offered(resource, rows) for resource in counted]
        after = [table.requested[r][rows] + wanted.get(r, 0) for r in counted]
        if len(counted) == 2 and offered[0] is not None and offered[1] is not None:
            first, second = after[0].astype(np.float64), after[1].astype(np.float64)
            first /= offered[0]
            second /= offered[1]
            np.minimum(first, 1.0, out=first)
            np.minimum(second, 1.0, out=second)
            return balance_of_two(first, second)
        return balance(after, [table.allocatable[resource][rows] for resource in counted])

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        wanted, allocatable, requested = pod.balanced_requests, node.allocatable, node.requested
        asks = False
        before, after = [], []
        for resource in self._resources:
            amount = wanted.get(resource, 0)
            asks = asks or amount > 0
            capacity = allocatable.get(resource, 0)
            if capacity and (amount or not is_scalar(resource)):
                used = requested.get(resource, 0)
                before.append(used / capacity if used < capacity else 1.0)
                used += amount
                after.append(used / capacity if used < capacity else 1.0)
        if not asks:
            return 0
        gain = balance_of_one(after) - balance_of_one(before)  # -50 to 50
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + gain) // 2

    def row_score(self, pod: Pod, table: NodeTable) -> RowScore | None:
        wanted = pod.balanced_requests
        counted = [r for r in self._resources if wanted.get(r, 0) or not is_scalar(r)]
        if len(counted) != 2 or not self._asks_for_something(pod):
            return None
        first, second = counted
        more_first, more_second = wanted.get(first, 0), wanted.get(second, 0)
        allocatable, requested = table.allocatable.rows, table.requested.rows
        half = MAX_SCORE // 2

        def score(row: int) -> int:
            offered, used = allocatable[row], requested[row]
            here, there = offered.get(first, 0), offered.get(second, 0)
            if not here or not there:
                return half + half // 2  # one resource alone is always in balance
            a, b = used.get(first, 0), used.get(second, 0)
            x = a / here if a < here else 1.0
            y = b / there if b < there else 1.0
            before = int((1 - abs((x - y) / 2)) * MAX_SCORE)
            a += more_first
            b += more_second
            x = a / here if a < here else 1.0
            y = b / there if b < there else 1.0
            return half + (half + int((1 - abs((x - y) / 2)) * MAX_SCORE) - before) // 2

        return score

    def _asks_for_something(self, pod: Pod) -> bool:
        wanted = pod.balanced_requests
        return any(wanted.get(resource) for resource in self._resources)


def balance_of_one(shares: Sequence[float]) -> int:
    """`balance` for one node, given the fraction to which each resource it has is used."""
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = squares = 0.0  # not sum(): from Python 3.12 on it rounds less than upstream does
        for share in shares:
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = sqrt(squares / len(shares))
    return int((1 - deviation) * MAX_SCORE)


def _balance_at(table: NodeTable, row: int, resources: Sequence[str]) -> int:
    """`balance` of one row as it is."""
    offered, requested = table.allocatable.rows[row], table.requested.rows[row]
    shares = []
    for resource in resources:
        capacity = offered.get(resource, 0)
        if capacity:
            used = requested.get(resource, 0)
            shares.append(used / capacity if used < capacity else 1.0)
    return balance_of_one(shares)


def balance(used: Sequence[Ints], capacities: Sequence[Ints]) -> Ints:
    """int64 per row: 100 when all resources are used to the same fraction, less the more they differ.

    A resource that a node does not have is left out. The arithmetic is kept in upstream's order: the result is
    truncated, so the last bit of a float matters.
    """
    shares, present = [], []
    for amount, capacity in zip(used, capacities, strict=True):
        present.append(capacity > 0)
        shares.append(np.minimum(amount / np.maximum(capacity, 1), 1.0))
    number = sum((here.astype(np.int64) for here in present), np.zeros(len(used[0]) if used else 0))
    if len(shares) == 2:
        both = present[0] & present[1]
        return np.where(both, balance_of_two(*shares), MAX_SCORE)
    deviation = _standard_deviation(shares, present, np.maximum(number, 1))
    pair = number == 2
    if pair.any():
        deviation = np.where(pair, _half_distance(shares, present), deviation)
    deviation = np.where(number < 2, 0.0, deviation)
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def balance_of_two(first: Floats, second: Floats) -> Ints:
    """`balance` for two resources that every row has, used to these fractions; `first` is written over."""
    first -= second
    first *= 0.5
    np.abs(first, out=first)
    np.subtract(1.0, first, out=first)
    first *= MAX_SCORE
    return first.astype(np.int64)


def _standard_deviation(shares: list[Floats], present: list[Any], number: Floats) -> Floats:
    total = np.zeros_like(number, dtype=np.float64)
    for share, here in zip(shares, present, strict=True):
        total = total + np.where(here, share, 0.0)
    mean = total / number
    squares = np.zeros_like(total)
    for share, here in zip(shares, present, strict=True):
        squares = squares + np.where(here, (share - mean) * (share - mean), 0.0)
    deviation: Floats = np.sqrt(squares / number)
    return deviation


def _half_distance(shares: list[Floats], present: list[Any]) -> Floats:
    """Half the distance between the two shares that are present, on rows that have exactly two."""
    stacked = np.stack(shares)
    here = np.stack(present)
    highest = np.where(here, stacked, -np.inf).max(axis=0)
    lowest = np.where(here, stacked, np.inf).min(axis=0)
    distance: Floats = np.abs((highest - lowest) / 2)
    return distance
