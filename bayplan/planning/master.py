"""Master: the number of nodes for each pattern of pods, by column generation, and a lower bound for every plan.

Rows: each class of pods must be covered; each pool keeps its minimum, its maximum and its limits. All rows are of the
form `>=`, so dual values are not negative. For every node option the knapsack gives the highest ratio of dual value to
price; duals divided by the worst ratio are feasible for all patterns, so their value is a lower bound (Farley).

Patterns are searched at a point between the best feasible duals so far, which begin as those of the fluid problem, and
the duals of the last solution: these jump from one round to the next, and a bound made of them alone is poor until the
end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..table import Ints
from .fluid import FluidAnswer, PlanningProblem
from .knapsack import Pattern, best_pattern, greedy_patterns, most_copies
from .solver import ProgramModel, SparseProgram

Floats = NDArray[np.float64]
SMALLEST_GAIN = 1e-4
"""A pattern must be worth this share more than its price to be added; and the share of the bound at which to end."""
INNER_SHARE = 0.5
"""Weight of the best feasible duals against the last ones in the search for patterns."""
LP_S = 20.0


@dataclass(frozen=True, slots=True)
class _Column:
    option: int
    copies: Ints


@dataclass(slots=True)
class Relaxation:
    """State of the column generation."""

    bound: float
    """Lower bound for the price of every plan."""
    price: float = np.inf
    """The price of the relaxed problem with the patterns so far."""
    is_complete: bool = False


class Master:
    """The covering problem of one workload, and the patterns found for it."""

    def __init__(self, problem: PlanningProblem, penalty: float, fluid: FluidAnswer) -> None:
        self._problem, self._penalty = problem, penalty
        whole = np.ceil(problem.demand - 1e-9).astype(np.int64)
        self._limits = [most_copies(one, problem.requests, whole) for one in problem.options]
        self._columns: dict[tuple[int, bytes], _Column] = {}
        self._inner = fluid.duals
        self.relaxation = Relaxation(fluid.price)
        self._model, self._first = self._new_model()
        self._add_first_patterns()

    def relax(self, is_over: Callable[[], bool]) -> Iterator[Relaxation]:
        """Generate patterns; yields after each round, with a bound that holds, until no pattern helps."""
        found, is_exact = self.relaxation, False
        while not is_over():
            answer = self._model.solve(LP_S)
            if answer is None:
                return
            found.price = answer.objective
            if found.bound >= found.price * (1 - SMALLEST_GAIN):
                found.is_complete = True
                return
            if is_exact:
                is_better, added = self._separate(answer.duals, is_over)
            else:
                is_better, added = False, self._add_greedy(answer.duals)
            yield found
            if added + is_better == 0:
                if is_exact:
                    return
                is_exact = True

    def dive(self, is_over: Callable[[], bool]) -> Counter[int] | None:
        """Whole numbers of nodes per option with patterns that hold all pods; None if there was no time for it.

        Nodes are fixed step by step: those of which the relaxed problem has one or more, else the one of which it has
        most; the relaxed problem is solved again for the pods that are left.
        """
        least = self._problem.least()
        classes, rows = len(self._problem.demand), self._problem.pool_rows
        least[:classes] = np.ceil(least[:classes] - 1e-9)
        columns, counts = list(self._columns.values()), Counter[int]()
        model, first = self._new_model()
        for column in columns:
            model.add(self._problem.options[column.option].price, self._entries(column))
        while (least[:classes] > 0).any():
            model.change_least(least)
            answer = model.solve(LP_S)
            if answer is None or is_over():
                return None
            values = answer.values[first:]
            whole = np.floor(values + 1e-6)
            if not whole.any():
                if values.max(initial=0.0) < 1e-6:
                    break  # the rest has no node in the pools, or stays on existing nodes
                whole[values.argmax()] = 1
            for number in np.flatnonzero(whole):
                column, nodes = columns[number], int(whole[number])
                counts[column.option] += nodes
                least[:classes] = np.maximum(least[:classes] - column.copies * nodes, 0)
                for i, row in enumerate(rows):
                    least[classes + i] -= row.per_node[column.option] * nodes
        return counts

    # The program

    def _new_model(self) -> tuple[ProgramModel, int]:
        """A model without patterns, and the number of its variables: pods not covered, pods on nodes that stay."""
        program = SparseProgram(self._problem.least())
        self._problem.add_uncovered(program, self._penalty)
        return ProgramModel(program), len(program.columns)

    def _entries(self, column: _Column) -> Floats:
        """The coefficient of a pattern in every row."""
        entries = np.zeros(self._problem.row_count)
        classes = len(self._problem.demand)
        entries[:classes] = column.copies
        for i, row in enumerate(self._problem.pool_rows):
            entries[classes + i] = row.per_node[column.option]
        return entries

    def _add(self, option: int, copies: Ints) -> bool:
        key = option, copies.tobytes()
        if key in self._columns:
            return False
        column = self._columns[key] = _Column(option, copies)
        self._model.add(self._problem.options[option].price, self._entries(column))
        return True

    def _add_first_patterns(self) -> None:
        """Nodes with copies of one class each, then empty ones for pools with a minimum."""
        for number, limits in enumerate(self._limits):
            for i in np.flatnonzero(limits > 0):
                copies = np.zeros(len(limits), dtype=np.int64)
                copies[i] = limits[i]
                self._add(number, copies)
            if self._problem.options[number].pool.minimum:
                self._add(number, np.zeros(len(limits), dtype=np.int64))

    # Patterns

    def _pool_value(self, duals: Floats, number: int) -> float:
        """Amount that the rows of pools add to the value of a node."""
        first = len(self._problem.demand)
        return sum(
            float(duals[first + i]) * float(row.per_node[number])
            for i, row in enumerate(self._problem.pool_rows)
        )

    def _greedy(self, duals: Floats, number: int) -> list[Pattern]:
        values = duals[: len(self._problem.demand)]
        one = self._problem.options[number]
        return greedy_patterns(one, self._problem.requests, self._limits[number], values)

    def _add_greedy(self, duals: Floats) -> int:
        """Add patterns found by order of value that are worth more than their price; returns how many."""
        count = len(self._problem.options)
        return sum(self._add_greedy_of(duals, duals, number) for number in range(count))

    def _add_greedy_of(self, duals: Floats, outer: Floats, number: int) -> int:
        """Add patterns of an option that are good at `duals` and worth more than their price at the outer ones."""
        added, values = 0, outer[: len(self._problem.demand)]
        price = self._problem.options[number].price
        threshold = price * (1 + SMALLEST_GAIN) - self._pool_value(outer, number)
        for pattern in self._greedy(duals, number):
            if float(values @ pattern.copies) > threshold and pattern.copies.any():
                added += self._add(number, pattern.copies)
        return added

    def _separate(self, outer: Floats, is_over: Callable[[], bool]) -> tuple[bool, int]:
        """Look for the best patterns between the inner and the outer duals; returns whether the bound rose, and how
        many patterns were added."""
        duals = INNER_SHARE * self._inner + (1 - INNER_SHARE) * outer
        classes, least = len(self._problem.demand), self._problem.least()
        added, worst = 0, 0.0
        for number, one in enumerate(self._problem.options):
            if is_over():
                return False, added
            pattern = self._best(duals, number)
            if pattern.copies.any():
                added += self._add_greedy_of(duals, outer, number)
            worst = max(worst, (pattern.bound + self._pool_value(duals, number)) / one.price)
            worth = float(outer[:classes] @ pattern.copies) + self._pool_value(outer, number)
            if worth > one.price * (1 + SMALLEST_GAIN) and pattern.copies.any():
                added += self._add(number, pattern.copies)
        feasible = duals / max(worst, 1.0)
        bound = float(feasible @ least)
        if bound <= self.relaxation.bound * (1 + SMALLEST_GAIN / 10):
            # Without progress inside, the next point is further out.
            self._inner = 0.5 * self._inner + 0.5 * feasible
            self.relaxation.bound = max(bound, self.relaxation.bound)
            return False, added
        self._inner, self.relaxation.bound = feasible, bound
        return True, added

    def _best(self, duals: Floats, number: int) -> Pattern:
        """The most valuable pattern, or nearly, with an upper bound of all."""
        values = duals[: len(self._problem.demand)]
        one = self._problem.options[number]
        least = one.price - self._pool_value(duals, number)
        exact = best_pattern(one, self._problem.requests, self._limits[number], values, least)
        greedy = max(self._greedy(duals, number), key=lambda pattern: pattern.value, default=exact)
        return replace(greedy, bound=exact.bound) if greedy.value > exact.value else exact
