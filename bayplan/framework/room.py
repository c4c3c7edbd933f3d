"""Room: the profile's filters, where they only depend on sums over the pods of a node. For DefaultPreemption.

Not part of the contract with plugin authors: it changes with the way in which preemption searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from ..amounts import FitRule
from ..api.pod import Pod
from ..table import NodeInfo, NodeTable
from .cycle_state import CycleState
from .diagnosis import Diagnosis
from .handle import FilterRunner, Handle
from .interface import FilterPlugin
from .reserved import Reserved
from .status import Status


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
    return cast(RoomFilters, handle.filters)
