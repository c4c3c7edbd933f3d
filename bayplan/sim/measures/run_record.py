"""Run record: what the measures read of a finished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..group_outcomes import GroupOutcome
from ..outcomes import NodeUse, PodResult
from ..use_over_time import UseHistory
from .device_use import DriverDevices
from .node_parts import FreeParts


class RunRecord(Protocol):
    """A finished run, as the report of a simulation has it."""

    @property
    def pods(self) -> Sequence[PodResult]:
        """The pods that needed a node, in the order of their first attempt."""

    @property
    def nodes(self) -> Sequence[NodeUse]:
        """The nodes of the run, those that were removed included."""

    @property
    def preempted(self) -> Sequence[Any]:
        """The pods that were preempted."""

    @property
    def groups(self) -> Sequence[GroupOutcome]:
        """The pod groups, where they are scheduled as a whole."""

    @property
    def history(self) -> UseHistory:
        """What came to nodes and left them."""

    @property
    def parts(self) -> FreeParts:
        """What is free of the parts of the nodes that are left (nodes x parts), by resource, where a plugin says so."""

    @property
    def devices(self) -> Mapping[str, DriverDevices]:
        """The devices by driver."""

    @property
    def time_s(self) -> float:
        """When the run ended, on its own clock."""

    @property
    def seconds(self) -> float:
        """Duration on the wall clock."""
