"""QueuedPodInfo: a pod in the queue with its scheduling history.

Mirrors QueuedPodInfo of pkg/scheduler/framework/types.go. Instead of a signature the pod has its
class (`pod.spec`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from ..api.pod import Pod
from ..framework import Status

NO_BACKOFF = 0.0


class QueuedPodInfo(Struct, eq=False):
    """A pod that is pending or being scheduled. Times are seconds since 1970."""

    pod: Pod
    timestamp: float
    """Time when it was added, or returned from its last attempt; moves within the queue do not change it."""
    attempts: int = 0
    """Number of pops."""
    backoff_expiration: float = NO_BACKOFF
    """The whole second in which its backoff ends."""
    unschedulable_count: int = 0
    """Attempts that ended with a rejection."""
    consecutive_errors_count: int = 0
    """Consecutive attempts that ended with an error."""
    was_flushed_from_unschedulable: bool = False
    flush_timestamp: float = 0.0
    initial_attempt_timestamp: float | None = None
    """Time when it first entered the active queue."""
    turn: int = 0
    """Orders pods by their first entry into the active queue; pods that one event moved have the same turn."""
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins that rejected it in the last attempt, and those that gated it since."""
    pending_plugins: frozenset[str] = frozenset()
    """Plugins of the last attempt that returned Pending: their events skip the backoff."""
    gated_by: Status | None = None
    """The status of the PreEnqueue plugin that gates it now."""

    @property
    def gating_plugin(self) -> str:
        """The plugin that gates the pod; "" for none."""
        return self.gated_by.plugin if self.gated_by is not None else ""

    @property
    def is_gated(self) -> bool:
        return self.gated_by is not None

    @property
    def has_rejectors(self) -> bool:
        """Whether a plugin rejected the pod; otherwise its attempt ended with an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def waiting_since(self) -> float:
        """Time from which the limit on unschedulable time is counted."""
        return max(self.timestamp, self.flush_timestamp)

    @property
    def rejection(self) -> Rejection:
        return Rejection(
            self.pod.scheduler_name,
            self.unschedulable_plugins,
            self.pending_plugins,
            self.gating_plugin,
        )

    def set_rejectors(self, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """Record the end of an attempt and its rejectors; an error has no rejectors."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gated_by = None


class Rejection(NamedTuple):
    """The rejectors of a pod, which determine the hints to call; there are few distinct ones."""

    profile: str
    unschedulable: frozenset[str]
    pending: frozenset[str]
    gating_plugin: str

    @property
    def plugins(self) -> frozenset[str]:
        return self.unschedulable | self.pending
