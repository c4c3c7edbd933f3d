"""InFlight: the pods being scheduled, and the events since.

Mirrors the in-flight pods and events of pkg/scheduler/backend/queue/active_queue.go.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, KeysView
from itertools import islice
from typing import Any, NamedTuple

from ..framework import ClusterEvent
from .queued_pod import QueuedPodInfo

POPPED = "PodPopped"


class PastEvent(NamedTuple):
    """An event, with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Pods between `pop` and `done`, and the events since the earliest of them was popped.

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
