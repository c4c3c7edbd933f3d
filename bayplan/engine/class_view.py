"""ClassView: one value per row for the pods of one class: a total, or a refusal.

Room for pods that are nominated to a row counts as used. Stale: the rows in the table's log of row changes; all rows
when the epoch of its `NodePart` changed.
"""

from __future__ import annotations

from collections.abc import Callable

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
NO_PEAKS = make_peaks(0)
"""Of a view that has no rows yet."""


class ClassView:
    """`values`, int64 per row: 0 or more is the sum of the final scores of plugins whose answers are cached, a negative
    number a refusal (see `amounts.kernel`). `raws` has the raw scores of each plugin of `plan.row_raws`.

    For pods that no live plugin has an effect on it is all groups: one, whose rows get no points (`kernel.Groups`).
    """

    def __init__(self, plan: ClassPlan, part: NodePart) -> None:
        self.plan = plan
        self.part = part
        self._has_row_plugins = bool(plan.row_filters or plan.row_scores or plan.row_raws)
        self.values: Ints = NO_ROWS
        self.raws: list[Ints] = [NO_ROWS for _ in plan.row_raws]
        self._judge: RowJudge | None = None
        self._peaks: Peaks = NO_PEAKS
        self.includes_raws = True
        """Whether the values include all scores of node objects, normalised over the feasible rows."""
        self.present = -1
        """The groups of `part.raw_ids` that have feasible rows, as bits."""
        self.included: Ints = NO_ROWS
        """int64 per group of `part.raw_ids`: the points that are included."""
        self._rows_seen = -1
        self._epoch = -1
        self._statuses: tuple[int, RowStatuses] | None = None

    def filling(self, pod: Pod, is_ranked: bool) -> Filling:
        """Data for the kernel to put pods of this class on rows."""
        assert self._judge is not None, "made with the first rows"
        is_ranked = is_ranked and not self._has_row_plugins and self.part.raw_ids is None
        return Filling(self._judge, self.values, self.part.base, self.plan.rules, pod, is_ranked)

    def refresh(self, calls: PodCalls, reserved: Reserved | None = None) -> None:
        """Bring it up to date. PreFilter has run for the pod; `reserved` is what is nominated and counts for it."""
        part, log, size = self.part, calls.table.row_changes, len(calls.table)
        part.refresh(calls)
        if self._rows_seen == log.version and self._epoch == part.epoch:
            return
        changed = log.rows_since(self._rows_seen) if self._epoch == part.epoch else None
        self._rows_seen = -1  # if a plugin raises, everything stays stale
        if len(self.values) != size or self._epoch != part.epoch:
            self._start_anew(calls)
            changed = None
        elif changed is not None and 2 * len(changed) > size:
            changed = None
        self._judge_rows(calls, changed, reserved)
        if part.raw_ids is not None and self.includes_raws:
            present = self._peaks.present()
            if present != self.present:
                self._include(calls, present)
                self.values = np.empty_like(self.values)  # so groups are stale, too
                self._judge_rows(calls, None, reserved)
        self._rows_seen, self._epoch = log.version, part.epoch

    def _start_anew(self, calls: PodCalls) -> None:
        part, plan, size = self.part, self.plan, len(calls.table)
        raw_ids, groups = part.raw_ids, len(part.raw_samples)
        self.values = np.empty(size, dtype=np.int64)
        self.raws = [np.zeros(size, dtype=np.int64) for _ in plan.row_raws]
        self._judge = make_judge(calls.table, plan.rules)
        self.includes_raws = raw_ids is None or groups <= MOST_GROUPS
        self._peaks = make_peaks(size, raw_ids if self.includes_raws else None)
        self.included = np.zeros(groups, dtype=np.int64)
        if raw_ids is not None and self.includes_raws:
            # All groups, until the amounts leave none of a group feasible.
            self._include(calls, (1 << groups) - 1)

    def _include(self, calls: PodCalls, present: int) -> None:
        """Include the normalised scores of node objects, given the groups that have feasible rows."""
        assert self._judge is not None, "made with the first rows"
        self.included = self.part.points(calls, present)
        self._judge.add_group_points(self.part.raw_ids, self.included)
        self.present = present

    # The rows as one group

    def best(self) -> tuple[int, int, int, int]:
        """The fields of `Best`, of the values."""
        return self._peaks.best(self.values)

    def totals(self) -> Ints:
        """The values."""
        return self.values

    @property
    def total_at(self) -> Callable[[int], int]:
        """Gives the value of one row."""
        return self.values.item

    def nth_best(self, n: int) -> int:
        """The n-th row, from 0, that has the highest value."""
        return self._peaks.nth_best(self.values, n)

    # Judging

    def _judge_rows(self, calls: PodCalls, changed: Ints | None, reserved: Reserved | None) -> None:
        plan = self.plan
        assert self._judge is not None, "made with the first rows"
        if not self._has_row_plugins and not reserved:
            self._judge.judge(self.values, self.part.base, changed, self._peaks)
            return
        self._judge.judge(self.values, self.part.base, changed)
        if self._has_row_plugins:
            self._ask_row_plugins(calls, changed)
        if reserved and plan.rules.fit is not None:
            rows = reserved.among(changed)
            if len(rows):
                refuse_beside(calls.table, plan.rules, self.values, rows, reserved.usage)
        self._peaks.update(self.values, changed)

    def _ask_row_plugins(self, calls: PodCalls, changed: Ints | None) -> None:
        plan = self.plan
        place = plan.row_filters[0].place if plan.row_filters else None
        rows = rows_to_ask(self.values, changed, place)
        raws = list(zip(self.raws, plan.row_raws, strict=True))
        if len(rows):
            filters, scores = plan.row_filters, plan.row_scores
            ask_plugins(calls, rows, self.values, self.part.statuses, filters, scores, raws)

    def statuses(self) -> RowStatuses:
        """The status of each row."""
        known = self._statuses
        if known is not None and known[0] == self._rows_seen:
            return known[1]
        numbers, codes, sizes = distinct_refusals(self.values)
        statuses, noted, rules = [SUCCESS], list(self.part.statuses), self.plan.rules
        plugins = {placed.place: placed.plugin.name for placed in self.plan.rule_filters}
        for code in codes:
            place, local = place_of(code), local_of(code)
            if rules.fit is not None and place == rules.place:
                statuses.append(fit_status(rules.fit, local).by(plugins[place]))
            else:
                statuses.append(noted[local])
        found = RowStatuses.of(statuses, numbers, [0, *sizes])
        self._statuses = (self._rows_seen, found)
        return found
