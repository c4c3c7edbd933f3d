"""Removing: which pods must leave each row so that another pod fits, where only amounts decide.

All pods below a priority are removed; as many as possible are put back, those that a budget protects first, of each
kind the most important first. The pods that cannot come back are the victims. Mirrors SelectVictimsOnNode of
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, and the comparison of nodes in
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

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
    """The candidates where no budget is exceeded."""
    idle: int = 0
    """Rows without a pod that may be removed."""
    short: tuple[Ints, ...] = ()
    """Bits as those of `shortages`, when no row is a candidate: shortages without all pods that may be removed."""

    def joined(self, other: Removals, names: Sequence[str]) -> Removals:
        """The results for the rows of both."""
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
    """The removal of pods below `priority`, for pods of one rule; `more` is used on each row in addition.

    The kernel has to be compiled.
    """

    def __init__(
        self,
        table: NodeTable,
        matrix: PodMatrix,
        rule: FitRule,
        priority: int,
        more: Callable[[str], Ints] | None = None,
    ) -> None:
        self._names = table.names
        self._compiled = kernel.compiled.PodRemoval(
            matrix.count, matrix.priority, matrix.start_s, matrix.amounts, priority
        )
        for resource, wanted in rule.amounts.items():
            self._compiled.add_demand(
                table.allocatable[resource],
                table.pod_count if resource == POD_COUNT else table.requested[resource],
                None if more is None else more(resource),
                wanted,
                matrix.index_of(resource),
                resource in rule.left_to_devices,
                resource == POD_COUNT,
            )

    def search(
        self, rows: Ints, start: int, wanted: int, protect: Protect | None = None
    ) -> Removals:
        """Judge `rows` from the one at `start` on, then those before it.

        It ends when there are `wanted` candidates of which at least one is harmless.
        """
        if protect is None:
            return self._search(rows, start, wanted, has_harmless=False, protected=None)
        rows, found = rotated(rows, start), Removals()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part, left = rows[start : start + ROWS_AT_ONCE], wanted - found.candidates
            more = self._search(part, 0, left, found.harmless > 0, protect(part))
            found = found.joined(more, self._names)
            if found.harmless and found.candidates >= wanted:
                break
        return found

    def _search(
        self, rows: Ints, start: int, wanted: int, has_harmless: bool, protected: Bools | None
    ) -> Removals:
        short = np.empty(len(rows), dtype=np.int64)
        row, best, candidates, harmless, idle = self._compiled.search(
            rows, start, self._names, wanted, has_harmless, _bytes(protected), short
        )
        return Removals(row, best, candidates, harmless, idle, () if candidates else (short,))

    def victims(self, row: int, protected: Bools | None) -> tuple[int, list[int]]:
        """Shortages of one row without the pods that may be removed, as bits, and the places of the victims."""
        bits, places = self._compiled.victims(row, _bytes(protected))
        return bits, places


def rotated(rows: Ints, start: int) -> Ints:
    """The rows from the one at `start` on, then those before it."""
    return np.concatenate((rows[start:], rows[:start]))


def count_short(rule: FitRule, short: Iterable[Ints]) -> dict[str, int]:
    """Number of rows per reason of the rule, for the bits of rows."""
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
