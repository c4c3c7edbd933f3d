"""Outcomes: the result of one pod, and the use of one node, in a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from ..api.node import Node
from ..api.pod import Pod
from ..scheduler import Attempt, Outcome


class PodResult(Struct):
    """The last attempt of one pod, and its outcome; times are seconds on the simulation's clock."""

    attempt: Attempt
    time_s: float = 0.0
    """Time when the attempt ended."""
    attempts: int = 1
    created_s: float = 0.0
    finished_s: float | None = None
    deleted_s: float | None = None
    """Time when a placed pod was deleted."""

    @property
    def pod(self) -> Pod:
        return self.attempt.pod

    @property
    def is_placed(self) -> bool:
        """Whether it was placed, even if it was deleted later."""
        return self.attempt.outcome is Outcome.BOUND


NO_AMOUNTS: Mapping[str, int] = MappingProxyType({})


class NodeUse(msgspec.Struct):
    """Requested amounts of a node before and after: cpu in milli, others in whole units."""

    node: Node
    before: Mapping[str, int] = NO_AMOUNTS
    after: Mapping[str, int] = NO_AMOUNTS
    pods_before: int = 0
    pods_after: int = 0
    added_s: float | None = None
    """Time when it was added, on the simulation's clock; None means at the start."""
    removed_s: float | None = None
