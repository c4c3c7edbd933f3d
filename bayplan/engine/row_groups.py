"""Row groups: rows that the live plugins of a pod cannot tell apart, and the points of each group.

The answers of PodTopologySpread and InterPodAffinity about a node depend on few values: its zone, how many pods of an
app it has. Rows of equal marks are one group, and plugins are called on one row of each group. The same holds for
scores that are normalised over the feasible nodes: rows of equal raw scores get equal points. The view
follows groups by changed rows where it can.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..amounts.kernel import (
    REFUSED,
    Best,
    Groups,
    add_points,
    count_groups,
    group_rows,
)
from ..api.pod import Pod
from ..framework import GROUPS, Code, CycleState, ScorePlugin
from ..runtime.plugin_calls import ask_pre_score, judge_rows, normalize, score_rows
from ..table import ALL, Ints, NodeTable, Rows
from .class_view import ClassView, Trackers
from .marks import Marks


class Ranking:
    """The points of groups of rows for one pod, by live plugins and those that normalise."""

    def __init__(
        self,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        view: ClassView,
        marks: Marks,
        trackers: Trackers,
    ) -> None:
        plan = view.plan
        self._trackers = trackers
        self._state, self._pod, self._table, self._view = state, pod, table, view
        skip, quiet = state.skip_filter, marks.quiet
        self._filters = [p.plugin for p in plan.live_filters if p.plugin.name not in skip]
        self._pre_scores = [p for p in plan.live_pre_scores if p.name not in quiet]
        unscored = quiet | state.skip_score if state.skip_score else quiet
        self._scores = [entry for entry in plan.live_scores if entry[0].name not in unscored]
        self._marks, self._columns = marks, marks.columns
        scorers = [plugin for plugin, _ in self._scores]
        if any(p.scope is not GROUPS for p in (*self._filters, *self._pre_scores, *scorers)):
            self._columns = None
        self.has_filters = bool(self._filters)
        self._is_scored = bool(self._pre_scores or self._scores or plan.row_raws)
        self._left: Rows | None = None

    def accepts_all(self, values: Ints) -> bool:
        """Whether the plugins are filters on rows that refuse none: then the values are all there is to it."""
        if self._columns is not None or self._is_scored or not self._view.has_raws(values):
            return False
        rows = self._rows(values)
        self._left = self._filtered(rows)
        return bool(self._table.count(rows)) and self._left is rows

    def rank(self, values: Ints) -> tuple[Ints, Ints] | None:
        """The group of each row, and the weighted points of each group; None when all rows are refused."""
        if self._columns is None or self._view.plan.row_raws:
            return self._rank_each(values)
        ids = self._view.part.raw_ids
        if self._columns == () and not (self._filters or self._is_scored) and ids is not None:
            return self._rank_raws(values, ids)
        return self._rank_groups(self._groups(values))

    def _rank_each(self, values: Ints) -> tuple[Ints, Ints] | None:
        """The same where each row is a group of its own."""
        table, size = self._table, len(values)
        rows = self._filtered(self._rows(values)) if self._left is None else self._left
        left = table.count(rows)
        if not left:
            return None
        if left == 1:
            points = np.zeros(1, dtype=np.int64)  # a single node is taken unscored
        else:
            points = self._points(rows, None)
        if left < size:
            of_rows = np.full(size, REFUSED, dtype=np.int64)
            of_rows[rows] = points
            points = of_rows
        return table.numbers(ALL), points

    def _rows(self, values: Ints) -> Rows:
        """The rows that are not refused yet."""
        view = self._view
        is_whole = values is view.values and view.best()[2] == len(values)
        return ALL if is_whole else np.flatnonzero(values >= 0)

    def _filtered(self, rows: Rows) -> Rows:
        """Those of `rows` that the filters accept; `rows` itself when they accept all."""
        for judge in self._filters:
            if not self._table.count(rows):
                break
            verdict = judge_rows(judge, self._state, self._pod, self._table, rows)
            if np.count_nonzero(verdict.codes):
                rows = self._table.numbers(rows)[verdict.feasible]
        return rows

    def _rank_raws(self, values: Ints, ids: Ints) -> tuple[Ints, Ints] | None:
        """The same where only scores of node objects are missing: they change when the sizes of groups do."""
        view = self._view
        samples, sizes = count_groups(values, ids, len(view.part.raw_samples))
        key = (view.part.epoch, sizes.tobytes())
        if view.raw_points is None or view.raw_points[0] != key:
            ranked = self._rank_groups(Groups(ids, samples, sizes, is_sorted=False))
            if ranked is None:
                return None
            view.raw_points = (key, ranked[1])
        return ids, view.raw_points[1]

    def _rank_groups(self, groups: Groups) -> tuple[Ints, Ints] | None:
        """The same, by one row of each group."""
        rows, sizes = groups.samples, groups.sizes
        accepted: Ints | None = None
        if not groups.is_sorted:
            accepted = np.flatnonzero(sizes)  # no row is left of the others
            accepted = accepted[np.argsort(rows[accepted])]
            rows, sizes = rows[accepted], sizes[accepted]
        for judge in self._filters:
            verdict = judge_rows(judge, self._state, self._pod, self._table, rows)
            if np.count_nonzero(verdict.codes):
                left = np.flatnonzero(verdict.feasible)
                accepted = left if accepted is None else accepted[left]
                rows, sizes = rows[left], sizes[left]
        if not len(rows):
            return None
        if len(rows) == 1 and sizes[0] == 1:
            points = np.zeros(1, dtype=np.int64)  # a single node is taken unscored
        else:
            points = self._points(rows, sizes)
        if accepted is not None:
            every = np.full(len(groups.samples), REFUSED, dtype=np.int64)
            every[accepted] = points
            points = every
        return groups.ids, points

    def _groups(self, values: Ints) -> Groups:
        if values is self._view.values:
            return self._view.groups(self._marks, self._table, self._trackers)
        return group_rows(values, self._view.columns_of(self._marks))

    def _points(self, rows: Rows, sizes: Ints | None) -> Ints:
        """int64 per row of `rows`: weighted scores that are not in the view.

        Each row stands for `sizes` nodes; None: for itself.
        """
        state, pod, table, view = self._state, self._pod, self._table, self._view
        parts: list[Ints] = []
        state.row_counts = sizes
        for pre in self._pre_scores:
            if ask_pre_score(pre, state, pod, table, rows).code is Code.Skip:
                state.skip_score.add(pre.name)
        for plugin, weight in self._scores:
            if plugin.name not in state.skip_score:
                raw = score_rows(plugin, state, pod, table, rows)
                scores = self._normalized(plugin, rows, sizes, raw)
                parts.append(scores if weight == 1 else scores * weight)
        plan = view.plan
        normalized = list(zip(view.raws, plan.row_raws, strict=True))
        if view.part.raw_ids is not None:
            normalized += zip(view.part.raws, plan.object_raws, strict=True)
        for raw, (plugin, weight) in normalized:
            parts.append(self._normalized(plugin, rows, sizes, raw[rows]) * weight)
        if view.includes_raws and view.part.raw_ids is not None:
            parts.append(-view.included[view.part.raw_ids[rows]])
        constant = view.constant
        if not parts:
            return np.full(table.count(rows), constant, dtype=np.int64)
        return sum(parts[1:], parts[0] + constant)

    def _normalized(self, plugin: ScorePlugin, rows: Rows, sizes: Ints | None, raw: Ints) -> Ints:
        state, pod, table = self._state, self._pod, self._table
        if sizes is None or plugin.normalizes_by_bounds or len(sizes) == sizes.sum():
            return normalize(plugin, state, pod, table, rows, raw)
        # The result may depend on how many nodes have a score.
        every = np.repeat(table.numbers(rows), sizes)
        each = normalize(plugin, state, pod, table, every, np.repeat(raw, sizes))
        return each[np.cumsum(sizes) - 1]


def best_by_rules(
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    view: ClassView,
    marks: Marks,
    trackers: Trackers,
) -> tuple[Best, Any] | None:
    """What `Ranking` comes to when rules are all that live plugins go by: the best total, and the groups with points.

    None when the plugins have to be called.
    """
    rules = marks.rules
    assert rules is not None, "rules are all that live plugins go by"
    raw_ids = view.part.raw_ids
    if raw_ids is not None and not view.includes_raws:
        return None
    groups = view.tracked(marks, table, trackers)
    if groups is None:
        return None
    judge = rules.judge
    judge.judge(groups, view.constant, raw_ids)
    if raw_ids is not None and judge.present:
        more = view.points_beyond(state, pod, table, judge.present)
        if more is not None:
            add_points(groups, raw_ids, more)
    return Best(*groups.best()), groups
