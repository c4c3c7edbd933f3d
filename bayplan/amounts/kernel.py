"""Kernel: the loops over all rows, compiled where the extension module is there, in NumPy otherwise.

`KERNEL` names the form in use. Both give the same numbers; a property test holds them to that.

There is a value per row for pods of one class: 0 or more is the total, `DEAD` a row without a node, any other negative
number a refusal (`refusal`): the place of the first plugin that refuses the row, and a number per distinct status.
Of two refusals the one of the earlier plugin is the larger number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..compiled_kernel import MODULE, STALE, why_not_compiled
from ..table import ALL, AmountColumns, Bools, Ints, NodeTable, Rows
from .fitting import shortage_at, shortages
from .rules import POD_COUNT, AlignmentRule, BalanceRule, FitRule, ScoreRule, ShareRule
from .scoring import rule_points

compiled: Any = None
_why_not = why_not_compiled()
if _why_not is None:
    with suppress(ImportError):  # compiled for another Python, or incomplete
        compiled = import_module(MODULE)
elif _why_not is STALE:  # its functions may take other arguments than are given to them
    warnings.warn(f"NumPy is used, which is slower: {STALE}", RuntimeWarning, stacklevel=2)

KERNEL = "NumPy" if compiled is None else "compiled"

DEAD = -(2**63)
PLACE_SHIFT = 56
LOCAL_MASK = (1 << PLACE_SHIFT) - 1
NOT_GROUPED = -1
REFUSED = -(2**48)
"""Marks a group of rows as infeasible."""
FEW = 8
"""Rows up to which one by one is quicker than NumPy."""


def refusal(place: int, local: int) -> int:
    """The value of a row that the plugin at `place` refuses with its status number `local`."""
    return -1 - (place << PLACE_SHIFT | local)


def place_of(value: int) -> int:
    """The place of the plugin that refuses a row of this value."""
    return (-1 - value) >> PLACE_SHIFT


def local_of(value: int) -> int:
    """The status number of a refusal."""
    return (-1 - value) & LOCAL_MASK


class RowJudge(Protocol):
    """Applies the rules for one class of pods to rows."""

    def add_group_points(self, groups: Ints | None, included: Ints | None) -> None:
        """Add the points in `included` of the group of a row from now on; `groups` is int64 per row, None means
        nothing.
        """

    def judge(
        self, values: Ints, base: Ints, rows: Ints | None, peaks: Peaks | None = None
    ) -> None:
        """Write to `values`, at `rows` or everywhere, the result of the rules on `base`; update `peaks`.

        A refusal in `base` stays unless the fit rule's plugin comes before it and refuses, too.
        """


class Weighted(NamedTuple):
    """A score rule and the weight of its plugin."""

    rule: ScoreRule
    weight: int


class Best(msgspec.Struct, frozen=True):
    """The highest total (-1: none), how many rows have it, how many rows are not refused, the first row that has it."""

    total: int
    ties: int
    feasible: int
    row: int


BestFields = tuple[int, int, int, int]
"""The fields of `Best`, in its order."""


class Peaks(Protocol):
    """The highest of some values, kept up to date as they change."""

    def update(self, values: Ints, rows: Ints | None) -> None:
        """Take over `values` at `rows`, or everywhere."""

    def best(self, values: Ints) -> BestFields:
        """The fields of `Best`."""

    def nth_best(self, values: Ints, n: int) -> int:
        """The n-th row, from 0, that has the highest value; there are more than n."""

    def present(self) -> int:
        """The groups that have a row which is not refused, as bits."""


class NumPyPeaks:
    """Peaks, in NumPy: computed each time."""

    def __init__(self, groups: Ints | None) -> None:
        self._groups = groups
        self._values: Ints = np.zeros(0, dtype=np.int64)

    def update(self, values: Ints, rows: Ints | None) -> None:
        self._values = values

    def best(self, values: Ints) -> BestFields:
        return summarize(values)

    def nth_best(self, values: Ints, n: int) -> int:
        return int(np.flatnonzero(values == values.max())[n])

    def present(self) -> int:
        if self._groups is None:
            return 0
        found = np.unique(self._groups[self._values >= 0])
        return sum(1 << group for group in found.tolist())


MOST_GROUPS = 62
"""Groups that `Peaks` can distinguish."""


def make_peaks(size: int, groups: Ints | None = None) -> Peaks:
    """Peaks for arrays of this size, whose rows are in groups with numbers up to MOST_GROUPS."""
    peaks: Peaks = NumPyPeaks(groups) if compiled is None else compiled.Peaks(size, groups)
    return peaks


class JudgeRules(NamedTuple):
    """The rules on amounts for one class of pods."""

    fit: FitRule | None
    place: int
    """That of the fit rule's plugin."""
    scores: Sequence[Weighted]


