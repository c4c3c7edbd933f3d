"""Standing: how the nodes stand for pods of one kind, and who is ahead.

For pods about whom only row-scoped plugins have something to say, the total of a node changes only when its row does.
So totals are kept, rows of equal total together; a row that changed is judged again and moves, and the best rows are
at hand without looking at the others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence

import numpy as np

from ..api.pod import Pod
from ..framework import FilterPlugin, ScorePlugin
from ..table import Bools, Ints, NodeTable, Rows
from .kept import KeptFeasible, KeptSum, check_range, judge_rows, score_rows
from .row_judge import INFEASIBLE, STATE, RowJudge, Weighted

FEW_ROWS = 16
"""Up to here judging row by row is quicker than judging all of them at once."""

MAX_KNOWN = 4096
"""Totals of rows with equal amounts that are remembered."""


class Standing:
    """The total of every row for pods like `pod`, INFEASIBLE where it does not fit.

    `filters` and `scores` look at the row, `accepted` and `given` are what the plugins say that look at node objects
    only. `normalized` are those of the latter whose points depend on the bounds of all feasible rows: while these stay
    where they are, so do the points.
    """

    __slots__ = (
        "_accepted",
        "_bounds",
        "_by_amounts",
        "_by_row",
        "_extra",
        "_filters",
        "_given",
        "_groups",
        "_known",
        "_nodes_seen",
        "_pod",
        "_scores",
        "_seen",
        "_stamp",
        "best",
        "builds",
        "feasible",
        "is_stamped",
        "totals",
    )

    def __init__(
        self,
        pod: Pod,
        table: NodeTable,
        filters: Sequence[FilterPlugin],
        scores: Sequence[Weighted],
        accepted: KeptFeasible,
        given: KeptSum,
        normalized: Sequence[Bounds],
    ) -> None:
        self._pod = pod
        self._filters = filters
        self._scores = scores
        self._accepted = accepted
        self._given = given
        self._bounds = normalized
        self._by_amounts = RowJudge(
            pod, table, [p for p in filters if p.by_amounts], [s for s in scores if s[0].by_amounts]
        )
        self._by_row = RowJudge(
            pod,
            table,
            [p for p in filters if not p.by_amounts],
            [s for s in scores if not s[0].by_amounts],
        )
        self._known: dict[int, int] = {}
        self._seen = -1
        self._nodes_seen = -1
        self._stamp: Hashable = None
        self._extra: array[int] = array("q")
        self.totals: array[int] = array("q")
        self._groups: dict[int, Group] = {}
        self.best = INFEASIBLE
        self.feasible = 0
        self.builds = 0
        """How often the totals were found anew, and not followed row by row."""
        self.is_stamped = False
        """Whether what is said about rows depends on the stamp."""

    @property
    def leaders(self) -> Group:
        """The rows with the highest total."""
        return self._groups[self.best]

    def follow(self, table: NodeTable, stamp: Hashable) -> None:
        """Bring the totals up to date; another `stamp` makes what is said about node objects stale."""
        log = table.row_changes
        if self._seen == log.version and self._stamp == stamp:
            return
        changed = log.since(self._seen) if self._seen >= 0 else None
        nodes_changed = self._nodes_seen != table.node_changes.version
        if self._stamp != stamp and self.is_stamped:
            changed = None
        if (nodes_changed or self._stamp != stamp) and self._ask_about_nodes(table, stamp):
            changed = None
        if (
            changed is None
            or (nodes_changed and not self._follow_nodes(table))
            or not self._follow_rows(table, changed)
        ):
            self._build(table)
        self._seen, self._nodes_seen = log.version, table.node_changes.version

    def _ask_about_nodes(self, table: NodeTable, stamp: Hashable) -> bool:
        """Bring up to date what is said about node objects; True when that is not confined to those that changed."""
        self._stamp = stamp
        answers = [self._accepted, self._given, *[bounds.answer for bounds in self._bounds]]
        before = [answer.epoch for answer in answers]
        for answer in answers:
            answer.follow(STATE, self._pod, table, table.node_changes, stamp)
        return before != [answer.epoch for answer in answers]

    # From scratch

    def _build(self, table: NodeTable) -> None:
        self.builds += 1
        self._known.clear()
        rows = table.live_rows
        fits: Bools = np.zeros(len(table), dtype=np.bool_)
        fits[rows] = self._fits(table, rows)
        base = np.zeros(len(table), dtype=np.int64)
        base[rows] = self._base(table, rows)
        extra = self._given.total.copy()
        for bounds in self._bounds:
            extra += bounds.take(fits)
        totals = np.where(fits, base + extra, INFEASIBLE)
        self._extra = array("q", extra.tobytes())
        self.totals = array("q", totals.tobytes())
        self._sort(totals)

    def _sort(self, totals: Ints) -> None:
        order = totals.argsort(kind="stable")
        order = order[int(np.searchsorted(totals[order], 0)) :]
        self.feasible = len(order)
        values, starts = np.unique(totals[order], return_index=True)
        groups = np.split(order, starts[1:]) if len(values) else []
        self._groups = {
            total: Group(set(group.tolist()))
            for total, group in zip(values.tolist(), groups, strict=True)
        }
        self.best = int(values[-1]) if len(values) else INFEASIBLE

    def _fits(self, table: NodeTable, rows: Rows) -> Bools:
        fits: Bools = self._accepted.feasible[rows]
        for plugin in self._filters:
            fits = fits & judge_rows(plugin, STATE, self._pod, table, rows).feasible
        return fits

    def _base(self, table: NodeTable, rows: Rows) -> Ints:
        base = np.zeros(table.count(rows), dtype=np.int64)
        for plugin, weight in self._scores:
            scores = score_rows(plugin, STATE, self._pod, table, rows)
            check_range(plugin, scores)
            base += scores * weight
        return base

    # What changed; False: the bounds moved, and with them the points of other rows.

    def _follow_nodes(self, table: NodeTable) -> bool:
        """Take over what is said about the node objects that changed."""
        changed = table.node_changes.since(self._nodes_seen)
        if changed is None:
            return False
        missing = len(table) - len(self.totals)
        self.totals.extend([INFEASIBLE] * missing)
        self._extra.extend([0] * missing)
        for row in changed:
            is_feasible, points = self.totals[row] != INFEASIBLE, self._given.total.item(row)
            for bounds in self._bounds:
                found = bounds.change(row, is_feasible)
                if found is None:
                    return False
                points += found
            self._extra[row] = points
        return True

    def _follow_rows(self, table: NodeTable, changed: list[int]) -> bool:
        if len(changed) <= FEW_ROWS:
            return self._judge_each(table, changed)
        nodes = table.nodes
        gone = [row for row in changed if nodes[row] is None]
        rows = np.array([row for row in changed if nodes[row] is not None], dtype=np.int64)
        extra = np.frombuffer(self._extra, dtype=np.int64)[rows]
        totals = np.where(self._fits(table, rows), self._base(table, rows) + extra, INFEASIBLE)
        moves = [
            *zip(rows.tolist(), totals.tolist(), strict=True),
            *((r, INFEASIBLE) for r in gone),
        ]
        return all(self._move(row, total) for row, total in moves)

    def _judge_each(self, table: NodeTable, changed: list[int]) -> bool:
        """Judge the changed rows one after the other; those of equal amounts once."""
        accepted, nodes = self._accepted, table.nodes
        amounts, known = table.amounts, self._known
        for row in changed:
            total = INFEASIBLE
            if nodes[row] is not None and (not accepted.refused or accepted.feasible.item(row)):
                number = amounts[row]
                if number is None:
                    number = table.amounts_at(row)
                base = known.get(number)
                if base is None:
                    base = self._judge_amounts(row, number)
                if base != INFEASIBLE:
                    total = base + self._extra[row]
                    if not self._by_row.is_idle:
                        points = self._by_row.total(row)
                        total = INFEASIBLE if points == INFEASIBLE else total + points
            if total != self.totals[row] and not self._move(row, total):
                return False
        return True

    def _judge_amounts(self, row: int, number: int) -> int:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        base = self._known[number] = self._by_amounts.total(row)
        return base

    def _move(self, row: int, total: int) -> bool:
        """Note the new total of a row."""
        groups, old = self._groups, self.totals[row]
        if total == old:
            return True
        self.totals[row] = total
        if old == INFEASIBLE or total == INFEASIBLE:
            change = -1 if total == INFEASIBLE else 1
            self.feasible += change
            for bounds in self._bounds:
                if not bounds.count(row, change):
                    return False
        if total != INFEASIBLE:
            group = groups.get(total)
            if group is None:
                groups[total] = Group({row})
                if total > self.best:
                    self.best = total
            else:
                group.add(row)
        if old != INFEASIBLE and not groups[old].remove(row):
            del groups[old]
            if old == self.best:
                self.best = max(groups, default=INFEASIBLE)
        return True


class Group:
    """Rows of equal total; in order once somebody asked for that."""

    __slots__ = ("_order", "_sparse_below", "rows")

    def __init__(self, rows: set[int]) -> None:
        self.rows = rows
        self._order: list[int] | None = None
        self._sparse_below = len(rows) // 4

    def add(self, row: int) -> None:
        self.rows.add(row)
        if self._order is not None:
            insort(self._order, row)

    def remove(self, row: int) -> int:
        """Take a row out; returns how many are left."""
        self.rows.remove(row)
        if self._order is not None:
            del self._order[bisect_left(self._order, row)]
        left = len(self.rows)
        if left < self._sparse_below:
            # A set keeps the size it once had, and is slow to go through when few are left of many.
            self.rows = set(self.rows)
            self._sparse_below = left // 4
        return left

    def in_order(self) -> list[int]:
        """The rows, ascending. Do not write to it."""
        if self._order is None:
            self._order = sorted(self.rows)
        return self._order


class Bounds:
    """The raw scores of one plugin on the feasible rows, and the points it makes of them."""

    __slots__ = (
        "_counts",
        "_highest",
        "_lowest",
        "_plugin",
        "_points",
        "_raw",
        "_weight",
        "answer",
    )

    def __init__(self, plugin: ScorePlugin, weight: int, answer: KeptSum) -> None:
        self._plugin = plugin
        self._weight = weight
        self.answer = answer
        self._raw: array[int] = array("q")
        self._counts: dict[int, int] = {}
        self._points: dict[int, int] = {}
        self._lowest = self._highest = 0

    def take(self, fits: Bools) -> Ints:
        """Count the raw scores of the rows that fit; int64 per row: its weighted points, if it is within the bounds."""
        raw = self.answer.total
        values, counts = np.unique(raw[fits], return_counts=True)
        self._raw = array("q", raw.tobytes())
        self._counts = dict(zip(values.tolist(), counts.tolist(), strict=True))
        self._lowest, self._highest = (int(values[0]), int(values[-1])) if len(values) else (0, 0)
        within, where = np.unique(np.clip(raw, self._lowest, self._highest), return_inverse=True)
        points = self._points_of(within)
        self._points = dict(zip(within.tolist(), points.tolist(), strict=True))
        return points[where]

    def count(self, row: int, change: int) -> bool:
        """A row became feasible (`change` 1) or no longer is (-1); False when that moves the bounds."""
        raw, counts = self._raw[row], self._counts
        number = counts.get(raw, 0) + change
        if number:
            counts[raw] = number
            return self._lowest <= raw <= self._highest
        del counts[raw]
        return self._lowest < raw < self._highest

    def change(self, row: int, is_feasible: bool) -> int | None:
        """The raw score of a row may be another: its weighted points; None when that moves the bounds."""
        self._raw.extend([0] * (len(self.answer.total) - len(self._raw)))
        raw = self.answer.total.item(row)
        if raw != self._raw[row]:
            stays = self.count(row, -1) if is_feasible else True
            self._raw[row] = raw
            if not stays or (is_feasible and not self.count(row, 1)):
                return None
        points = self._points.get(raw)
        if points is None:
            if not self._lowest <= raw <= self._highest:
                return 0  # should it become feasible, the bounds move
            points = self._points[raw] = int(self._points_of(np.array([raw], dtype=np.int64))[0])
        return points

    def _points_of(self, values: Ints) -> Ints:
        """The weighted points of raw scores within the bounds."""
        ends = np.array([self._lowest, self._highest], dtype=np.int64)
        points = self._plugin.normalize(np.concatenate((ends, values)))
        check_range(self._plugin, points)
        weighted: Ints = points[2:] * self._weight
        return weighted
