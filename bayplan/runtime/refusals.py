"""Refusals: which rows refuse pods of one class, and why, kept and followed up.

A pod that fits nowhere is explained node by node. The next pod of its class is refused for the same reasons, except
where a row, or what is nominated to it, changed since: only those rows are judged again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..api.pod import Pod, PodSpec
from ..framework import SUCCESS, CycleState, Demands, NodeInfo, Nominator, Status, Verdict
from ..framework.reserved import POD_COUNT, Reservations, Reserved
from ..framework.row_follower import RowFollower
from ..framework.row_statuses import RowStatuses
from ..table import Bools, Ints, NodeTable
from .kept import MAX_CELLS

FEW_ROWS = 16
"""Up to here asking about one node after the other is quicker than asking about all at once."""
MOST_SPECS = 4096
MOST_STATUSES = 4096
"""Distinct statuses after which a class starts anew: a filter that never says the same twice must not fill memory."""


class Question(NamedTuple):
    """A pod to judge, and the nominated pods it must leave room for (itself among them, if it is nominated)."""

    state: CycleState
    pod: Pod
    table: NodeTable
    reserved: Reserved


class Judges(Protocol):
    """The filters of a profile, as they are asked here."""

    def judge_in_order(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Ints
    ) -> list[tuple[Ints, Verdict, str]]:
        """Ask about `rows`, each plugin about those that the plugins before it left."""

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node."""

    def filter_node_again(
        self, state: CycleState, pod: Pod, node: NodeInfo, before: Status
    ) -> Status:
        """Judge a node of which only the pods changed since the one filter that looks at pods said `before`."""

    def judge_with(
        self, state: CycleState, pod: Pod, node: NodeInfo, rivals: Sequence[Pod]
    ) -> Status:
        """Judge one node with further pods on it."""

    def first_of(self, crowded: Status, plain: Status) -> Status:
        """The status of a node without room beside the nominated pods, which says `plain` without them."""


class Refusals:
    """What the rows say to pods of one class.

    `crowded` has the rows that refuse the pod with their nominated pods on them, `all` every row that refuses it.
    Pods of the class that are nominated themselves count like others: the row of such a pod is judged apart.
    """

    def __init__(
        self, judges: Judges, table: NodeTable, nominator: Nominator, demands: Demands | None
    ) -> None:
        self._judges = judges
        self._demands = demands
        self.crowded = RowStatuses()
        self.all = RowStatuses()
        self._of_crowded = RowFollower(table, nominator, table.row_changes)
        self._of_all = RowFollower(table, nominator, table.row_changes)
        self._nodes_seen = -1

    @property
    def is_up_to_date(self) -> bool:
        """Whether nothing changed since `follow`."""
        return self._of_all.is_up_to_date

    def follow_crowded(self, asked: Question) -> None:
        """Bring `crowded` up to date."""
        table, crowded = asked.table, self.crowded
        if not asked.reserved and not crowded.refused:
            self._of_crowded.forget()  # found anew when there is something to find
            return
        changed = self._of_crowded.changed()
        if changed is None or len(crowded.statuses) > MOST_STATUSES:
            self._crowd_anew(asked)
        else:
            crowded.grow(len(table))
            for row in changed:
                if asked.reserved.pods(row) and table.nodes[row] is not None:
                    crowded.put(row, self._judge_with(asked, row))
                elif crowded.said.item(row):
                    crowded.put(row, SUCCESS)
        self._of_crowded.note()

    def follow(self, asked: Question) -> None:
        """Bring both up to date."""
        if self._of_all.is_up_to_date:
            return  # so is the other: it is followed whenever this one is
        self.follow_crowded(asked)
        table = asked.table
        changed = self._of_all.changed()
        if changed is None or len(self.all.statuses) > MOST_STATUSES:
            self._of_all.forget()
            self.all.clear(len(table))
            self._judge(asked, table.numbers(table.live_rows))
        else:
            self.all.grow(len(table))
            live = [row for row in changed if table.nodes[row] is not None]
            for row in changed if len(live) != len(changed) else ():
                if table.nodes[row] is None:
                    self.all.put(row, SUCCESS)
            if len(live) > FEW_ROWS:
                self._judge(asked, np.array(sorted(live), dtype=np.int64))
            else:
                for row in live:
                    self._judge_row(asked, row)
        self._nodes_seen = table.node_changes.version
        self._of_all.note()

    def _judge_row(self, asked: Question, row: int) -> None:
        """Judge one row."""
        state, pod, table, _ = asked
        node, before = table.node_at(row), self.all.at(row)
        demands = self._demands
        if (
            before is not SUCCESS
            and demands is not None
            and before.plugin == demands.plugin
            and self._nodes_seen == table.node_changes.version
        ):
            status = self._judges.filter_node_again(state, pod, node, before)
        else:
            status = self._judges.filter_node(state, pod, node)
        crowded = self.crowded.at(row) if self.crowded.refused else SUCCESS
        self.all.put(row, status if crowded is SUCCESS else self._choose(crowded, status))

    def _judge(self, asked: Question, rows: Ints) -> None:
        """Judge many rows."""
        state, pod, table, _ = asked
        self.all.put_rows(rows, self._judges.judge_in_order(state, pod, table, rows))
        if self.crowded.refused:
            self.all.overlay(self.crowded, rows, self._choose)

    def _choose(self, crowded: Status, plain: Status) -> Status:
        return crowded if self._demands is None else self._judges.first_of(crowded, plain)

    def _crowd_anew(self, asked: Question) -> None:
        table, crowded = asked.table, self.crowded
        self._of_crowded.forget()
        crowded.clear(len(table))
        rows = asked.reserved.rows
        rows = rows[table.live[rows]]
        if self._demands is None:
            for row in rows.tolist():
                crowded.put(row, self._judge_with(asked, row))
        elif len(rows):
            verdict = short_of_room(table, rows, asked.reserved, self._demands)
            crowded.put_rows(rows, [(rows, verdict, self._demands.plugin)])

    def _judge_with(self, asked: Question, row: int) -> Status:
        state, pod, table, reserved = asked
        return self._judges.judge_with(state, pod, table.node_at(row), reserved.pods(row))


