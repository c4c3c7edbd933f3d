"""QueuedPodInfo: a pod in the queue, and what the queue remembers of it.

Mirrors QueuedPodInfo of pkg/scheduler/framework/types.go. Instead of a signature the pod has its class (`pod.spec`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..api.pod import Pod
from ..framework import Status

NO_BACKOFF = 0.0


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod that waits or is being scheduled. Times are seconds since 1970."""

    pod: Pod
    timestamp: float
    """When it came, or came back from its last attempt; moves between the parts of the queue leave it alone."""
    attempts: int = 0
    """How often it was popped."""
    backoff_expiration: float = NO_BACKOFF
    """The whole second its backoff ends in."""
    unschedulable_count: int = 0
    """Attempts that ended with a rejection."""
    consecutive_errors_count: int = 0
    """Attempts in a row that ended with an error."""
    was_flushed_from_unschedulable: bool = False
    flush_timestamp: float = 0.0
    initial_attempt_timestamp: float | None = None
    """When it first entered the active queue."""
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins that rejected it: those of the last attempt, and those that held it back since."""
    pending_plugins: frozenset[str] = frozenset()
    """Those of the last attempt that asked it to wait: when they call, there is no backoff."""
    gated_by: Status | None = None
    """What the PreEnqueue plugin said that holds it back now."""

    @property
    def gating_plugin(self) -> str:
        """The plugin that holds the pod back; "" when none does."""
        return self.gated_by.plugin if self.gated_by is not None else ""

    @property
    def is_gated(self) -> bool:
        return self.gated_by is not None

    @property
    def has_rejectors(self) -> bool:
        """Whether some plugin rejected the pod; without one its attempt ended with an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def waiting_since(self) -> float:
        """The time the limit on waiting unschedulable counts from."""
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
        """An attempt has ended: who rejected the pod this time; nobody means an error."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gated_by = None


class Rejection(NamedTuple):
    """All that decides which hints are asked about a pod; many pods share few of these."""

    profile: str
    unschedulable: frozenset[str]
    pending: frozenset[str]
    gating_plugin: str

    @property
    def plugins(self) -> frozenset[str]:
        return self.unschedulable | self.pending
