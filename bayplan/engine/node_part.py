"""NodePart: the answers of NODE_OBJECT plugins about every row, for pods with equal keys.

Stale: the rows in the table's log of node changes.
"""

from __future__ import annotations

import numpy as np

from ..amounts.kernel import DEAD, group_rows
from ..runtime.plugin_calls import PodCalls
from ..stamped_cache import StampedCache
from ..table import Ints, Rows
from .class_plan import ClassPlan
from .row_answers import StatusNumbers, ask_plugins


class NodePart:
    """`base`, int64 per row: a refusal, or the weighted sum of final scores; DEAD on rows without a node.

    The sum has `plan.constant` for the plugins that normalise, as if all their raw scores were 0. `raws` has the raw
    scores of each plugin of `plan.object_raws`. `raw_ids` has the group of each row that is not refused, where rows of
    equal raw scores are a group, and `raw_samples` a row of each group; None when all raw scores are 0.
    """

    def __init__(self, plan: ClassPlan) -> None:
        self._plan = plan
        self._nodes = -1
        self.statuses: StatusNumbers = {}
        """Of its own filters, and of those on rows in views that have this part."""
        self.base: Ints = np.zeros(0, dtype=np.int64)
        self.raws: list[Ints] = [self.base for _ in plan.object_raws]
        self.raw_ids: Ints | None = None
        self.raw_samples: Ints = self.base
        self._points: StampedCache[int, Ints] = StampedCache("normalised points", 64)
        self.epoch = 0
        """Changes when rows are stale that are not in the log of node changes."""

    def refresh(self, calls: PodCalls) -> None:
        """Bring it up to date."""
        table = calls.table
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
        self._judge(calls, changed)
        if is_stale or self.raw_ids is not None:
            self.epoch += 1  # a node may change the normalised scores of all
        self._nodes = log.version

    def points(self, calls: PodCalls, present: int) -> Ints:
        """int64 per group of `raw_ids`: its points if those groups have feasible rows that are set in `present`."""
        known = self._points.get(present)
        if known is None:
            known = np.zeros(len(self.raw_samples), dtype=np.int64)
            groups = np.array([g for g in range(len(known)) if present >> g & 1], np.int64)
            known[groups] = self.normalized(calls, self.raw_samples[groups])
            self._points.put(present, known)
        return known

    def normalized(self, calls: PodCalls, rows: Rows) -> Ints:
        """int64 per row of `rows`: weighted scores, normalised over these rows, beyond those in `base`."""
        found = np.full(calls.table.count(rows), -self._plan.constant, dtype=np.int64)
        for raw, (plugin, weight) in zip(self.raws, self._plan.object_raws, strict=True):
            found += calls.normalize(plugin, rows, raw[rows]) * weight
        return found

    def _judge(self, calls: PodCalls, rows: Ints) -> None:
        plan, table, size = self._plan, calls.table, len(calls.table)
        if len(self.base) != size:
            more = np.zeros(size - len(self.base), dtype=np.int64)
            self.base = np.concatenate((self.base, more))
            self.raws = [np.concatenate((raw, more)) for raw in self.raws]
        self.base[rows] = DEAD
        live = rows[table.live[rows]]
        self.base[live] = plan.constant
        for raw in self.raws:
            raw[rows] = 0
        raws = list(zip(self.raws, plan.object_raws, strict=True))
        filters, scores = plan.object_filters, plan.object_scores
        if len(live):
            ask_plugins(calls, live, self.base, self.statuses, filters, scores, raws)
        self._number_raws()

    def _number_raws(self) -> None:
        varied = [raw for raw in self.raws if np.count_nonzero(raw)]
        self.raw_ids = None
        self._points.drop()
        if varied:
            groups = group_rows(self.base, varied)
            if len(groups.samples):  # else all rows are refused
                self.raw_ids, self.raw_samples = groups.ids, groups.samples
