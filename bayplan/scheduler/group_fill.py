"""Group fill: whether a pod group fits, by putting its members on rows in the kernel.

For preemption, which asks after each pod that it puts back on its node. Most of these pods are on nodes that the group
does not use, and leave the way of its members as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..amounts.kernel import fill
from ..api.pod import Pod
from ..engine import Fillings
from ..table import Ints, NodeTable


class GroupFilling:
    """Follows the values of all rows for each class of the members, where only amounts decide.

    A row without a member has the same value in every step. If the row changes, the members go the same way as long as
    its value is lower than those of all rows that members of the class are put on.
    """

    def __init__(self, fillings: Fillings, needed: int, ranks: Ints, table: NodeTable) -> None:
        self._kinds = [kind._replace(values=kind.values.copy()) for kind in fillings.kinds]
        self._classes = fillings.classes
        self._needed = needed
        self._ranks = ranks
        self._table = table
        self._rows = table.numbers(table.live_rows)
        self._is_followed = False
        self._hosts: set[int] = set()
        self._lowest: list[int] = []
        """Per class, the lowest value of a row that a member is put on; 0 when one is put on none."""

    def fits_beside(self, pods: Sequence[Pod]) -> bool:
        """Whether the group fits now that `pods` are back on their nodes; if not, they are about to leave again."""
        if not self._is_followed:
            self._judge(None)
            self._is_followed = self._fits()
            return self._is_followed
        rows = {self._table.row_of[pod.node_name] for pod in pods}
        changed = np.array(list(rows), dtype=np.int64)
        before = [kind.values[changed] for kind in self._kinds]
        self._judge(changed)
        if self._hosts.isdisjoint(rows) and self._goes_the_same_way(changed, before):
            return True
        if self._fits():
            return True
        for kind, values in zip(self._kinds, before, strict=True):
            kind.values[changed] = values
        return False

    def _judge(self, rows: Ints | None) -> None:
        for kind in self._kinds:
            kind.judge.judge(kind.values, kind.base, rows)

    def _goes_the_same_way(self, changed: Ints, before: Sequence[Ints]) -> bool:
        for kind, old, lowest in zip(self._kinds, before, self._lowest, strict=True):
            new = kind.values[changed]
            if np.count_nonzero((new != old) & (new >= lowest)):
                return False
        return True

    def _fits(self) -> bool:
        """Put the members on rows; the way they go is kept if enough of them fit."""
        ends = np.array([len(self._rows)], dtype=np.int64)
        hosts, values = fill(self._kinds, self._classes, self._rows, ends, self._ranks)
        rows = hosts[0].tolist()
        if sum(row >= 0 for row in rows) < self._needed:
            return False
        self._hosts = set(rows)
        self._lowest = [
            max(int(values[0, self._classes == number].min()), 0)
            for number in range(len(self._kinds))
        ]
        return True