NO_RULES = JudgeRules(None, 0, ())


class NumPyJudge:
    """RowJudge, in NumPy."""

    def __init__(self, table: AmountColumns, rules: JudgeRules) -> None:
        self._table = table
        self._fit = rules.fit
        self._place = rules.place << PLACE_SHIFT
        self._scores = rules.scores
        self._groups: Ints | None = None
        self._included: Ints | None = None

    def add_group_points(self, groups: Ints | None, included: Ints | None) -> None:
        self._groups, self._included = groups, included

    def judge(
        self, values: Ints, base: Ints, rows: Ints | None, peaks: Peaks | None = None
    ) -> None:
        selected: Rows = ALL if rows is None else rows
        found = base[selected]
        if rows is None:
            found = found.copy()
        if self._fit is not None:
            bits = shortages(self._table, selected, self._fit)
            codes = -1 - (self._place | bits)
            takes = (bits != 0) & (found != DEAD) & ((found >= 0) | (codes > found))
            found[takes] = codes[takes]
        if self._scores or self._groups is not None:
            accepted = found >= 0
            if self._groups is not None and self._included is not None:
                found += np.where(accepted, self._included[self._groups[selected]], 0)
            for rule, weight in self._scores:
                points = rule_points(self._table, selected, rule)
                found += np.where(accepted, points * weight, 0)
        values[selected] = found
        if peaks is not None:
            peaks.update(values, rows)


def make_judge(table: AmountColumns, rules: JudgeRules) -> RowJudge:
    """The judge for rules. It holds as long as `table.size.capacity`."""
    fit, place, scores = rules
    if compiled is None or (fit is not None and len(fit.amounts) > compiled.MOST_PARTS):
        return NumPyJudge(table, rules)
    share = balance = alignment = None
    for rule, weight in scores:
        if len(rule.parts) > compiled.MOST_PARTS:
            return NumPyJudge(table, rules)
        if isinstance(rule, ShareRule) and share is None:
            share = (int(rule.kind), weight, rule.heights, rule.parts)
        elif isinstance(rule, BalanceRule) and balance is None:
            balance = (weight, rule.parts, rule.scores_change)
        elif isinstance(rule, AlignmentRule) and alignment is None:
            alignment = (weight, rule.parts)
        else:
            return NumPyJudge(table, rules)  # a second rule of its kind
    judge: RowJudge = compiled.CompiledJudge(
        place << PLACE_SHIFT,
        (table.allocatable, table.requested, table.scoring_usage, table.pod_count_column.cells),
        None if fit is None else (fit.amounts, fit.left_to_devices, POD_COUNT),
        share,
        balance,
        alignment,
    )
    return judge


