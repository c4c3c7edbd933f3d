"""NodePart: the answers of NODE_OBJECT plugins about every row, for pods with equal keys.

Stale: the rows in the table's log of node changes.
"""

from __future__ import annotations

import numpy as np

from ..amounts.kernel import DEAD, group_rows
from ..api.pod import Pod
from ..framework import CycleState, ScorePlugin
from ..runtime.plugin_calls import check_range, judge_rows, normalize, score_rows
from ..stamped_cache import StampedCache
from ..table import Ints, NodeTable, Rows
from .class_plan import ClassPlan
from .status_codes import StatusCodes


class NodePart:
    """`base`, int64 per row: a refusal, or the weighted sum of final scores; DEAD on rows without a node.

    The sum has `plan.constant` for the plugins that normalise, as if all their raw scores were 0. `raws` has the raw
    scores of each plugin of `plan.object_raws`. `raw_ids` has the group of each row that is not refused, where rows of
    equal raw scores are a group, and `raw_samples` a row of each group; None when all raw scores are 0.
    """

    __slots__ = (
        "_nodes",
        "_plan",
        "_points",
        "base",
        "codes",
        "epoch",
        "raw_ids",
        "raw_samples",
        "raws",
    )

    def __init__(self, plan: ClassPlan) -> None:
        self._plan = plan
        self._nodes = -1
        self.codes = StatusCodes()
        self.base: Ints = np.zeros(0, dtype=np.int64)
        self.raws: list[Ints] = [self.base for _ in plan.object_raws]
        self.raw_ids: Ints | None = None
        self.raw_samples: Ints = self.base
        self._points: StampedCache[int, Ints] = StampedCache("normalised points", 64)
        self.epoch = 0
        """Changes when rows are stale that are not in the log of node changes."""

    def refresh(self, state: CycleState, pod: Pod, table: NodeTable) -> None:
        """Bring it up to date."""
        log = table.node_changes
        if self._nodes == log.version:
            return
        rows = log.since(self._nodes)
        if rows is None or 4 * len(rows) > len(table):
            changed = np.arange(len(table), dtype=np.int64)
        else:
            changed = np.array(rows, dtype=np.int64)
        is_stale = self._nodes < 0 or self.raw_ids is not None
        self._nodes = -1  # if a plugin raises, everything stays stale
        self._judge(state, pod, table, changed)
        if is_stale or self.raw_ids is not None:
            self.epoch += 1  # a node may change the normalised scores of all
        self._nodes = log.version

    def points(self, state: CycleState, pod: Pod, table: NodeTable, present: int) -> Ints:
        """int64 per group of `raw_ids`: its points if those groups have feasible rows that are set in `present`."""
        known = self._points.get(present)
        if known is None:
            known = np.zeros(len(self.raw_samples), dtype=np.int64)
            groups = np.array([g for g in range(len(known)) if present >> g & 1], np.int64)
            known[groups] = self.normalized(state, pod, table, self.raw_samples[groups], None)
            self._points.put(present, known)
        return known

    def normalized(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, sizes: Ints | None
    ) -> Ints:
        """int64 per row of `rows`: weighted scores, normalised over these rows, beyond those in `base`."""
        found = np.full(table.count(rows), -self._plan.constant, dtype=np.int64)
        for raw, (plugin, weight) in zip(self.raws, self._plan.object_raws, strict=True):
            counts = sizes if plugin in self._plan.counting else None
            found += normalize_groups(plugin, state, pod, table, rows, counts, raw[rows]) * weight
        return found

    def _judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Ints) -> None:
        size = len(table)
        if len(self.base) != size:
            self.base = _grown(self.base, size)
            self.raws = [_grown(raw, size) for raw in self.raws]
        self.base[rows] = DEAD
        live = rows[table.live[rows]]
        if len(live):
            self._judge_live(state, pod, table, live)
        self._number_raws()

    def _judge_live(self, state: CycleState, pod: Pod, table: NodeTable, live: Ints) -> None:
        plan = self._plan
        found = np.full(len(live), plan.constant, dtype=np.int64)
        for place, judge in plan.object_filters:
            if judge.name not in state.skip_filter:
                verdict = judge_rows(judge, state, pod, table, live)
                self.codes.note(found, place, verdict)
        for plugin, weight in plan.object_scores:
            scores = score_rows(plugin, state, pod, table, live)
            if np.count_nonzero(scores):
                check_range(plugin, scores)
                found += np.where(found >= 0, scores * weight, 0)
        self.base[live] = found
        for raw, (plugin, _) in zip(self.raws, plan.object_raws, strict=True):
            raw[live] = score_rows(plugin, state, pod, table, live)

    def _number_raws(self) -> None:
        varied = [raw for raw in self.raws if np.count_nonzero(raw)]
        self.raw_ids = None
        self._points.drop()
        counting = self._plan.counting
        if varied or any(plugin in counting for plugin, _ in self._plan.object_raws):
            groups = group_rows(self.base, varied)
            if len(groups.samples):  # else all rows are refused
                self.raw_ids, self.raw_samples = groups.ids, groups.samples


def normalize_groups(
    plugin: ScorePlugin,
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    rows: Rows,
    sizes: Ints | None,
    raw: Ints,
) -> Ints:
    """int64 per row of `rows`: the normalised scores. Each row stands for `sizes` nodes; None if that has no effect."""
    if sizes is None or len(sizes) == sizes.sum():
        return normalize(plugin, state, pod, table, rows, raw)
    every = np.repeat(table.numbers(rows), sizes)
    each = normalize(plugin, state, pod, table, every, np.repeat(raw, sizes))
    return each[np.cumsum(sizes) - 1]


def _grown(values: Ints, size: int) -> Ints:
    longer = np.zeros(size, dtype=np.int64)
    longer[: len(values)] = values
    return longer