def short_of_room(table: NodeTable, rows: Ints, reserved: Reserved, demands: Demands) -> Verdict:
    """Which of `rows` have too little left for `demands` once the nominated pods are there."""
    verdict = Verdict.accept(table, rows)
    for resource, wanted in demands.amounts.items():
        used = table.pod_count if resource == POD_COUNT else table.requested[resource]
        capacity = table.allocatable[resource][rows]
        short = wanted > capacity - used[rows] - reserved.usage(resource)[rows]
        never: bool | Bools = False if resource == POD_COUNT else wanted > capacity
        verdict.reject(short, demands.reasons[resource], unresolvable=never)
    return verdict


class RefusalBook:
    """The refusals of all classes of pods of one profile."""

    def __init__(self, judges: Judges, nominator: Nominator) -> None:
        self._judges = judges
        self._nominator = nominator
        self._of: dict[Hashable, Refusals] = {}  # in order of last use
        self._reservations = Reservations()
        self.refused: dict[PodSpec, Refusals | None] = {}
        """Specs of which the last pod was refused by every node; one may be missing. With what is kept for all pods of
        the spec, if the spec is all that counts."""

    def get(self, key: Hashable) -> Refusals | None:
        """What is kept for a class."""
        refusals = self._of.pop(key, None)
        if refusals is not None:
            self._of[key] = refusals
        return refusals

    def make(self, key: Hashable, table: NodeTable, demands: Demands | None) -> Refusals:
        """Begin to keep something for a class."""
        while self._of and (len(self._of) + 1) * len(table) > MAX_CELLS:
            del self._of[next(iter(self._of))]
        refusals = Refusals(self._judges, table, self._nominator, demands)
        self._of[key] = refusals
        return refusals

    def clear(self) -> None:
        """Forget what the rows said."""
        self._of.clear()
        self.refused.clear()

    def note(self, pod: Pod, refusals: Refusals, table: NodeTable) -> bool:
        """Remember, and say, whether every node refuses the pod, one for itself excepted."""
        is_refused = refusals.all.refused == table.node_count
        if is_refused:
            if len(self.refused) >= MOST_SPECS:
                self.refused.clear()
            self.refused[pod.spec] = refusals if self._of.get(pod.spec) is refusals else None
        else:
            self.refused.pop(pod.spec, None)
        return is_refused

    def reserved(self, pod: Pod, table: NodeTable) -> Reserved:
        """What is nominated with at least the priority of `pod`, up to date."""
        return self._reservations.at_least(pod.priority, table, self._nominator)
