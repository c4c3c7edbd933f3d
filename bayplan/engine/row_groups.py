"""Row groups: feasible rows that get equal points for a pod, and the points of each group.

The answers of PodTopologySpread and InterPodAffinity about a node depend on few values: its zone, how many pods of an
app it has. Rows of equal marks are one group, and plugins are called on one row of each group, or their rules applied
to it. The same holds for scores that are normalised over the feasible nodes: rows of equal raw scores get equal points.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..amounts.kernel import REFUSED, RowGroups, group_each_row, group_rows, make_tracker
from ..framework import Code, CycleState, FilterPlugin, PreScorePlugin
from ..runtime.plugin_calls import PodCalls
from ..stamped_cache import BudgetedCache
from ..table import ALL, Column, Ints, NodeTable, Rows, RowValues
from .class_plan import Scorer
from .class_view import ClassView
from .marks import GroupRules, Marks

Trackers = BudgetedCache[Hashable, Any]
"""Groups that follow changed rows, by plan and columns."""


class LivePlugins(NamedTuple):
    """The live plugins that have an effect on a pod."""

    filters: Sequence[FilterPlugin]
    pre_scores: Sequence[PreScorePlugin]
    scores: Sequence[Scorer]
    columns: Sequence[RowValues] | None
    """Rows of equal values get equal answers; None if any two rows may get different answers."""
    is_scored: bool
    """Whether they give points, or scores on rows are normalised."""

    @classmethod
    def of(cls, view: ClassView, marks: Marks, state: CycleState) -> LivePlugins:
        """The live plugins of the plan that are neither skipped nor quiet."""
        plan, quiet = view.plan, marks.quiet
        filters = [p.plugin for p in plan.filters.live if p.plugin.name not in state.skip_filter]
        pre_scores = [p for p in plan.live_pre_scores if p.name not in quiet]
        unscored = quiet | state.skip_score
        scores = [s for s in plan.scores.live if s.plugin.name not in unscored]
        every = (*filters, *pre_scores, *(scorer.plugin for scorer in scores))
        is_grouped = not view.raws and all(plugin in plan.grouped for plugin in every)
        is_scored = bool(pre_scores or scores or view.raws)
        return cls(filters, pre_scores, scores, marks.columns if is_grouped else None, is_scored)


def narrow(calls: PodCalls, view: ClassView, values: Ints, live: LivePlugins) -> Ints:
    """The values, or a copy in which the rows are refused that live filters refuse, called about all feasible rows."""
    if not live.filters:
        return values
    table, (_, _, feasible, _) = calls.table, view.peaks.best()
    is_whole = values is view.values and feasible == len(values)
    rows = before = ALL if is_whole else np.flatnonzero(values >= 0)
    for plugin in live.filters:
        if not table.count(rows):
            break
        verdict = calls.filter(plugin, rows)
        if np.count_nonzero(verdict.codes):
            rows = table.numbers(rows)[verdict.feasible]
    return values if rows is before else restricted(values, rows)


def restricted(values: Ints, rows: Rows) -> Ints:
    """A copy of the values in which all but `rows` are refused."""
    found = np.full(len(values), REFUSED, dtype=np.int64)
    found[rows] = values[rows]
    return found


def find_groups(
    view: ClassView, values: Ints, live: LivePlugins, table: NodeTable, trackers: Trackers
) -> RowGroups | None:
    """The feasible rows in groups that get equal points; None if all get none.

    `values` are those of the view, or a copy in which more rows are refused, for which scores are normalised again.
    """
    if live.columns is None and live.is_scored:
        return group_each_row(values)
    is_whole, columns = values is view.values, live.columns or ()
    if not columns and (view.has_raw_points if is_whole else view.part.raw_groups is None):
        return None
    tracked = track_groups(view, columns, table, trackers) if is_whole else None
    return group_rows(values, _arrays(view, columns)) if tracked is None else tracked


def track_groups(
    view: ClassView, columns: Sequence[RowValues], table: NodeTable, trackers: Trackers
) -> Any:
    """Groups of the rows of a view, updated from the log of row changes; None if the kernel cannot track them.

    They are stale when the view has a new array of values, as it has whenever columns of the table get new arrays.
    """
    log, key = table.row_changes, (view.plan, columns)
    tracker = trackers.get(key)
    if tracker is not None and tracker.values is view.values:
        changed = log.rows_since(tracker.version)
        try:
            if changed is not None:
                tracker.update(changed, None if tracker.are_own else _arrays(view, columns))
                tracker.version = log.version
                return tracker
        except OverflowError:
            pass  # a mark or a value is out of bounds: start again
    tracker = make_tracker(view.values, _arrays(view, columns))
    if tracker is not None:
        tracker.version = log.version
        tracker.are_own = all(type(column) is Column for column in columns)
        trackers.put(key, tracker, tracker.cells)
    return tracker


def _arrays(view: ClassView, columns: Sequence[RowValues]) -> list[Ints]:
    """Columns that distinguish rows, int64 each: the columns, and the raw scores of node objects."""
    arrays = [np.asarray(column.view, np.int64) for column in columns]
    if view.part.raw_groups is not None:
        arrays.append(view.part.raw_groups)
    return arrays


def apply_rules(calls: PodCalls, view: ClassView, rules: GroupRules, groups: Any) -> None:
    """Give tracked groups their points, or refuse them, by the rules of the live plugins."""
    raw_groups, judge = view.part.raw_groups, rules.judge
    judge.judge(groups, raw_groups)
    if raw_groups is not None and judge.present and judge.present != view.present:
        more = view.part.raw_points(calls, judge.present) - view.raw_points
        groups.add_points(raw_groups, more)


def call_plugins(calls: PodCalls, view: ClassView, live: LivePlugins, groups: RowGroups) -> None:
    """Give groups their points, or refuse them, by calling the live plugins on one row of each."""
    table, (numbers, rows, sizes) = calls.table, groups.current()
    for plugin in live.filters if live.columns is not None else ():
        verdict = calls.filter(plugin, rows)
        if np.count_nonzero(verdict.codes):
            left = np.flatnonzero(verdict.feasible)
            numbers = left if isinstance(numbers, slice) else numbers[left]
            rows, sizes = table.numbers(rows)[left], None if sizes is None else sizes[left]
    count = table.count(rows)
    if count > 1 or (count == 1 and sizes is not None and sizes[0] > 1):
        points = _points(calls, view, live, rows, sizes)
    else:
        points = np.zeros(count, dtype=np.int64)  # a single node is not scored
    groups.give(numbers, points)


def _points(
    calls: PodCalls, view: ClassView, live: LivePlugins, rows: Rows, sizes: Ints | None
) -> Ints:
    """int64 per row of `rows`: weighted scores that are not in the view. Each row stands for `sizes` nodes."""
    state, found = calls.state, np.zeros(calls.table.count(rows), dtype=np.int64)
    state.row_counts = sizes
    for pre in live.pre_scores:
        if calls.pre_score(pre, rows).code is Code.Skip:
            state.skip_score.add(pre.name)
    for plugin, weight, _ in live.scores:
        if plugin.name not in state.skip_score:
            raw = calls.score(plugin, rows)
            found += calls.normalize(plugin, rows, raw) * weight
    for plugin, weight, is_raw in view.plan.scores.on_row if view.raws else ():
        if is_raw:
            found += calls.normalize(plugin, rows, view.raws[plugin][rows]) * weight
    if view.part.raw_groups is not None:
        found += view.part.normalized(calls, rows)
        found -= view.raw_points[view.part.raw_groups[rows]]
    return found
