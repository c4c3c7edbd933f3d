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
from .row_answers import StatusNumbers, add_answers


class NodePart:
    """`base`, int64 per row: a refusal, or the weighted sum of final scores; DEAD on rows without a node.

    The sum has `plan.constant` for the plugins that normalise, as if all their raw scores were 0. `raws` has the raw
    scores of each of those plugins. Rows of equal raw scores are a raw group: `raw_groups` has the group of each row
    that is not refused, `raw_samples` a row of each group; None and empty when all raw scores are 0. It is a new array
    after each change of a node, which may change the normalised scores of all rows.
    """

    def __init__(self, plan: ClassPlan) -> None:
        self._plan = plan
        self._nodes_version = -1
        self.statuses: StatusNumbers = {}
        """Statuses of its own filters, and of filters on rows in views with this part."""
        self.base: Ints = np.zeros(0, dtype=np.int64)
        self.raws = {s.plugin: self.base for s in plan.scores.on_node if s.is_raw}
        self.raw_groups: Ints | None = None
        self.raw_samples: Ints = self.base
        self._raw_points: StampedCache[int, Ints] = StampedCache("normalised points", 64)

    def refresh(self, calls: PodCalls) -> None:
        """Judge the nodes that changed."""
        log = calls.table.node_changes
        if self._nodes_version == log.version:
            return
        rows, size = log.since(self._nodes_version), len(calls.table)
        are_few = rows is not None and 4 * len(rows) <= size
        changed = np.array(rows, np.int64) if are_few else np.arange(size, dtype=np.int64)
        self._nodes_version = -1  # if a plugin raises, everything stays stale
        self._judge_rows(calls, changed)
        self._nodes_version = log.version

    def raw_points(self, calls: PodCalls, present: int) -> Ints:
        """int64 per raw group: its points, beyond `base`, if those in `present`, as bits, have feasible rows."""
        known = self._raw_points.get(present)
        if known is None:
            known = np.zeros(len(self.raw_samples), dtype=np.int64)
            groups = np.array([g for g in range(len(known)) if present >> g & 1], np.int64)
            if present:
                known[groups] = self.normalized(calls, self.raw_samples[groups])
            self._raw_points.put(present, known)
        return known

    def normalized(self, calls: PodCalls, rows: Rows) -> Ints:
        """int64 per row of `rows`: its weighted scores, beyond `base`, normalised over these rows."""
        found = np.full(calls.table.count(rows), -self._plan.constant, dtype=np.int64)
        for plugin, weight, is_raw in self._plan.scores.on_node:
            if is_raw:
                found += calls.normalize(plugin, rows, self.raws[plugin][rows]) * weight
        return found

    def _judge_rows(self, calls: PodCalls, rows: Ints) -> None:
        """Call the plugins about these rows, and group all rows by their raw scores."""
        plan, table, size = self._plan, calls.table, len(calls.table)
        if len(self.base) != size:
            more = np.zeros(size - len(self.base), dtype=np.int64)
            self.base = np.concatenate((self.base, more))
            self.raws = {p: np.concatenate((raw, more)) for p, raw in self.raws.items()}
        self.base[rows] = DEAD
        live = rows[table.live[rows]]
        self.base[live] = plan.constant
        for raw in self.raws.values():
            raw[rows] = 0
        if len(live):
            filters, scores = plan.filters.on_node, plan.scores.on_node
            add_answers(calls, live, self.base, self.statuses, filters, scores, self.raws)
        self._group_raws()

    def _group_raws(self) -> None:
        varied = [raw for raw in self.raws.values() if np.count_nonzero(raw)]
        self.raw_groups, self.raw_samples = None, self.base[:0]
        self._raw_points.drop()
        if varied:
            groups = group_rows(self.base, varied)
            if len(groups.samples):  # else all rows are refused
                self.raw_groups, self.raw_samples = groups.ids, groups.samples
