"""ClassView: one value per row for the pods of one class: a total, or a refusal.

Room for pods that are nominated to a row counts as used. Stale: the rows in the table's log of row changes; all rows
when the raw scores of its `NodePart` changed.
"""

from __future__ import annotations

import numpy as np

from ..amounts.filling import Filling
from ..amounts.kernel import (
    MOST_GROUPS,
    Peaks,
    RowJudge,
    distinct_refusals,
    local_of,
    make_judge,
    make_peaks,
    place_of,
    refuse_beside,
    rows_to_ask,
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
from .row_answers import ask_plugins

NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


class ClassView:
    """`values`, int64 per row: 0 or more is the sum of the final scores of plugins whose answers are cached, a negative
    number a refusal (see `amounts.kernel`). `raws` has the raw scores of plugins on rows that normalise.

    If no live plugin has an effect on the pod, these are the totals, ranked in `peaks`.
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
        self.includes_raws = True
        """Whether the values include all scores of node objects, normalised over the feasible rows."""
        self.present = -1
        """The groups of `part.raw_ids` that have feasible rows, as bits."""
        self.included: Ints = NO_ROWS
        """int64 per group of `part.raw_ids`: the points that are included."""
        self._rows_seen = -1
        self._raw_ids: Ints | None = NO_ROWS
        self._statuses: tuple[int, RowStatuses] | None = None

    def filling(self, pod: Pod, is_ranked: bool) -> Filling:
        """Data for the kernel to put pods of this class on rows."""
        is_ranked = is_ranked and not self._has_row_plugins and self.part.raw_ids is None
        return Filling(self._judge, self.values, self.part.base, self.plan.rules, pod, is_ranked)

    def refresh(self, calls: PodCalls, reserved: Reserved | None = None) -> None:
        """Update the stale rows. PreFilter has run for the pod; `reserved` are the nominated pods that count for it."""
        part, log = self.part, calls.table.row_changes
        part.refresh(calls)
        if self._rows_seen == log.version:
            return
        is_new = len(self.values) != len(part.base) or self._raw_ids is not part.raw_ids
        changed = None if is_new else log.rows_since(self._rows_seen)
        self._rows_seen = -1  # if a plugin raises, everything stays stale
        if is_new:
            self._start_anew(calls)
        elif changed is not None and 2 * len(changed) > len(part.base):
            changed = None
        self._judge_rows(calls, changed, reserved)
        if part.raw_ids is not None and self.includes_raws:
            present = self.peaks.present()
            if present != self.present:
                self._include(calls, present)
                self._judge_rows(calls, None, reserved)
        self._rows_seen, self._raw_ids = log.version, part.raw_ids

    def _start_anew(self, calls: PodCalls) -> None:
        size, groups = len(calls.table), len(self.part.raw_samples)
        self.raws = {plugin: np.zeros(size, dtype=np.int64) for plugin in self.raws}
        self._judge = make_judge(calls.table, self.plan.rules)
        self.includes_raws = groups <= MOST_GROUPS
        # All groups at first; `refresh` drops the groups that have no feasible row.
        self._include(calls, (1 << groups) - 1 if self.includes_raws else 0)

    def _include(self, calls: PodCalls, present: int) -> None:
        """Include the normalised scores of node objects, given the groups that have feasible rows, in new arrays."""
        part, ids = self.part, self.part.raw_ids if self.includes_raws else None
        self.included, self.present = part.points(calls, present), present
        self._judge.add_group_points(ids, self.included)
        self.values = np.empty(len(part.base), dtype=np.int64)
        self.peaks = make_peaks(self.values, ids)

    def _judge_rows(self, calls: PodCalls, changed: Ints | None, reserved: Reserved | None) -> None:
        plan = self.plan
        if not self._has_row_plugins and reserved is None:
            self._judge.judge(self.values, self.part.base, changed, self.peaks)
            return
        self._judge.judge(self.values, self.part.base, changed)
        if self._has_row_plugins:
            self._ask_row_plugins(calls, changed)
        if reserved is not None and plan.rules.fit is not None:
            rows = reserved.among(changed)
            if len(rows):
                refuse_beside(calls.table, plan.rules, self.values, rows, reserved.usage)
        self.peaks.update(changed)

    def _ask_row_plugins(self, calls: PodCalls, changed: Ints | None) -> None:
        filters, scores = self.plan.filters.on_row, self.plan.scores.on_row
        rows = rows_to_ask(self.values, changed, filters[0].place if filters else None)
        if len(rows):
            ask_plugins(calls, rows, self.values, self.part.statuses, filters, scores, self.raws)

    def statuses(self) -> RowStatuses:
        """The status of each row."""
        known = self._statuses
        if known is not None and known[0] == self._rows_seen:
            return known[1]
        numbers, codes, sizes = distinct_refusals(self.values)
        statuses, noted, rules = [SUCCESS], list(self.part.statuses), self.plan.rules
        plugins = {placed.place: placed.plugin.name for placed in self.plan.filters.by_rule}
        for code in codes:
            place, local = place_of(code), local_of(code)
            if rules.fit is not None and place == rules.place:
                statuses.append(fit_status(rules.fit, local).by(plugins[place]))
            else:
                statuses.append(noted[local])
        found = RowStatuses.of(statuses, numbers, [0, *sizes])
        self._statuses = (self._rows_seen, found)
        return found
