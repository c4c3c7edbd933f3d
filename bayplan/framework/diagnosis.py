"""Diagnosis: why a pod fits nowhere: the plugin that refused each node, and the message of the event.

Mirrors Diagnosis, NodeToStatus and FitError of pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ..table import Bools, Ints, NodeTable
from .row_statuses import RowStatuses, no_node_available
from .status import SUCCESS, Code, Status
from .verdict import Verdict

NOT_LOOKED_AT = Status(Code.UnschedulableAndUnresolvable)


Judgement = tuple[Ints, Verdict, str]
"""Rows, the verdict on them, and the plugin that gave it."""


@dataclass(slots=True)
class Diagnosis:
    """Result of each node in one attempt.

    A row has the status of the first plugin that refused it; with `every_reason`, the merged statuses of all plugins.
    `outside` are rows that PreFilter narrowed away or that were not reached: they have the status `absent`. `alone`
    holds rows judged one by one.
    """

    table: NodeTable
    alone: dict[int, Status] = field(default_factory=dict)
    extenders: dict[int, str] = field(default_factory=dict)
    """The address of the extender that refused a row or left it out."""
    inside: Ints | None = None
    """The rows that PreFilter left, when it narrowed them: `outside` is computed from them on demand."""
    outside: Bools | None = None
    absent: Status = NOT_LOOKED_AT
    refused_all: bool = False
    """PreFilter refused the pod: every node has the status `absent`."""
    pre_filter_message: str = ""
    post_filter_message: str = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    node_count: int = 0
    within: Bools | None = None
    """bool per row: the rows of a placement, if only these are tried; None if all are."""
    _by_row: RowStatuses | None = field(default=None, init=False, repr=False)
    """The status of each row that was judged with others, valid until the next attempt; None before any was."""
    _every: dict[int, list[Status]] = field(default_factory=dict, init=False, repr=False)
    """If every filter ran on every node: the refusals of each row."""

    @classmethod
    def of_rows(cls, table: NodeTable, statuses: RowStatuses | None) -> Diagnosis:
        """A diagnosis by the status of each row."""
        diagnosis = cls(table, node_count=table.node_count)
        diagnosis._by_row = statuses
        return diagnosis

    def add_judgements(
        self, judgements: Sequence[Judgement], *, every_reason: bool = False
    ) -> None:
        """Take the verdicts of plugins, in their order.

        With `every_reason`, every filter ran on every node (alwaysCheckAllPredicates of a Policy).
        """
        self._by_row = RowStatuses()
        self._by_row.clear(len(self.table))
        if not every_reason:
            self._by_row.put_rows(np.zeros(0, dtype=np.int64), judgements)
            return
        for rows, verdict, plugin in judgements:
            for position in np.flatnonzero(verdict.codes).tolist():
                status = verdict.status(position).by(plugin)
                self._every.setdefault(int(rows[position]), []).append(status)
        for row, statuses in self._every.items():
            self._by_row.put(row, reduce(Status.merged, statuses))

    def restrict(self, rows: Ints) -> None:
        """Leave out all nodes except `rows`."""
        self.within = np.zeros(len(self.table), dtype=np.bool_)
        self.within[rows] = True
        self.node_count = len(rows)

    def includes(self, node_name: str) -> bool:
        """Whether the node is among the nodes that are tried."""
        row = self.table.row_of.get(node_name)
        return self.within is None or (row is not None and bool(self.within[row]))

    @property
    def _live(self) -> Bools:
        """bool per row: the row has a node, which is tried."""
        return self.table.live if self.within is None else self.table.live & self.within

    @property
    def is_judged(self) -> bool:
        """Whether the refusing plugin of each node is recorded."""
        return self._by_row is not None

    def refuse_all(self, status: Status) -> None:
        """Record that PreFilter refused the pod and no node was tried."""
        self.absent, self.refused_all = status, True
        self.pre_filter_message = status.message
        self.add_plugin_status(status)

    def add_plugin_status(self, status: Status) -> None:
        """Record the refusing plugins, whose events requeue the pod."""
        if not status.plugin or not status.is_rejected:
            return
        self.unschedulable_plugins.add(status.plugin)
        if status.code is Code.Pending:
            self.pending_plugins.add(status.plugin)

    def note_rejectors(self) -> None:
        """Collect the rejecting plugins of the verdicts."""
        if self._by_row is not None and self._is_all_by_row:
            unschedulable, pending = self._by_row.rejectors
            self.unschedulable_plugins |= unschedulable
            self.pending_plugins |= pending
        elif self._by_row is not None:
            counted = zip(self._by_row.statuses, self._counts(self._by_row), strict=True)
            for status in (status for status, count in counted if count):
                self.add_plugin_status(status)
        for row, statuses in self._every.items():
            if row not in self.alone and not self.is_outside(row):
                for status in statuses:
                    self.add_plugin_status(status)
        for status in self.alone.values():
            self.add_plugin_status(status)

    def is_outside(self, row: int) -> bool:
        """Whether the node was not tried."""
        outside = self._outside()
        return outside is not None and bool(outside[row])

    def _outside(self) -> Bools | None:
        """bool per row: the node was not tried; None if all were."""
        if self.outside is None and self.inside is not None:
            self.outside = np.ones(len(self.table), dtype=np.bool_)
            self.outside[self.inside] = False
        return self.outside

    def status_of(self, row: int) -> Status:
        """The status of the node at `row`, with the plugin that gave it."""
        if row in self.alone:
            return self.alone[row]
        if self.refused_all or self.is_outside(row):
            return self.absent
        return SUCCESS if self._by_row is None else self._by_row.at(row)

    def by_status(self) -> list[tuple[Status, Ints]]:
        """Each distinct refusal, in the order of its first node, and the rows that have it."""
        live = np.flatnonzero(self._live)
        if self.refused_all:
            return [(self.absent, live)]
        statuses, indices = [SUCCESS], np.zeros(len(self.table), dtype=np.int32)
        if self._by_row is not None:
            statuses, indices = list(self._by_row.statuses), self._by_row.indices.copy()
        outside = self._outside()
        if outside is not None:
            indices[outside] = len(statuses)
            statuses.append(self.absent)
        for row, status in self.alone.items():
            indices[row] = len(statuses)
            statuses.append(status)
        groups: dict[Status, list[Ints]] = {}
        numbers, first = np.unique(indices[live], return_index=True)
        for number in numbers[np.argsort(first)].tolist():
            if not statuses[number].is_success:
                groups.setdefault(statuses[number], []).append(live[indices[live] == number])
        return [(status, np.sort(np.concatenate(rows))) for status, rows in groups.items()]

    def codes(self) -> NDArray[np.int8]:
        """int8 per row of the table: the code of each node's status."""
        size = len(self.table)
        if self.refused_all:
            return np.full(size, self.absent.code, dtype=np.int8)
        codes = np.zeros(size, dtype=np.int8) if self._by_row is None else self._by_row.codes()
        for row, status in self.alone.items():
            codes[row] = status.code
        outside = self._outside()
        if outside is not None:
            codes[outside] = self.absent.code
        return codes

    def rows_with(self, code: Code) -> Ints:
        """The rows of nodes whose status has this code, ascending."""
        if self._by_row is not None and self._is_all_by_row:
            return self._by_row.rows_with(code)
        return np.flatnonzero((self.codes() == code) & self._live)

    @property
    def _is_all_by_row(self) -> bool:
        """Whether `_by_row` has the status of every row."""
        return not self.alone and self.inside is None and self.outside is None

    def histogram(self) -> Counter[str]:
        """The number of nodes per reason."""
        counts: Counter[str] = Counter()
        if self._by_row is not None:
            counts = self._by_row.histogram(self._counts(self._by_row))
        for status in self.alone.values():
            counts.update(status.reasons)
        outside = self._outside()
        if outside is not None:
            absent = int(np.count_nonzero(outside & self._live))
            counts.update({reason: absent for reason in self.absent.reasons if absent})
        return +counts

    def message(self) -> str:
        """The text of the FailedScheduling event and the PodScheduled condition."""
        return self.with_post_filter(self.fit_error())

    def with_post_filter(self, fit_error: str) -> str:
        """The text, from the part without PostFilter."""
        added = self.post_filter_message
        return f"{fit_error} {added}" if added else fit_error

    def has(self, code: Code) -> bool:
        """Whether the status of some node has this code."""
        if self._by_row is not None and self._is_all_by_row:
            return self._by_row.has(code)
        return bool(((self.codes() == code) & self._live).any())

    def refusers(self, code: Code) -> frozenset[str]:
        """The plugins whose status with this code some node has."""
        if self._by_row is not None and self._is_all_by_row:
            given = self._by_row.given()
        else:
            given = [status for status, _ in self.by_status()]
        return frozenset(status.plugin for status in given if status.code is code)

    def fit_error(self) -> str:
        """The message without the part of PostFilter."""
        if self.pre_filter_message:
            return f"0/{self.node_count} nodes are available: {self.pre_filter_message}."
        if self._by_row is not None and self._is_all_by_row:
            return self._by_row.fit_error(self.node_count)
        return no_node_available(self.node_count, self.histogram())

    def _counts(self, by_row: RowStatuses) -> list[int]:
        """The number of rows per status of `by_row`, without rows that have a status of their own."""
        if self._is_all_by_row:
            return by_row.counts
        shown = np.array(self._live)
        shown[list(self.alone)] = False
        outside = self._outside()
        if outside is not None:
            shown &= ~outside
        counts = np.bincount(by_row.indices[shown], minlength=len(by_row.statuses))
        return [int(count) for count in counts]
