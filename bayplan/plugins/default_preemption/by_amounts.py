"""By amounts: the victims of one pod where only requests decide, on many nodes at once.

Gives the same answers as `node_victims.py`, which edits a copy of each node and runs the filters; property tests
compare them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from ...amounts import FitRule
from ...amounts.removing import PodRemoval, count_short
from ...framework import Status, failure
from ...framework.fit_status import fit_status
from ...framework.victims import Victims
from ...table import Bools, Ints, NodeTable
from ...table.pod_matrix import PodMatrix, by_importance
from .candidates import NO_VICTIMS
from .disruption_budgets import Budgets


class ByAmounts:
    """The search for pods below `priority` to remove; `reserved` is used on each row in addition, per resource."""

    def __init__(
        self,
        table: NodeTable,
        matrix: PodMatrix,
        rule: FitRule,
        priority: int,
        budgets: Budgets,
        reserved: Callable[[str], Ints] | None,
    ) -> None:
        matrix.refresh(priority)
        self._table = table
        self._matrix = matrix
        self._rule = rule
        self._priority = priority
        self._budgets = budgets
        self._removal = PodRemoval(table, matrix, rule, priority, reserved)

    def search(self, rows: Ints, start: int, wanted: int) -> Victims | Counter[str]:
        """The victims on the best of the first `wanted` candidates; without one, how many rows each reason is on.

        The rows from the one at `start` on come first, then those before it.
        """
        protect = self._protected if self._budgets.listed else None
        found = self._removal.search(rows, start, wanted, protect)
        if found.row < 0:
            return Counter({NO_VICTIMS: found.idle}) + Counter(count_short(self._rule, found.short))
        best = self.select(found.row)
        assert isinstance(best, Victims), "a row that is a candidate has victims"
        return best

    def select(self, row: int) -> Victims | Status:
        """The victims on one row, or why there are none."""
        protected = None
        if self._budgets.listed:
            protected = self._protected(np.array([row], dtype=np.int64))
        bits, places = self._removal.victims(row, protected)
        name, current = self._table.names[row], self._table.pods[row]
        if bits:
            return fit_status(self._rule, bits)
        if not places:
            return failure(f'expected at least one victim pod on node "{name}"')
        pods = [current[pod.uid] for pod in self._matrix.pods[row]]
        if protected is None:
            return Victims(name, [pods[place] for place in places], 0)
        is_protected = protected[0].tolist()
        violating = [pods[place] for place in places if is_protected[place]]
        victims = violating + [pods[place] for place in places if not is_protected[place]]
        if (
            len({is_protected[p] for p, pod in enumerate(pods) if pod.priority < self._priority})
            > 1
        ):
            victims = by_importance(victims, self._matrix.by_place)
        return Victims(name, victims, len(violating))

    def _protected(self, rows: Ints) -> Bools | None:
        return self._budgets.exceeded(self._matrix, rows, self._priority)
