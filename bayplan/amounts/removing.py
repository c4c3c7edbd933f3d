"""Removing: which pods must leave each row so that another pod fits, where only amounts decide.

All pods below a priority are removed; as many as possible are put back, those that a budget protects first, of each
kind the most important first. The pods that cannot come back are the victims. Mirrors SelectVictimsOnNode of
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, and the comparison of nodes in
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..table import Bools, Ints, NodeTable
from ..table.pod_matrix import PodMatrix
from . import kernel
from .rules import POD_COUNT, FitRule

PRIORITY_OFFSET = 2**31
"""Makes every priority positive, so that fewer victims weigh less."""
ROWS_AT_ONCE = 512

Protect = Callable[[Ints], Bools | None]
"""bool [rows, places] of the matrix: removing the pod exceeds a budget; None if no pod of `rows` is protected."""


class Removals(NamedTuple):
    """Result of removing pods from some rows.

    `row` is the one whose victims cost least, of equal ones the first by name, or -1. `costs` are its costs: budgets
    exceeded, highest priority, sum of priorities, number of pods, and the earliest start among those of the highest
    priority, negated. The lowest is best.
    """

    row: int = -1
    costs: tuple[int, ...] = ()
    candidates: int = 0
    """Rows where removing pods helps."""
    harmless: int = 0
    """Those of them where no budget is exceeded."""
    idle: int = 0
    """Rows without a pod that may be removed."""
    short: tuple[Ints, ...] = ()
    """Bits as those of `shortages`, when no row is a candidate: shortages without all pods that may be removed."""

    def joined(self, other: Removals, names: Sequence[str]) -> Removals:
        """The same for the rows of both."""
        best = self
        if self.row < 0 or (
            other.row >= 0 and (other.costs, names[other.row]) < (self.costs, names[self.row])
        ):
            best = other
        return Removals(
            best.row,
            best.costs,
            self.candidates + other.candidates,
            self.harmless + other.harmless,
            self.idle + other.idle,
            self.short + other.short,
        )


class PodRemoval:
    """The removal of pods below `priority`, for pods of one rule; `more` is used on each row in addition."""

    def __init__(
        self,
        table: NodeTable,
        matrix: PodMatrix,
        rule: FitRule,
        priority: int,
        more: Callable[[str], Ints] | None = None,
    ) -> None:
        self._table = table
        self._matrix = matrix
        self._rule = rule
        self._priority = priority
        self._more = more
        self._compiled = self._make_compiled()

    def search(
        self, rows: Ints, start: int, wanted: int, protect: Protect | None = None
    ) -> Removals:
        """Judge `rows` from the one at `start` on, then those before it.

        It ends when there are `wanted` candidates and one of them is harmless.
        """
        if protect is None and self._compiled is not None:
            return self._search_compiled(rows, start, wanted, has_harmless=False, protected=None)
        rows, found = rotated(rows, start), Removals()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            left, protected = wanted - found.candidates, protect(part) if protect else None
            more = self._search(part, left, found.harmless > 0, protected)
            found = found.joined(more, self._table.names)
            if found.harmless and found.candidates >= wanted:
                break
        return found

    def victims(self, row: int, protected: Bools | None) -> tuple[int, list[int]]:
        """Shortages of one row without the pods that may be removed, as bits, and the places of the victims."""
        if self._compiled is not None:
            bits, places = self._compiled.victims(row, _bytes(protected))
            return bits, places
        short, victim = self._remove(np.array([row], dtype=np.int64), protected)
        return short.item(0), np.flatnonzero(victim[0]).tolist()

    def _search(
        self, rows: Ints, wanted: int, has_harmless: bool, protected: Bools | None
    ) -> Removals:
        if self._compiled is not None:
            return self._search_compiled(rows, 0, wanted, has_harmless, protected)
        short, victim = self._remove(rows, protected)
        costs = self._costs(rows, victim, protected)
        is_idle = ~np.asarray(self._lower(rows).any(axis=1))
        is_candidate = np.asarray(victim.any(axis=1))
        is_harmless = is_candidate & (costs[0] == 0)
        enough = (np.cumsum(is_candidate) >= wanted) & (np.cumsum(is_harmless) + has_harmless > 0)
        end = int(enough.argmax()) + 1 if enough.any() else len(rows)
        short[end:] = 0
        candidates, harmless, idle = (
            int(np.count_nonzero(of_rows[:end])) for of_rows in (is_candidate, is_harmless, is_idle)
        )
        left = np.flatnonzero(is_candidate[:end])
        for cost in costs:
            if len(left) > 1:
                left = left[cost[left] == cost[left].min()]
        if not len(left):
            return Removals(idle=idle, short=(short,))
        row = min(rows[left].tolist(), key=self._table.names.__getitem__)
        best = tuple(costs[:, left[0]].tolist())
        return Removals(row, best, candidates, harmless, idle)

    def _search_compiled(
        self, rows: Ints, start: int, wanted: int, has_harmless: bool, protected: Bools | None
    ) -> Removals:
        short, names = np.empty(len(rows), dtype=np.int64), self._table.names
        row, best, candidates, harmless, idle = self._compiled.search(
            rows, start, names, wanted, has_harmless, _bytes(protected), short
        )
        return Removals(row, best, candidates, harmless, idle, () if candidates else (short,))

    def _make_compiled(self) -> Any:
        """The compiled form; None where there is none."""
        amounts, matrix, table = self._rule.amounts, self._matrix, self._table
        if kernel.compiled is None or len(amounts) > kernel.compiled.MOST_PARTS:
            return None
        made = kernel.compiled.PodRemoval(
            matrix.count, matrix.priority, matrix.start_s, matrix.amounts, self._priority
        )
        for resource, wanted in amounts.items():
            made.add_demand(
                table.allocatable[resource],
                table.pod_count if resource == POD_COUNT else table.requested[resource],
                None if self._more is None else self._more(resource),
                wanted,
                matrix.index_of(resource),
                resource in self._rule.left_to_devices,
                resource == POD_COUNT,
            )
        return made

    # In NumPy

    def _remove(self, rows: Ints, protected: Bools | None) -> tuple[Ints, Bools]:
        """Shortages of `rows` that have a pod to remove, and bool [rows, places]: the victims."""
        lower = self._lower(rows)
        free, amounts, short = self._room(rows, lower)
        short[~lower.any(axis=1)] = 0
        lower[short != 0] = False
        if protected is None:
            protected = np.zeros(lower.shape, dtype=np.bool_)
        # The protected pods come back first, then the others, in order of importance; those that stay come last.
        order = np.argsort(np.where(lower, ~protected, 2), axis=1, kind="stable")
        victim = np.zeros(lower.shape, dtype=np.bool_)
        every_row = np.arange(len(order))
        for turn in range(int(lower.sum(axis=1).max(initial=0))):
            place = order[:, turn]
            removable = lower[every_row, place]
            left = free - amounts[every_row, place]
            stays = (left >= self._wanted).all(axis=1) & removable
            free = np.where(stays[:, None], left, free)
            victim[every_row, place] = removable & ~stays
        return short, victim

    def _lower(self, rows: Ints) -> Bools:
        """bool [rows, places]: the pod may be removed."""
        lower: Bools = self._matrix.priority[rows] < self._priority
        return lower

    def _room(self, rows: Ints, lower: Bools) -> tuple[Ints, NDArray[np.int64], Ints]:
        """Free amounts without the lower pods, [rows, resources]; amounts of pods, [rows, places, resources]; bits.

        A resource that is left to devices, or of which there is enough beside all pods, counts as if neither the pods
        nor the node used any.
        """
        table, matrix, rule = self._table, self._matrix, self._rule
        free = np.zeros((len(rows), len(rule.amounts)), dtype=np.int64)
        used = np.zeros((*lower.shape, len(rule.amounts)), dtype=np.int64)
        bits = np.zeros(len(rows), dtype=np.int64)
        for place, (resource, wanted) in enumerate(rule.amounts.items()):
            column, capacity = matrix.index_of(resource), table.allocatable[resource][rows]
            taken = table.pod_count if resource == POD_COUNT else table.requested[resource]
            free[:, place] = capacity - taken[rows]
            if self._more is not None:
                free[:, place] -= self._more(resource)[rows]
            enough = free[:, place] >= wanted
            if resource in rule.left_to_devices:
                enough |= capacity <= 0
            if column is not None:
                used[:, :, place] = matrix.amounts[rows, :, column]
                free[:, place] += np.where(lower, used[:, :, place], 0).sum(axis=1)
            free[enough, place] = wanted
            used[enough, :, place] = 0
            short = free[:, place] < wanted
            never = short & (wanted > capacity) & (resource != POD_COUNT)
            bits |= short.astype(np.int64) << 2 * place | never.astype(np.int64) << 2 * place + 1
        return free, used, bits

    @property
    def _wanted(self) -> Ints:
        return np.array(list(self._rule.amounts.values()), dtype=np.int64)

    def _costs(self, rows: Ints, victim: Bools, protected: Bools | None) -> Ints:
        """int64 [5, rows]: cost of choosing each row."""
        lowest, latest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        priority = self._matrix.priority[rows]
        highest = np.where(victim, priority, lowest).max(axis=1, initial=lowest)
        of_highest = victim & (priority == highest[:, None])
        start_s = np.where(of_highest, self._matrix.start_s[rows], latest)
        exceeded = victim & protected if protected is not None else victim & False
        return np.stack(
            (
                exceeded.sum(axis=1),
                highest,
                np.where(victim, priority + PRIORITY_OFFSET, 0).sum(axis=1),
                victim.sum(axis=1),
                -start_s.min(axis=1, initial=latest),
            )
        )


def rotated(rows: Ints, start: int) -> Ints:
    """The rows from the one at `start` on, then those before it."""
    return np.concatenate((rows[start:], rows[:start]))


def count_short(rule: FitRule, short: Iterable[Ints]) -> dict[str, int]:
    """On how many rows each reason of the rule stands, for the bits of rows."""
    counts: dict[str, int] = {}
    for bits in short:
        if bits.any():
            for place, resource in enumerate(rule.amounts):
                number = int(np.count_nonzero(bits >> 2 * place & 1))
                if number:
                    reason = rule.reasons[resource]
                    counts[reason] = counts.get(reason, 0) + number
    return counts


def _bytes(values: Bools | None) -> NDArray[np.uint8] | None:
    return None if values is None else values.view(np.uint8)
