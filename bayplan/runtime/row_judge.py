"""Row judge: plugins that look at a row, asked row by row; by their quick forms, where they have any."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.pod import Pod
from ..framework import CycleState, FilterPlugin, NodeInfo, RowFilter, RowScore, ScorePlugin
from ..table import NodeTable
from .failing import failed
from .kept import FILTERING, out_of_range

INFEASIBLE = -1
"""The total of a row on which the pod does not fit."""

Weighted = tuple[ScorePlugin, int]

STATE = CycleState()
"""Plugins that look at rows only, and whose PreFilter is settled by the spec, keep nothing in it."""


class RowJudge:
    """Some plugins that look at a row, asked about one row after the other."""

    __slots__ = ("_filters", "_scores", "is_idle")

    def __init__(
        self,
        pod: Pod,
        table: NodeTable,
        filters: Sequence[FilterPlugin],
        scores: Sequence[Weighted],
    ) -> None:
        self._filters = [row_filter(plugin, pod, table) for plugin in filters]
        self._scores = [(_row_score(plugin, pod, table), weight) for plugin, weight in scores]
        self.is_idle = not filters and not scores
        """Nobody is asked: the total is 0 everywhere."""

    def total(self, row: int) -> int:
        """The weighted sum of the scores of a row; INFEASIBLE when a filter refuses it."""
        for fits in self._filters:
            if not fits(row):
                return INFEASIBLE
        total = 0
        for score, weight in self._scores:
            total += score(row) * weight
        return total


def row_filter(plugin: FilterPlugin, pod: Pod, table: NodeTable) -> RowFilter:
    """The plugin's own way to judge row by row, or the one by nodes."""
    quick = plugin.row_filter(pod, table)
    if quick is not None:
        return quick

    def fits(row: int) -> bool:
        status = plugin.filter_node(STATE, pod, NodeInfo(table, row))
        if not status.is_success and not status.is_rejected:
            raise failed(FILTERING, plugin, status)
        return status.is_success

    return fits


def _row_score(plugin: ScorePlugin, pod: Pod, table: NodeTable) -> RowScore:
    """The plugin's own way to score row by row, or the one by nodes."""
    quick = plugin.row_score(pod, table)
    if quick is not None:
        return quick

    def score(row: int) -> int:
        points = plugin.score_node(STATE, pod, NodeInfo(table, row))
        if not 0 <= points <= 100:
            raise out_of_range(plugin, points)
        return points

    return score