def refuse_beside(
    table: NodeTable, rules: JudgeRules, values: Ints, rows: Ints, more: Callable[[str], Ints]
) -> None:
    """Refuse those of `rows`, each given once, in `values` that lack something once there is `more` in use.

    `more` is per row of the table. With more in use a row lacks at least what it lacked without, so a refusal by the
    fit rule is replaced.
    """
    fit, place, _ = rules
    assert fit is not None, "called where there is a fit rule"
    if len(rows) <= FEW:  # NumPy has a fixed cost per call
        columns = {name: more(name) for name in fit.amounts}
        for row in rows.tolist():
            used = {name: column.item(row) for name, column in columns.items()}
            short, value = shortage_at(table, row, fit, used), values.item(row)
            if short and value != DEAD and (value >= 0 or place_of(value) >= place):
                values[row] = refusal(place, short)
        return
    bits = shortages(table, rows, fit, more)
    before = values[rows]
    is_first = (before >= 0) | (-1 - before >> PLACE_SHIFT >= place)
    takes = (bits != 0) & is_first & (before != DEAD)
    values[rows[takes]] = (-1 - (place << PLACE_SHIFT | bits))[takes]


def summarize(values: Ints) -> BestFields:
    """The fields of `Best` for `values`."""
    row = int(values.argmax()) if len(values) else -1
    if row < 0 or values[row] < 0:
        return -1, 0, 0, -1
    best = int(values[row])
    ties, feasible = np.count_nonzero(values == best), np.count_nonzero(values >= 0)
    return best, int(ties), int(feasible), row


class RowTotals(Protocol):
    """A total for each row."""

    def best(self) -> BestFields:
        """The fields of `Best`, of the totals."""

    def totals(self) -> Ints:
        """int64 per row: its total; negative where it is refused."""

    @property
    def total_at(self) -> Callable[[int], int]:
        """Gives the total of one row."""

    def nth_best(self, n: int) -> int:
        """The n-th row, from 0, that has the highest total; there are more than n."""


class Groups(RowTotals, Protocol):
    """Rows that are not refused, in groups of equal points; the total of a row is its value and those points."""

    def current(self) -> tuple[Rows, Rows, Ints | None]:
        """The numbers of the groups that have rows, a row of each, ascending, and their sizes; None means all are 1."""

    def give(self, groups: Rows, points: Ints) -> None:
        """Give these groups their points; the others are refused."""


class RowGroups:
    """Groups, found for one pod: `ids` has the group of each row. `GroupTracker` is the form that follows changes."""

    def __init__(self, values: Ints, ids: Ints, samples: Ints, sizes: Ints) -> None:
        self._values, self.ids, self.samples, self.sizes = values, ids, samples, sizes
        self._points = np.zeros(len(samples), dtype=np.int64)
        self._totals: Ints | None = None

    def current(self) -> tuple[Rows, Rows, Ints | None]:
        return ALL, self.samples, self.sizes

    def give(self, groups: Rows, points: Ints) -> None:
        self._points = np.full(len(self._points), REFUSED, dtype=np.int64)
        self._points[groups] = points
        self._totals = None

    def best(self) -> BestFields:
        self._totals, best = combine(self._values, self.ids, self._points)
        return best

    def totals(self) -> Ints:
        if self._totals is None:
            self.best()
        assert self._totals is not None, "computed with the best"
        return self._totals

    @property
    def total_at(self) -> Callable[[int], int]:
        return self.totals().item

    def nth_best(self, n: int) -> int:
        totals = self.totals()
        return int(np.flatnonzero(totals == totals.max())[n])


class EachRow(RowGroups):
    """Groups of one row each."""

    def __init__(self, values: Ints) -> None:
        rows = np.flatnonzero(values >= 0)
        ids = np.arange(len(values), dtype=np.int64)
        self._rows: Rows = ALL if len(rows) == len(ids) else rows
        super().__init__(values, ids, ids, ids)

    def current(self) -> tuple[Rows, Rows, Ints | None]:
        return self._rows, self._rows, None


