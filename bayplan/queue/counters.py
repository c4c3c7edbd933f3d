"""QueueCounters: counts of the queue, as plain integers.

The numbers behind scheduler_queue_incoming_pods_total and scheduler_unschedulable_pods.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from .queued_pod import QueuedPodInfo

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


@dataclass(slots=True)
class QueueCounters:
    """Counts since the start (`incoming`) and current counts (`rejected_by`)."""

    incoming: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """Pods that entered a part of the queue, by part and event label."""
    rejected_by: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """Pods that a plugin rejected, by plugin and profile."""

    def count_rejectors(self, info: QueuedPodInfo, change: int) -> None:
        """Count the pod for its rejectors (+1), or no longer (-1)."""
        profile = info.pod.scheduler_name
        plugins = info.unschedulable_plugins
        for plugin in plugins | info.pending_plugins if info.pending_plugins else plugins:
            self.rejected_by[plugin, profile] += change
