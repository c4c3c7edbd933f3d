"""ClassView: one value per row for the pods of one class: a total, or a refusal.

Stale: the rows in the table's log of row changes; all rows when the raw scores of its `NodePart` changed, or when other
raw groups have feasible rows.
"""

from __future__ import annotations

import numpy as np

from ..amounts.filling import Filling
from ..amounts.kernel import (
    MOST_GROUPS,
    Peaks,
    RowJudge,
    distinct_refusals,
    make_judge,
    make_peaks,
    number_of,
    place_of,
    refuse_without_room,
    rows_to_judge,
)
from ..api.pod import Pod
from ..framework import SUCCESS
from ..framework.fit_status import fit_status
from ..framework.reserved import Reserved
from ..framework.row_statuses import RowStatuses
from ..runtime.plugin_calls import PodCalls
from ..table import Ints
from .class_plan import ClassPlan
from .node_part import NodePart
from .row_answers import add_answers

NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


class ClassView:
    """`values`, int64 per row: 0 or more is the sum of the final scores of plugins whose answers are cached, a negative
    number a refusal (see `amounts.kernel`). `raws` has the raw scores of plugins on rows that normalise.

    If no live plugin has an effect on the pod, these are the totals, ranked in `peaks`. With nominated pods, their
    amounts count as used.
    """

    def __init__(self, plan: ClassPlan, part: NodePart) -> None:
        self.plan = plan
        self.part = part
        self._has_row_plugins = bool(plan.filters.on_row or plan.scores.on_row)
        self.values: Ints = NO_ROWS
        self.peaks: Peaks
        self.raws = {scorer.plugin: NO_ROWS for scorer in plan.scores.on_row if scorer.is_raw}
        self._judge: RowJudge
        """Made with the first rows, as the peaks are."""
        self.has_raw_points = True
        """Whether the values have the points of all raw groups; False if there are too many groups."""
        self.raw_points: Ints = NO_ROWS
        """int64 per raw group of the part: the points that the values have."""
        self.present = -1
        """The raw groups that have feasible rows, as bits, for which these points hold."""
        self._rows_version = -1
        self._raw_groups: Ints | None = NO_ROWS
        """Those of the part for which the values were made."""
        self._statuses: tuple[int, RowStatuses] | None = None

    def refresh(self, calls: PodCalls, reserved: Reserved | None = None) -> None:
        """Judge the stale rows again. PreFilter has run for the pod; `reserved` are the nominated pods that count."""
        part, log = self.part, calls.table.row_changes
        part.refresh(calls)
        if self._rows_version == log.version:
            return
        is_new = len(self.values) != len(part.base) or self._raw_groups is not part.raw_groups
        changed = None if is_new else log.rows_since(self._rows_version)
        self._rows_version = -1  # if a plugin raises, everything stays stale
        if is_new:
            self._start_anew(calls)
        elif changed is not None and 2 * len(changed) > len(part.base):
            changed = None
        self._judge_rows(calls, changed, reserved)
        if part.raw_groups is not None and self.has_raw_points:
            present = self.peaks.present()
            if present != self.present:
                self._set_raw_points(calls, present)
                self._judge_rows(calls, None, reserved)
        self._rows_version, self._raw_groups = log.version, part.raw_groups

    def _start_anew(self, calls: PodCalls) -> None:
        size, groups = len(calls.table), len(self.part.raw_samples)
        self.raws = {plugin: np.zeros(size, dtype=np.int64) for plugin in self.raws}
        self._judge = make_judge(calls.table, self.plan.rules)
        self.has_raw_points = groups <= MOST_GROUPS
        # All groups at first; `refresh` drops the groups that have no feasible row.
        self._set_raw_points(calls, (1 << groups) - 1 if self.has_raw_points else 0)

    def _set_raw_points(self, calls: PodCalls, present: int) -> None:
        """Begin new values, with the points of raw groups when those in `present` have feasible rows."""
        part, groups = self.part, self.part.raw_groups if self.has_raw_points else None
        self.raw_points, self.present = part.raw_points(calls, present), present
        self._judge.set_group_points(groups, self.raw_points)
        self.values = np.empty(len(part.base), dtype=np.int64)
        self.peaks = make_peaks(self.values, groups)

    def _judge_rows(self, calls: PodCalls, changed: Ints | None, reserved: Reserved | None) -> None:
        """Set the values of the `changed` rows, or of all if that is None."""
        plan = self.plan
        if not self._has_row_plugins and reserved is None:
            self._judge.judge(self.values, self.part.base, changed, self.peaks)
            return
        self._judge.judge(self.values, self.part.base, changed)
        if self._has_row_plugins:
            self._call_row_plugins(calls, changed)
        if reserved is not None and plan.rules.fit is not None:
            rows = reserved.among(changed)
            if len(rows):
                refuse_without_room(calls.table, plan.rules, self.values, rows, reserved.usage)
        self.peaks.update(changed)

    def _call_row_plugins(self, calls: PodCalls, changed: Ints | None) -> None:
        filters, scores = self.plan.filters.on_row, self.plan.scores.on_row
        rows = rows_to_judge(self.values, changed, filters[0].place if filters else None)
        if len(rows):
            add_answers(calls, rows, self.values, self.part.statuses, filters, scores, self.raws)

    def statuses(self) -> RowStatuses:
        """The status of each row."""
        known = self._statuses
        if known is not None and known[0] == self._rows_version:
            return known[1]
        numbers, codes, sizes = distinct_refusals(self.values)
        statuses, noted, rules = [SUCCESS], list(self.part.statuses), self.plan.rules
        plugins = {placed.place: placed.plugin.name for placed in self.plan.filters.by_rule}
        for code in codes:
            place, number = place_of(code), number_of(code)
            if rules.fit is not None and place == rules.place:
                statuses.append(fit_status(rules.fit, number).by(plugins[place]))
            else:
                statuses.append(noted[number])
        found = RowStatuses.of(statuses, numbers, [0, *sizes])
        self._statuses = (self._rows_version, found)
        return found

    def filling(self, pod: Pod, is_ranked: bool) -> Filling:
        """Data for the kernel to put pods of this class on rows."""
        is_ranked = is_ranked and not self._has_row_plugins and self.part.raw_groups is None
        return Filling(self._judge, self.values, self.part.base, self.plan.rules, pod, is_ranked)
