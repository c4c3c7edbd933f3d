"""ActiveQueue: the pods that are ready to be scheduled.

Mirrors pkg/scheduler/backend/queue/active_queue.go.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..framework.events import POP_FROM_BACKOFF_Q
from .backoff import BackoffQueue
from .heap import KeyedHeap
from .in_flight import InFlight
from .queued_pod import QueuedPodInfo

# QueueCounters: counts of the queue, as plain integers.
# The numbers behind scheduler_queue_incoming_pods_total and scheduler_unschedulable_pods.

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"
POD_ENTRY, GROUP_ENTRY = "pod", "podgroup"
"""Types of entries, as metrics name them."""


@dataclass(slots=True)
class QueueCounters:
    """Counts since the start (`incoming`) and current counts (`rejected_by`)."""

    incoming: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """Pods that entered a part of the queue, by part and event label."""
    rejected_by: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """Pods that a plugin rejected, by plugin and profile."""
    incoming_groups: defaultdict[tuple[str, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    """Pod groups that entered a part of the queue as one entry, by part and event label."""
    incoming_members: defaultdict[tuple[str, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    """The part of `incoming` for members of such groups."""

    def entities(self) -> dict[tuple[str, ...], int]:
        """Entries that entered a part of the queue, by part, event label and type."""
        found: dict[tuple[str, ...], int]
        found = {(*where, GROUP_ENTRY): number for where, number in self.incoming_groups.items()}
        for where, number in self.incoming.items():
            found[*where, POD_ENTRY] = number - self.incoming_members.get(where, 0)
        return {where: number for where, number in found.items() if number}

    def count_rejectors(self, info: QueuedPodInfo, change: int) -> None:
        """Count the pod for its rejectors (+1), or no longer (-1)."""
        profile = info.pod.scheduler_name
        plugins = info.unschedulable_plugins
        for plugin in plugins | info.pending_plugins if info.pending_plugins else plugins:
            self.rejected_by[plugin, profile] += change


log = logging.getLogger(__name__)


class ActiveQueue:
    """Ready pods in the order of the QueueSort plugin; if there are none, pods in backoff are popped early."""

    def __init__(
        self,
        sort_key: Callable[[QueuedPodInfo], Any],
        backoff: BackoffQueue,
        in_flight: InFlight,
        counters: QueueCounters,
    ) -> None:
        self.heap: KeyedHeap[QueuedPodInfo] = KeyedHeap(sort_key)
        self._early = backoff.early
        self._in_flight = in_flight
        self._counters = counters
        self.scheduling_cycle = 0
        """Number of pops."""

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to schedule, in flight from now on; None when none is ready."""
        while True:
            info = self.heap.pop()
            if info is None:
                info = self._early.pop()
                if info is None:
                    return None
                self._counters.incoming[ACTIVE, POP_FROM_BACKOFF_Q] += 1
            if self._start(info):
                return info

    def pop_specific(self, key: str) -> QueuedPodInfo | None:
        """Pop the pod with this key; None when it is not ready."""
        info = self.heap.delete(key)
        return info if info is not None and self._start(info) else None

    def _start(self, info: QueuedPodInfo) -> bool:
        """Mark the pod as in flight; False if it was in flight already."""
        info.attempts += 1
        if not self._in_flight.start(info):
            log.error(
                "pod %s is being scheduled already; the second entry is dropped", info.pod.key
            )
            return False
        self.scheduling_cycle += 1
        if info.unschedulable_plugins or info.pending_plugins:
            self._counters.count_rejectors(info, -1)
        return True