def group_rows(values: Ints, marks: Sequence[Ints]) -> RowGroups:
    """Group the rows that are not refused by `marks`, int64 per row each: equal marks, one group."""
    if compiled is not None:
        found = compiled.group_rows(values, marks)
        if found is not None:
            return RowGroups(values, *found)
    rows = np.flatnonzero(values >= 0)
    keys = _combined([mark[rows] for mark in marks], len(rows))
    _, first, numbers, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)  # groups in the order of their first rows
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ids = np.full(len(values), NOT_GROUPED, dtype=np.int64)
    ids[rows] = rank[numbers]
    return RowGroups(values, ids, rows[first[order]], sizes[order].astype(np.int64))


def make_tracker(values: Ints, marks: Sequence[Ints]) -> Any:
    """Groups that follow changed rows, as `group_rows` finds them, and the best row of each; see `_groups.pxi`.

    None where there is no quick form of that.
    """
    if compiled is None:
        return None
    try:
        return compiled.GroupTracker(values, marks)
    except OverflowError:
        return None


def add_points(groups: Any, column: Ints, more: Ints) -> None:
    """Add to the points of tracked groups the entries of `more` at the number in the `column` of their rows."""
    compiled.add_points(groups, column, more)


def combine(values: Ints, ids: Ints, points: Ints) -> tuple[Ints, BestFields]:
    """int64 per row: its value and the points of its group; -1 where one of both is a refusal."""
    if compiled is not None:
        totals = np.empty(len(values), dtype=np.int64)
        return totals, compiled.combine(values, ids, points, totals)
    totals = np.where((ids >= 0) & (values >= 0), values + np.append(points, REFUSED)[ids], -1)
    np.maximum(totals, -1, out=totals)
    return totals, summarize(totals)


def _combined(marks: Sequence[Ints], size: int) -> Ints:
    """int64 per row: equal where all `marks`, each an array of that `size`, are equal."""
    combined = np.zeros(size, dtype=np.int64)
    if not size:
        return combined
    span = 1
    for mark in marks:
        numbers = mark.astype(np.int64)
        numbers -= numbers.min()
        width = int(numbers.max()) + 1
        if span * width > 2**62:
            combined, span = np.unique(combined, return_inverse=True)[1], size
            numbers = np.unique(numbers, return_inverse=True)[1]
            width = int(numbers.max()) + 1
        combined = combined * width + numbers
        span *= width
    return combined


def rows_of_numbers(numbers: NDArray[np.int32], wanted: Bools) -> Ints:
    """The rows, ascending, whose number is `wanted`; `wanted` is bool per number."""
    if compiled is not None:
        rows: Ints = compiled.rows_of_numbers(numbers, wanted.view(np.uint8))
        return rows
    return np.flatnonzero(wanted[numbers])


def rows_to_ask(values: Ints, changed: Ints | None, place: int | None) -> Ints:
    """The changed rows, or all, that no plugin before `place` refuses, ascending; None for those that no plugin
    refuses.
    """
    last = DEAD if place is None else refusal(place, 0)
    if compiled is not None:
        rows: Ints = compiled.rows_to_ask(values, changed, last)
        return rows
    found = values if changed is None else values[changed]
    wanted = (found >= 0) | ((found <= last) & (found != DEAD))
    return np.flatnonzero(wanted) if changed is None else np.unique(changed[wanted])


class Refusals(NamedTuple):
    """int32 per row: the number of its refusal, 0: none. From number 1 on: the refusals, a row of each, their sizes."""

    numbers: NDArray[np.int32]
    codes: list[int]
    samples: list[int]
    sizes: list[int]


def distinct_refusals(values: Ints) -> Refusals:
    """The refusals among `values`, each distinct one once."""
    if compiled is not None:
        found = compiled.distinct_refusals(values)
        if found is not None:
            return Refusals(*found)
    numbers = np.zeros(len(values), dtype=np.int32)
    rows = np.flatnonzero((values < 0) & (values != DEAD))
    codes, first, inverse, sizes = np.unique(
        values[rows], return_index=True, return_inverse=True, return_counts=True
    )
    numbers[rows] = inverse + 1
    return Refusals(numbers, codes.tolist(), rows[first].tolist(), sizes.tolist())
