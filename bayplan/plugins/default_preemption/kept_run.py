"""KeptRun: what choosing each node would cost, computed on demand and cached until the node changes.

Pods with equal demands that may preempt the same pods share it: for a wave of urgent pods only the nodes that the wave
itself changed are judged again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...api.pod import Pod
from ...api.workloads import PodDisruptionBudget
from ...framework import Nominator, Victims
from ...framework.reserved import Reserved
from ...framework.row_follower import RowFollower
from ...table import Bools, Ints, NodeTable
from ...table.pod_matrix import PodMatrix
from .budgets import Budgets, protects
from .by_room import Room, select_by_room
from .candidates import cost, earliest_start
from .dry_run import dry_run

FEW_ROWS = 12
"""Up to here one node after the other is quicker than all at once."""


class KeptRun:
    """The costs of every row, as far as they were asked for; only `judge` makes sure of them."""

    def __init__(self, table: NodeTable, nominator: Nominator, room: Room) -> None:
        self._table = table
        self._follower = RowFollower(table, nominator, table.row_changes, table.order_changes)
        self._stale: Bools = np.zeros(0, dtype=np.bool_)
        self._short: Ints = np.zeros(0, dtype=np.int64)
        self.room = room
        self.is_candidate: Bools = np.zeros(0, dtype=np.bool_)
        self.costs: Ints = np.zeros((5, 0), dtype=np.int64)
        """Per row: broken budgets, highest priority, sum of priorities, victims, earliest start; the first decides."""

    def follow(self, budgets: Budgets, matrix: PodMatrix) -> None:
        """Note which rows have to be judged again."""
        changed = self._follower.changed()
        if changed is None:
            self._start_anew()
        else:
            if len(self._stale) != len(self._table):
                self._grow()
            self._stale[changed] = True
        if budgets is not self.room.budgets:
            if changed is not None:
                self._follow_budgets(budgets.unlike(self.room.budgets), matrix)
            self.room = Room(self.room.demands, self.room.priority, budgets)
        self._follower.note()

    def _follow_budgets(self, changed: list[PodDisruptionBudget], matrix: PodMatrix) -> None:
        """Have the rows judged again with pods that one of these budgets is about, before or after."""
        matrix.refresh()
        ids = {
            number
            for budget in changed
            for number in matrix.labels_in(budget.namespace)
            if (sample := matrix.label_samples[number]) is not None and protects(budget, sample)
        }
        if ids:
            self._stale |= matrix.has_labels(ids)

    def judge(self, rows: Ints, matrix: PodMatrix, reserved: Reserved) -> None:
        """Find the costs of `rows`, where they are not known."""
        todo = rows[self._stale[rows]]
        if len(todo) > FEW_ROWS:
            matrix.refresh()
            run = dry_run(self._table, matrix, todo, self.room, reserved)
            self.is_candidate[todo] = run.is_candidate
            self.costs[:, todo] = run.costs
            self._short[todo] = run.short
        else:
            for row in todo.tolist():
                self._judge_row(row, reserved.pods(row))
        self._stale[todo] = False

    def judge_own(self, row: int, rivals: Sequence[Pod]) -> None:
        """Find the costs of one row for a pod that is nominated there itself; `forget` them afterwards."""
        self._judge_row(row, rivals)
        self._stale[row] = False

    def forget(self, row: int) -> None:
        """Have the row judged again when it is next asked for."""
        self._stale[row] = True

    def reasons(self, rows: Ints) -> Counter[str]:
        """On how many of `rows` each reason stands in the way even with all lower pods gone."""
        counts: Counter[str] = Counter()
        short = self._short[rows]
        if short.any():
            for bit, reason in enumerate(self.room.demands.reasons.values()):
                number = int(np.count_nonzero(short >> bit & 1))
                if number:
                    counts[reason] += number
        return counts

    def best(self, rows: Ints) -> int | None:
        """The row of `rows` whose victims are missed least, of equal ones the first by name; None without candidate."""
        left = rows[self.is_candidate[rows]]
        for number, costs in enumerate(self.costs):
            if len(left) > 1:
                values = costs[left]
                left = left[values == (values.max() if number == LATEST_WINS else values.min())]
        if not len(left):
            return None
        return self._table.row_of[min(map(self._table.names.__getitem__, left.tolist()))]

    def _judge_row(self, row: int, rivals: Sequence[Pod]) -> None:
        found = select_by_room(self._table, row, self.room, rivals)
        self.is_candidate[row] = isinstance(found, Victims) and bool(found.pods)
        self._short[row] = 0
        if isinstance(found, Victims):
            if found.pods:
                self.costs[:, row] = (*cost(found), earliest_start(found))
        else:
            resources = list(self.room.demands.amounts)
            self._short[row] = sum(1 << resources.index(resource) for resource in found)

    def _start_anew(self) -> None:
        size = len(self._table)
        self._stale = np.ones(size, dtype=np.bool_)
        self._short = np.zeros(size, dtype=np.int64)
        self.is_candidate = np.zeros(size, dtype=np.bool_)
        self.costs = np.zeros((5, size), dtype=np.int64)

    def _grow(self) -> None:
        known, old = len(self._stale), (self._stale, self._short, self.is_candidate, self.costs)
        self._start_anew()
        self._stale[:known], self._short[:known], self.is_candidate[:known] = old[:3]
        self.costs[:, :known] = old[3]


LATEST_WINS = 4
"""The position of the earliest start among the costs: there the highest is best."""

MOST_ROWS = 500_000
"""Rows kept at most, over all runs; those unused for longest go first."""


class KeptRuns:
    """The runs of one profile, by what pods need and which pods they may preempt."""

    def __init__(self) -> None:
        self._runs: dict[object, KeptRun] = {}  # in order of last use
        self._matrix: PodMatrix | None = None

    def get(self, room: Room, table: NodeTable, nominator: Nominator) -> KeptRun:
        """The run for pods that need `room`, having followed the table."""
        demands = room.demands
        key = (room.priority, tuple(demands.amounts.items()), tuple(demands.reasons.items()))
        run = self._runs.pop(key, None)
        if run is None:
            run = KeptRun(table, nominator, room)
            while self._runs and (len(self._runs) + 1) * len(table) > MOST_ROWS:
                del self._runs[next(iter(self._runs))]
        self._runs[key] = run
        run.follow(room.budgets, self.matrix(table))
        return run

    def matrix(self, table: NodeTable) -> PodMatrix:
        """The pods of the table as a matrix."""
        if self._matrix is None:
            self._matrix = PodMatrix(table)
        return self._matrix
