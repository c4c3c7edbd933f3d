"""ActiveQueue: the pods that are ready to be scheduled, those being scheduled, and counts of the queue.

Mirrors pkg/scheduler/backend/queue/active_queue.go.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, KeysView
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from ..framework import ClusterEvent
from ..framework.events import POP_FROM_BACKOFF_Q
from .backoff import BackoffQueue
from .heap import KeyedHeap
from .queued_pod import QueuedPodInfo

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"
POD_ENTRY, GROUP_ENTRY = "pod", "podgroup"
"""Types of entries, as metrics name them."""
POPPED = "PodPopped"


class PastEvent(NamedTuple):
    """An event, with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Pods between `pop` and `done`, and the events since the earliest of them was popped, as in active_queue.go.

    Events are numbered; each pod has the number of the first event after its pop. Pods are popped in order, so the
    first remaining pod determines which events are still needed.
    """

    def __init__(self) -> None:
        self._pods: OrderedDict[str, tuple[int, QueuedPodInfo]] = OrderedDict()
        self._events: deque[PastEvent] = deque()
        self._dropped = 0

    def start(self, info: QueuedPodInfo) -> bool:
        """Add a popped pod; False, without effect, when it is there already."""
        entry = (self._dropped + len(self._events), info)
        return self._pods.setdefault(info.pod.uid, entry) is entry

    def done(self, uid: str) -> None:
        """End the attempt; events that only this pod needed are dropped."""
        if self._pods.pop(uid, None) is None or not self._events:
            return
        if not self._pods:
            self._dropped += len(self._events)
            self._events.clear()
            return
        first, _ = next(iter(self._pods.values()))
        while self._dropped < first:
            self._events.popleft()
            self._dropped += 1

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Record the event for the pods in flight; it is dropped if there are none."""
        if self._pods:
            self._events.append(PastEvent(event, old, new))

    def events_since(self, uid: str) -> Iterator[PastEvent]:
        """The events since the pod was popped, in order."""
        first, _ = self._pods[uid]
        return islice(self._events, first - self._dropped, None)

    def infos(self) -> list[QueuedPodInfo]:
        """The pods in flight, in the order they were popped."""
        return [info for _, info in self._pods.values()]

    @property
    def event_count(self) -> int:
        """Number of recorded events."""
        return len(self._events)

    def counts(self) -> dict[str, int]:
        """Number of recorded events per label, and of pods under POPPED."""
        counts = Counter({POPPED: len(self._pods)})
        for event, count in Counter(past.event for past in self._events).items():
            counts[str(event)] += count
        return dict(counts)

    @property
    def uids(self) -> KeysView[str]:
        """The uids of the pods that are being scheduled."""
        return self._pods.keys()

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)


@dataclass(slots=True)
class QueueCounters:
    """Counts since the start (`incoming`) and current counts (`rejected_by`), as plain integers.

    The numbers behind scheduler_queue_incoming_pods_total and scheduler_unschedulable_pods.
    """

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
        counters: QueueCounters,
    ) -> None:
        self.heap: KeyedHeap[QueuedPodInfo] = KeyedHeap(sort_key)
        self._early = backoff.early
        self.in_flight = InFlight()
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
        if not self.in_flight.start(info):
            log.error(
                "pod %s is being scheduled already; the second entry is dropped", info.pod.key
            )
            return False
        self.scheduling_cycle += 1
        if info.unschedulable_plugins or info.pending_plugins:
            self._counters.count_rejectors(info, -1)
        return True
