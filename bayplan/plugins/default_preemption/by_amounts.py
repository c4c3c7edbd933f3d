"""By amounts: the victims of one pod on many nodes at once, for filters that only depend on requests.

Gives the same answers as `node_victims.py`, which edits a copy of each node and runs the filters; property tests
compare them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np

from ...amounts import FitRule
from ...amounts.removing import PRIORITY_OFFSET, PodRemoval, count_short
from ...api.pod import Pod, PodClass
from ...framework import SUCCESS, CycleState, FilterPlugin, Status, failure
from ...framework.diagnosis import Diagnosis
from ...framework.fit_status import fit_status
from ...framework.handle import FilterRunner, Handle
from ...framework.reserved import Reserved
from ...framework.victims import Victims
from ...table import Bools, Ints, NodeInfo, NodeTable
from ...table.pod_matrix import PodMatrix, by_importance, start_of
from .disruption_budgets import Budgets

NO_VICTIMS = "No preemption victims found for incoming pod"


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


@dataclass(slots=True, eq=False)
class BesideRoom:
    """The search for victims of one pod on nodes whose pods do not affect `others`, the filters besides the fit rule.

    For example, a filter on host ports is active, but no pod on the node has one: then only the amounts matter.
    """

    filters: RoomFilters
    state: CycleState
    pod: Pod
    table: NodeTable
    reserved: Reserved
    by_amounts: ByAmounts
    others: Sequence[FilterPlugin]
    _read: dict[tuple[PodClass, tuple[str, ...], bool], bool] = field(
        default_factory=dict, init=False
    )

    def select(self, row: int) -> Victims | Status | None:
        """The victims on one row, or why there are none; None when one of the pods affects another filter."""
        table, pod = self.table, self.pod
        lower = [other for other in table.pods[row].values() if other.priority < pod.priority]
        rivals = [rival for rival in self.reserved.pods(row) if rival.uid != pod.uid]
        if self._read_any(lower) or self._read_any(rivals):
            return None
        found = self.by_amounts.select(row)
        room = found if isinstance(found, Status) and found.is_rejected else SUCCESS
        status = self.filters.filter_with_room(self.state, pod, table.node_at(row), room)
        return found if status.is_success else status

    def _read_any(self, pods: Iterable[Pod]) -> bool:
        """Whether one of the other filters reads one of the pods."""
        for other in pods:
            key = (other.pod_class, other.spec.claims, other.is_terminating)
            known = self._read.get(key)
            if known is None:
                known = self.filters.reads_any(self.others, self.state, self.pod, (other,))
                self._read[key] = known
            if known:
                return True
        return False


class RoomFilters(FilterRunner, Protocol):
    """The profile's filters; filters with a rule on amounts are evaluated by sums."""

    def demands(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> FitRule | None:
        """The fit rule of `pod`, if it alone decides about nodes that may fit without some of their pods."""

    def beside_room(
        self, state: CycleState, pod: Pod
    ) -> tuple[FitRule, Sequence[FilterPlugin]] | None:
        """Amounts that `pod` needs free on a node, and the filters that depend on its pods otherwise, if they declare
        it.
        """

    def reads_any(
        self,
        filters: Sequence[FilterPlugin],
        state: CycleState,
        pod: Pod,
        others: Sequence[Pod],
    ) -> bool:
        """Whether an answer of one of `filters` can depend on one of the `others`."""

    def reserved(self, pod: Pod, table: NodeTable) -> Reserved:
        """Use of pods nominated with at least the priority of `pod`, up to date."""

    def filter_with_room(self, state: CycleState, pod: Pod, node: NodeInfo, room: Status) -> Status:
        """Judge one node, with `room` as the result of the fit rule."""


def room_filters(handle: Handle) -> RoomFilters:
    """The filters of the profile of `handle`."""
    assert handle.filters is not None, "the profile sets handle.filters before the first pod"
    return cast("RoomFilters", handle.filters)


def best_candidate(candidates: Iterable[Victims]) -> Victims:
    """The node with the least important victims; ties go to the latest start, then to the first name."""
    ordered = sorted(candidates, key=lambda victims: victims.node_name)
    cheapest = min(cost(victims) for victims in ordered)
    tied = [victims for victims in ordered if cost(victims) == cheapest]
    return max(tied, key=earliest_start)  # of equal ones, max takes the first


def cost(victims: Victims) -> tuple[int, int, int, int]:
    """Broken budgets, the priority of the most important victim, the sum of priorities lost, the number of pods."""
    priorities = [pod.priority for pod in victims.pods]
    total = sum(priority + PRIORITY_OFFSET for priority in priorities)
    return victims.pdb_violations, priorities[0], total, len(priorities)


def earliest_start(victims: Victims) -> int:
    """Time when the first of the most important victims started."""
    highest = max(pod.priority for pod in victims.pods)
    return min(start_of(pod) for pod in victims.pods if pod.priority == highest)
