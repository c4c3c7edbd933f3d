"""Beside room: victims by amounts although other filters read pods, too, where those do not read these pods.

A filter on ports or on labels of pods is active, but most of the pods on a node have neither: whether they stay or go
makes no difference to it. Then only the amounts decide. Gives the same answers as `node_victims.py`; a property test
compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...api.pod import Pod, PodClass
from ...framework import SUCCESS, CycleState, FilterPlugin, Status
from ...framework.reserved import Reserved
from ...framework.room import RoomFilters
from ...framework.victims import Victims
from ...table import NodeTable
from .by_amounts import ByAmounts


class BesideRoom:
    """The search for victims of one pod on nodes where no pod affects `others`, the filters besides the fit rule's."""

    def __init__(
        self,
        filters: RoomFilters,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        reserved: Reserved,
        by_amounts: ByAmounts,
        others: Sequence[FilterPlugin],
    ) -> None:
        self._filters = filters
        self._state = state
        self._pod = pod
        self._table = table
        self._reserved = reserved
        self._by_amounts = by_amounts
        self._others = others
        self._read: dict[tuple[PodClass, tuple[str, ...], bool], bool] = {}

    def select(self, row: int) -> Victims | Status | None:
        """The victims on one row, or why there are none; None when one of the pods affects another filter."""
        table, pod = self._table, self._pod
        lower = [other for other in table.pods[row].values() if other.priority < pod.priority]
        rivals = [rival for rival in self._reserved.pods(row) if rival.uid != pod.uid]
        if self._read_any(lower) or self._read_any(rivals):
            return None
        found = self._by_amounts.select(row)
        room = found if isinstance(found, Status) and found.is_rejected else SUCCESS
        status = self._filters.filter_with_room(self._state, pod, table.node_at(row), room)
        return found if status.is_success else status

    def _read_any(self, pods: Iterable[Pod]) -> bool:
        """Whether one of the other filters reads one of the pods."""
        for other in pods:
            key = (other.pod_class, other.spec.claims, other.is_terminating)
            known = self._read.get(key)
            if known is None:
                known = self._filters.reads_any(self._others, self._state, self._pod, (other,))
                self._read[key] = known
            if known:
                return True
        return False
