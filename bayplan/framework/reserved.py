"""Reserved: the future use of the pods nominated to each row, as columns that follow the nominations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..amounts import POD_COUNT
from ..api.pod import Pod
from ..table import Bools, Ints, NodeTable
from .handle import Nominator


class Reserved:
    """The nominated pods with at least `priority`: their number and their use, summed up per row.

    `rows` are the rows with such a pod; rows without a node may be among them.
    """

    def __init__(self, table: NodeTable, nominator: Nominator, priority: int) -> None:
        self._table = table
        self._nominator = nominator
        self._priority = priority
        self._nominations = self._nodes = -1
        self._pods: dict[int, list[Pod]] = {}
        self._usage: dict[str, Ints] = {POD_COUNT: np.zeros(0, dtype=np.int64)}
        self._rows: Ints | None = None

    def follow(self) -> None:
        """Apply the changes of nominations, and of the set of nodes."""
        table, nominator = self._table, self._nominator
        if self._nominations == nominator.version and self._nodes == table.node_changes.version:
            return
        names = nominator.changed_since(self._nominations) if self._nominations >= 0 else None
        moved = table.node_changes.since(self._nodes)
        if names is None or moved is None:
            self._start_anew()
        else:
            self._make_room()
            known = (table.row_of.get(name) for name in names)
            for row in {*moved, *(row for row in known if row is not None)}:
                self._sum_up(row)
        self._nominations, self._nodes = nominator.version, table.node_changes.version

    def pods(self, row: int) -> Sequence[Pod]:
        """The pods that are nominated to the row and count."""
        return self._pods.get(row, ())

    def usage(self, resource: str) -> Ints:
        """int64 per row: the pods' use of `resource`; for the resource `pods`, each counts 1."""
        found = self._usage.get(resource)
        return self._usage[POD_COUNT] * 0 if found is None else found

    def usage_beside(self, pod: Pod) -> Callable[[str], Ints]:
        """The result of `usage`, without `pod` itself."""
        row = self._table.row_of.get(self._nominator.node_of(pod))
        own = [] if row is None else [own for own in self.pods(row) if own.uid == pod.uid]
        if row is None or not own:
            return self.usage

        def usage(resource: str) -> Ints:
            values = self.usage(resource).copy()
            values[row] -= 1 if resource == POD_COUNT else own[0].usage.get(resource, 0)
            return values

        return usage

    @property
    def rows(self) -> Ints:
        """The rows with nominated pods, ascending."""
        if self._rows is None:
            self._rows = np.flatnonzero(self._usage[POD_COUNT])
        return self._rows

    def among(self, rows: Ints | None) -> Ints:
        """The rows with nominated pods among `rows`, or among all if that is None; ascending and without repetition."""
        if rows is None:
            return self.rows
        found = [row for row in set(rows.tolist()) if row in self._pods]
        return np.array(sorted(found), dtype=np.int64)

    def __bool__(self) -> bool:
        """Whether any nominated pod counts."""
        return bool(self._pods)

    def is_reserved(self, rows: Ints) -> Bools:
        """bool per row of `rows`: a pod that counts is nominated to it."""
        reserved: Bools = self._usage[POD_COUNT][rows] > 0
        return reserved

    def _start_anew(self) -> None:
        self._pods, self._rows = {}, None
        self._usage = {POD_COUNT: np.zeros(len(self._table), dtype=np.int64)}
        for name in self._nominator.node_names():
            row = self._table.row_of.get(name)
            if row is not None:
                self._sum_up(row)

    def _sum_up(self, row: int) -> None:
        name = self._table.names[row]
        pods = [p for p in self._nominator.nominated_pods(name) if p.priority >= self._priority]
        before = self._pods.get(row)
        if not pods and before is None:
            return
        for values in self._usage.values():
            values[row] = 0
        if pods:
            self._pods[row] = pods
        else:
            del self._pods[row]
        if (before is None) == bool(pods):
            self._rows = None
        self._usage[POD_COUNT][row] = len(pods)
        for pod in pods:
            for resource, amount in pod.usage.items():
                if resource != POD_COUNT:
                    self._column(resource)[row] += amount

    def _column(self, resource: str) -> Ints:
        column = self._usage.get(resource)
        if column is None:
            column = self._usage[resource] = np.zeros(len(self._table), dtype=np.int64)
        return column

    def _make_room(self) -> None:
        size = len(self._table)
        for resource, values in self._usage.items():
            if len(values) < size:
                grown = self._usage[resource] = np.zeros(size, dtype=np.int64)
                grown[: len(values)] = values
