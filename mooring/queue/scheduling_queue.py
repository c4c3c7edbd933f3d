"""SchedulingQueue: the pods that wait: ready (active), refused (unschedulable), held back (gated).

Mirrors pkg/scheduler/backend/queue/scheduling_queue.go, without backoff, timers and queueing hints.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..api.pod import Pod
from ..clock import Clock
from ..framework import Status
from .nominator import PodNominator


@dataclass(slots=True)
class QueuedPodInfo:
    """A waiting pod. `timestamp` is when it last entered the queue after an attempt."""

    pod: Pod
    timestamp: float
    attempts: int = 0
    unschedulable_plugins: set[str] = field(default_factory=set)
    gated_by: Status | None = None


class SchedulingQueue:
    """Hands out the pods in the order of the QueueSort plugin."""

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[QueuedPodInfo], Any],
        pre_enqueue: Callable[[Pod], Status],
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self._pre_enqueue = pre_enqueue
        self._active: list[tuple[Any, int, QueuedPodInfo]] = []
        self._waiting: dict[str, QueuedPodInfo] = {}  # everything that is in the queue, by uid
        self._unschedulable: dict[str, QueuedPodInfo] = {}
        self._arrivals = 0
        self.nominator = PodNominator()

    def add(self, pod: Pod) -> None:
        """A new pod to schedule."""
        info = QueuedPodInfo(pod, self._clock.monotonic())
        self._waiting[pod.uid] = info
        self.nominator.add(pod)
        self._enqueue(info)

    def update(self, old: Pod, new: Pod) -> None:
        """A waiting pod changed; a refused or gated one is tried again."""
        info = self._waiting.get(new.uid)
        if info is None:
            self.add(new)
            return
        info.pod = new
        self.nominator.update(old, new)
        if self._unschedulable.pop(new.uid, None) is not None:
            self._enqueue(info)

    def delete(self, pod: Pod) -> None:
        """The pod is gone, or found its node."""
        self._waiting.pop(pod.uid, None)
        self._unschedulable.pop(pod.uid, None)
        self.nominator.delete(pod)

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to schedule; None when none is ready."""
        while self._active:
            _, _, info = heapq.heappop(self._active)
            # Pods deleted meanwhile are still in the heap.
            if self._waiting.get(info.pod.uid) is info:
                del self._waiting[info.pod.uid]
                info.attempts += 1
                return info
        return None

    def add_unschedulable(self, info: QueuedPodInfo) -> None:
        """A popped pod was refused: it waits until something changes."""
        info.timestamp = self._clock.monotonic()
        self._waiting[info.pod.uid] = info
        self._unschedulable[info.pod.uid] = info

    def retry_unschedulable(self) -> int:
        """Move every refused pod back to the active queue; gated ones are asked again."""
        moved = list(self._unschedulable.values())
        self._unschedulable.clear()
        for info in moved:
            self._enqueue(info)
        return sum(info.gated_by is None for info in moved)

    def gated(self) -> list[QueuedPodInfo]:
        """The pods that a PreEnqueue plugin holds back."""
        return [info for info in self._unschedulable.values() if info.gated_by is not None]

    def __len__(self) -> int:
        return len(self._waiting)

    def _enqueue(self, info: QueuedPodInfo) -> None:
        status = self._pre_enqueue(info.pod)
        if not status.is_success:
            info.gated_by = status
            info.unschedulable_plugins.add(status.plugin)
            self._unschedulable[info.pod.uid] = info
            return
        info.gated_by = None
        self._arrivals += 1
        heapq.heappush(self._active, (self._sort_key(info), self._arrivals, info))
