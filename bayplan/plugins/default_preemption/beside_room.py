"""Beside room: victims by adding up although other filters look at pods, too, where those do not look at these pods.

A filter on ports or on labels of pods is active, but most of the pods on a node have neither: whether they stay or go
makes no difference to it. Then only the room does. Holds the same answers as `victims.py`; a property test says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...amounts import POD_COUNT
from ...api.pod import Pod, PodClass
from ...framework import (
    SUCCESS,
    Code,
    CycleState,
    Status,
    Victims,
    failure,
)
from ...framework.handle import PodFilter
from ...framework.reserved import Reserved
from ...framework.room import RoomFilters
from ...table import NodeTable
from .by_room import Room, select_by_room


class BesideRoom:
    """The search for victims of one pod on nodes where no pod affects `others`, the filters
    besides the one for room."""

    def __init__(
        self,
        filters: RoomFilters,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        reserved: Reserved,
        room: Room,
        others: Sequence[PodFilter],
    ) -> None:
        self._filters = filters
        self._state = state
        self._pod = pod
        self._table = table
        self._reserved = reserved
        self._room = room
        self._others = others
        self._looked_at: dict[tuple[PodClass, bool], bool] = {}

    def select(self, row: int) -> Victims | Status | None:
        """The victims on one row, or why there are none; None when one of the pods affects another filter."""
        table, pod, room = self._table, self._pod, self._room
        rivals = [rival for rival in self._reserved.pods(row) if rival.uid != pod.uid]
        lower = [other for other in table.pods[row].values() if other.priority < room.priority]
        if self._looks_at_any(lower) or self._looks_at_any(rivals):
            return None
        found = select_by_room(table, row, room, rivals)
        status = SUCCESS if isinstance(found, Victims) else self._short(row, found)
        status = self._filters.filter_with_room(self._state, pod, table.node_at(row), status)
        if not status.is_success:
            return status
        assert isinstance(found, Victims), "who is short of room is refused"
        if not found.pods:
            return failure(f'expected at least one victim pod on node "{found.node_name}"')
        return found

    def _looks_at_any(self, pods: Iterable[Pod]) -> bool:
        for other in pods:
            key = (other.pod_class, other.is_terminating)
            known = self._looked_at.get(key)
            if known is None:
                known = any(f.looks_at(self._state, self._pod, other) for f in self._others)
                self._looked_at[key] = known
            if known:
                return True
        return False

    def _short(self, row: int, resources: Sequence[str]) -> Status:
        """What the filter for room says about a row that is short of `resources`."""
        offered, demands = self._table.allocatable.at(row), self._room.demands
        never = any(
            demands.amounts[name] > offered.get(name, 0) for name in resources if name != POD_COUNT
        )
        code = Code.UnschedulableAndUnresolvable if never else Code.Unschedulable
        return Status(code, tuple(demands.reasons[name] for name in resources))
