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
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..compiled_kernel import MODULE, STALE, why_not_compiled
from ..table import ALL, AmountColumns, Ints, NodeTable, Rows
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
"""The value of a row without a node."""
PLACE_SHIFT = 56
NUMBER_MASK = (1 << PLACE_SHIFT) - 1
NOT_GROUPED = -1
"""The group of a refused row."""
REFUSED = -(2**48)
"""A refusal without a status: the points of an infeasible group, or the value of a row in a copy."""


def refusal(place: int, number: int) -> int:
    """The value of a row that the plugin at `place` refuses; `number` stands for its status."""
    return -1 - (place << PLACE_SHIFT | number)


def place_of(value: int) -> int:
    """The place of the plugin that refuses a row of this value."""
    return (-1 - value) >> PLACE_SHIFT


def number_of(value: int) -> int:
    """The number that stands for the status of a refusal."""
    return (-1 - value) & NUMBER_MASK


def rows_to_judge(values: Ints, changed: Ints | None, place: int | None) -> Ints:
    """The changed rows, or all, ascending, that no plugin before `place` refuses; if that is None, no plugin at all."""
    last = DEAD if place is None else refusal(place, 0)
    found = values if changed is None else values[changed]
    wanted = (found >= 0) | ((found <= last) & (found != DEAD))
    return np.flatnonzero(wanted) if changed is None else np.unique(changed[wanted])


def distinct_refusals(values: Ints) -> tuple[NDArray[np.int32], list[int], list[int]]:
    """int32 per row: the number of its refusal, 0 if it has none. Also the refusals from number 1 on, and their numbers
    of rows.
    """
    found = None if compiled is None else compiled.distinct_refusals(values)
    if found is not None:
        return found[0], found[1], found[2]
    numbers = np.zeros(len(values), dtype=np.int32)
    rows = np.flatnonzero((values < 0) & (values != DEAD))
    codes, inverse, sizes = np.unique(values[rows], return_inverse=True, return_counts=True)
    numbers[rows] = inverse + 1
    return numbers, codes.tolist(), sizes.tolist()


class Weighted(NamedTuple):
    """A score rule and the weight of its plugin."""

    rule: ScoreRule
    weight: int


class Best(msgspec.Struct, frozen=True):
    """The highest total (-1 if none), how many rows have it, how many are not refused, the first row that has it."""

    total: int
    ties: int
    feasible: int
    row: int


BestFields = tuple[int, int, int, int]
"""The fields of `Best`, in its order."""


def summarize(values: Ints) -> BestFields:
    """The fields of `Best` for `values`."""
    row = int(values.argmax()) if len(values) else -1
    if row < 0 or values[row] < 0:
        return -1, 0, 0, -1
    best = int(values[row])
    ties, feasible = np.count_nonzero(values == best), np.count_nonzero(values >= 0)
    return best, int(ties), int(feasible), row


class Peaks:
    """Totals of rows, and the highest of them, kept up to date as they change. This form computes it each time.

    With `groups`, int64 per row, also which groups have a row that is not refused.
    """

    def __init__(self, totals: Ints, groups: Ints | None = None) -> None:
        self._totals = totals
        self._groups = groups

    def update(self, rows: Ints | None) -> None:
        """Take over the totals that changed at `rows`, or everywhere."""

    def best(self) -> BestFields:
        """The fields of `Best`."""
        return summarize(self._totals)

    def totals(self) -> Ints:
        """int64 per row: its total; negative where it is refused."""
        return self._totals

    @property
    def total_at(self) -> Callable[[int], int]:
        """Gives the total of one row."""
        return self._totals.item

    def nth_best(self, n: int) -> int:
        """The n-th row, from 0, that has the highest total; there are more than n."""
        return int(np.flatnonzero(self._totals == self._totals.max())[n])

    def present(self) -> int:
        """The groups that have a row which is not refused, as bits."""
        if self._groups is None:
            return 0
        found = np.unique(self._groups[self._totals >= 0])
        return sum(1 << group for group in found.tolist())


MOST_GROUPS = 62
"""Groups that `Peaks` can distinguish."""


def make_peaks(totals: Ints, groups: Ints | None = None) -> Peaks:
    """Peaks of an array that is to be filled; the numbers of groups are up to MOST_GROUPS."""
    peaks: Peaks = (Peaks if compiled is None else compiled.Peaks)(totals, groups)
    return peaks


class JudgeRules(NamedTuple):
    """The rules on amounts for one class of pods."""

    fit: FitRule | None
    place: int
    """That of the fit rule's plugin."""
    scores: Sequence[Weighted]


NO_JUDGE_RULES = JudgeRules(None, 0, ())


