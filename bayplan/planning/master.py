"""Master: how many nodes with which pattern of pods, by column generation, and a bound that no plan is below.

Rows: each class of pods must be covered; each pool keeps its minimum, its maximum and its limits. All rows are of the
form `>=`, so dual values are not negative. For every node option the knapsack gives the highest ratio of dual value to
price; duals divided by the worst ratio are feasible for all patterns, so their value is a lower bound (Farley).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..table import Ints
from .fleet import NodeOption, all_pools
from .knapsack import best_pattern, greedy_pattern, most_copies
from .solver import INFINITY, Covering, cover

Floats = NDArray[np.float64]
SMALLEST_GAIN = 1e-4
"""A pattern must be worth this share more than its price to be added."""
LP_S = 20.0


@dataclass(frozen=True, slots=True)
class _Column:
    option: int
    copies: Ints


@dataclass(slots=True)
class Relaxation:
    """State of the column generation."""

    bound: float = 0.0
    """No plan is below this price."""
    price: float = np.inf
    """The price of the relaxed problem with the patterns so far."""
    is_complete: bool = False
    uncovered: Floats = field(default_factory=lambda: np.zeros(0))
    """How many pods of each class no node of the pools can be had for."""


class Master:
    """The covering problem of one workload.

    `kept_room` is what nodes that stay have left, all together. With a `factor`, so many times the demand must be
    covered, as for a fleet that may lose a zone.
    """

    def __init__(
        self,
        options: Sequence[NodeOption],
        requests: Ints,
        demand: Ints,
        kept_room: Ints | None = None,
        factor: float = 1.0,
    ) -> None:
        self._options, self._requests, self._demand = options, requests, demand
        self._factor = factor
        self._limits = [most_copies(one, requests, demand) for one in options]
        self._kept_room = kept_room
        self._columns: dict[tuple[int, bytes], _Column] = {}
        self._pool_rows = list(self._make_pool_rows())
        self.relaxation = Relaxation()
        self._penalty = 10 * max((one.price for one in options), default=1.0)
        """The price of a pod that no node is had for."""
        self._add_first_patterns()

    def relax(self, deadline: float) -> Iterator[Relaxation]:
        """Generate patterns; yields after each round, with a bound that holds, until no pattern helps."""
        self.relaxation.is_complete = False
        is_exact = False
        while time.monotonic() < deadline:
            problem = self._problem(self._demand * np.float64(self._factor))
            answer = cover(problem, LP_S, is_integer=False)
            if answer is None:
                return
            self.relaxation.price = answer.objective
            self.relaxation.uncovered = answer.values[len(self._columns) :][: len(self._demand)]
            added, ratio = self._price_options(answer.duals, is_exact, deadline)
            if is_exact and np.isfinite(ratio):
                value = float(answer.duals @ problem.least) / max(ratio, 1.0)
                self.relaxation.bound = max(self.relaxation.bound, float(value))
            yield self.relaxation
            if added == 0:
                if is_exact:
                    self.relaxation.is_complete = True
                    return
                is_exact = True
            elif is_exact and added < 3:
                continue
            else:
                is_exact = False

    def round_up(self, growth: float = 0.0) -> Counter[int] | None:
        """Nodes per option of the relaxed problem for the demand and a share more, rounded up to whole numbers.

        The scheduler does not keep to patterns, so that only the numbers count.
        """
        demand = np.ceil(self._demand * np.float64(self._factor + growth) - 1e-9)
        answer = cover(self._problem(demand), LP_S, is_integer=False)
        if answer is None:
            return None
        sums: Counter[int] = Counter()
        for column, value in zip(self._columns.values(), answer.values.tolist(), strict=False):
            sums[column.option] += value
        return Counter({option: int(np.ceil(n - 0.01)) for option, n in sums.items() if n > 0.01})

    def dive(self, deadline: float, growth: float = 0.0) -> Counter[int] | None:
        """Whole numbers of nodes per option with patterns that hold all pods; None if there was no time for it.

        Nodes are fixed step by step: those of which the relaxed problem has one or more, else the one of which it has
        most; the relaxed problem is solved again for the pods that are left.
        """
        left = np.ceil(self._demand * np.float64(self._factor + growth) - 1e-9)
        columns, counts = list(self._columns.values()), Counter[int]()
        while (left > 0).any():
            answer = cover(self._problem(left, counts), LP_S, is_integer=False)
            if answer is None or time.monotonic() > deadline:
                return None
            values = answer.values[: len(columns)]
            whole = np.floor(values + 1e-6)
            if not whole.any():
                if values.max(initial=0.0) < 1e-6:
                    break  # what is left has no node in the pools, or stays on nodes that are kept
                whole[values.argmax()] = 1
            for number in np.flatnonzero(whole):
                counts[columns[number].option] += int(whole[number])
                left = np.maximum(left - columns[number].copies * whole[number], 0)
        return counts

    def _add(self, option: int, copies: Ints) -> bool:
        key = option, copies.tobytes()
        if key in self._columns or not copies.any():
            return False
        self._columns[key] = _Column(option, copies)
        return True

    def _add_first_patterns(self) -> None:
        """Nodes with copies of one class each, then empty ones for pools with a minimum."""
        for number, limits in enumerate(self._limits):
            for i in np.flatnonzero(limits > 0):
                copies = np.zeros(len(limits), dtype=np.int64)
                copies[i] = limits[i]
                self._add(number, copies)
            if self._options[number].pool.minimum:
                empty = np.zeros(len(limits), dtype=np.int64)
                self._columns[number, empty.tobytes()] = _Column(number, empty)

    def _make_pool_rows(self) -> Iterator[tuple[Floats, float]]:
        """Coefficients per option and least value of each row about a pool."""
        for pool in all_pools(self._options):
            member = np.array([one.pool is pool for one in self._options], dtype=float)
            if pool.minimum:
                yield member, float(pool.minimum)
            if pool.maximum is not None:
                yield -member, -float(pool.maximum)
            for name, limit in pool.limits.items():
                sizes = [one.type.capacity.get(name, 0) for one in self._options]
                scale = max(float(limit), 1.0)
                yield -member * np.array(sizes, dtype=float) / scale, -limit / scale

    def _problem(self, demand: Floats, start: Counter[int] | None = None) -> Covering:
        """Patterns, then a penalty for each class that is not covered, then pods on nodes that stay.

        `start` are nodes per option that there are already, which count for the limits of pools.
        """
        counted = (start or Counter[int]()).items()
        pools = [row for row, _ in self._pool_rows]
        count, kept = len(demand), self._kept_room
        room = np.zeros(0) if kept is None else -np.maximum(kept, 0) * self._factor
        scale = np.maximum(-room, 1.0)
        least = np.concatenate(
            [
                demand,
                [value - sum(row[i] * n for i, n in counted) for row, value in self._pool_rows],
                room / scale,
            ]
        ).astype(float)
        columns = [
            np.concatenate([column.copies, [row[column.option] for row in pools], 0 * room])
            for column in self._columns.values()
        ]
        costs = [self._options[column.option].price for column in self._columns.values()]
        beside = np.zeros(len(pools) + len(room))
        for i in range(count):
            columns.append(np.concatenate([np.eye(1, count, i)[0], beside]))
            costs.append(self._penalty)
        if kept is not None:
            for i in range(count):
                use = -self._requests[i] / scale
                columns.append(
                    np.concatenate([np.eye(1, count, i)[0], 0 * beside[: len(pools)], use])
                )
                costs.append(0.0)
        upper = np.full(len(columns), INFINITY)
        return Covering(np.array(costs), columns, least, upper)

    def _price_options(self, duals: Floats, is_exact: bool, deadline: float) -> tuple[int, float]:
        """Add the patterns that are worth more than their price; returns their number and the worst ratio."""
        values = duals[: len(self._demand)]
        others = duals[len(self._demand) : len(self._demand) + len(self._pool_rows)]
        added, worst = 0, 0.0
        for number, one in enumerate(self._options):
            pool_value = sum(
                dual * row[number] for dual, (row, _) in zip(others, self._pool_rows, strict=True)
            )
            found = greedy_pattern(one, self._requests, self._limits[number], values)
            threshold = one.price * (1 + SMALLEST_GAIN)
            if is_exact:
                if time.monotonic() > deadline:
                    return added, np.inf
                exact = best_pattern(one, self._requests, self._limits[number], values)
                found = exact if exact.value > found.value else replace(found, bound=exact.bound)
            worst = max(worst, (found.bound + pool_value) / one.price)
            if found.value + pool_value > threshold:
                added += self._add(number, found.copies)
        return added, worst