class RowJudge:
    """Applies the rules for one class of pods to rows."""

    def __init__(self, table: AmountColumns, rules: JudgeRules) -> None:
        self._table = table
        self._fit = rules.fit
        self._place = rules.place << PLACE_SHIFT
        self._scores = rules.scores
        self._groups: Ints | None = None
        self._group_points: Ints | None = None

    def set_group_points(self, groups: Ints | None, points: Ints | None) -> None:
        """Add the points of its group to each row from now on; `groups` is int64 per row. None adds nothing."""
        self._groups, self._group_points = groups, points

    def judge(
        self, values: Ints, base: Ints, rows: Ints | None, peaks: Peaks | None = None
    ) -> None:
        """Write to `values`, at `rows` or everywhere, the result of the rules on `base`; update `peaks`.

        A refusal in `base` stays unless the fit rule's plugin comes before it and refuses, too.
        """
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
            if self._groups is not None and self._group_points is not None:
                found += np.where(accepted, self._group_points[self._groups[selected]], 0)
            for rule, weight in self._scores:
                points = rule_points(self._table, selected, rule)
                found += np.where(accepted, points * weight, 0)
        values[selected] = found
        if peaks is not None:
            peaks.update(rows)


def make_judge(table: AmountColumns, rules: JudgeRules) -> RowJudge:
    """The judge for rules. It holds as long as `table.size.capacity`."""
    fit, place, scores = rules
    if compiled is None or (fit is not None and len(fit.amounts) > compiled.MOST_PARTS):
        return RowJudge(table, rules)
    share = balance = alignment = None
    for rule, weight in scores:
        if len(rule.parts) > compiled.MOST_PARTS:
            return RowJudge(table, rules)
        if isinstance(rule, ShareRule) and share is None:
            share = (int(rule.kind), weight, rule.heights, rule.parts)
        elif isinstance(rule, BalanceRule) and balance is None:
            balance = (weight, rule.parts, rule.scores_change)
        elif isinstance(rule, AlignmentRule) and alignment is None:
            alignment = (weight, rule.parts)
        else:
            return RowJudge(table, rules)  # a second rule of its kind
    judge: RowJudge = compiled.CompiledJudge(
        place << PLACE_SHIFT,
        (table.allocatable, table.requested, table.scoring_usage, table.pod_count_column.cells),
        None if fit is None else (fit.amounts, fit.left_to_devices, POD_COUNT),
        share,
        balance,
        alignment,
    )
    return judge


def refuse_without_room(
    table: NodeTable, rules: JudgeRules, values: Ints, rows: Ints, more: Callable[[str], Ints]
) -> None:
    """Refuse those of `rows`, each given once, that are too full for the fit rule with `more` in use.

    `more` gives int64 per row of the table for a resource. With more in use a row lacks at least what it lacked
    without, so a refusal by the fit rule is replaced.
    """
    fit, place, _ = rules
    assert fit is not None, "called where there is a fit rule"
    columns = {name: more(name) for name in fit.amounts}
    for row in rows.tolist():
        used = {name: column.item(row) for name, column in columns.items()}
        short, value = shortage_at(table, row, fit, used), values.item(row)
        if short and value != DEAD and (value >= 0 or place_of(value) >= place):
            values[row] = refusal(place, short)


class RowGroups(Peaks):
    """Rows that are not refused, in groups of equal points; the total of a row is its value and those points.

    `ids` has the group of each row, `samples` a row of each group, `sizes` their numbers of rows, None means all are 1.
    `GroupTracker` is the form that follows changes.
    """

    def __init__(self, values: Ints, ids: Ints, samples: Ints, sizes: Ints | None) -> None:
        super().__init__(values)
        self._values, self.ids, self.samples, self.sizes = values, ids, samples, sizes

    def current(self) -> tuple[Rows, Rows, Ints | None]:
        """The numbers of the groups that have rows, a row of each, ascending, and their sizes."""
        is_each = len(self.samples) == len(self.ids)
        return ALL, ALL if is_each else self.samples, self.sizes

    def give(self, groups: Rows, points: Ints) -> None:
        """Give these groups their points; the others are refused."""
        every = np.full(len(self.samples) + 1, REFUSED, dtype=np.int64)  # the last: of no group
        every[:-1][groups] = points
        totals = self._values + every[self.ids]
        self._totals = np.where((self.ids >= 0) & (totals >= 0), totals, -1)


def group_each_row(values: Ints) -> RowGroups:
    """Groups of one row each."""
    rows = np.flatnonzero(values >= 0)
    ids = np.full(len(values), NOT_GROUPED, dtype=np.int64)
    ids[rows] = np.arange(len(rows))
    return RowGroups(values, ids, rows, None)


def group_rows(values: Ints, marks: Sequence[Ints]) -> RowGroups:
    """Group the rows that are not refused by `marks`, int64 per row each: equal marks, one group."""
    tracker = make_tracker(values, marks)
    if tracker is not None:
        _, samples, sizes = tracker.current()
        return RowGroups(values, tracker.ids.astype(np.int64), samples, sizes)
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
