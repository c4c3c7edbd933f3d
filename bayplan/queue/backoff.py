"""BackoffQueue: pods that may be retried after their backoff.

Mirrors pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from ..api.pod import Pod
from ..framework.events import (
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
)
from ..releases.feature_gates import DEFAULT_GATES, FeatureGates
from .heap import KeyedHeap
from .queued_pod import NO_BACKOFF, QueuedPodInfo


class QueueSettings(msgspec.Struct, frozen=True):
    """The queue's part of the configuration, feature gates with their release included.

    A maximum backoff of 0 disables backoff.
    """

    pod_initial_backoff_s: float = 1.0
    pod_max_backoff_s: float = 10.0
    pod_max_in_unschedulable_pods_s: float = 300.0
    gates: FeatureGates = DEFAULT_GATES

    @property
    def labels(self) -> tuple[str, str]:
        """The event labels for a new and for a changed pod."""
        if self.gates.release.names_target_pods:
            return str(UNSCHEDULED_POD_ADD), str(UNSCHEDULED_POD_UPDATE)
        return str(UNSCHEDULABLE_POD_ADD), str(UNSCHEDULABLE_POD_UPDATE)


class BackoffQueue:
    """Three heaps: rejected pods, which may be popped early; pods after an error, which may not; and members of pod
    groups, which may be popped early after a change of the cluster.

    A rejected member always enters backoff. kube-scheduler pops it early, too, and so retries a group that does not fit
    for as long as it has nothing else to do. The result is the same until the cluster changes, so `changed` releases
    the members.

    A pod stays here for the rest of its backoff, which grows with each failure. Backoff ends in whole seconds of the
    wall clock, and all pods of one such window are released at its end; within it the order is that of the active
    queue.
    """

    is_exact = False
    """Whether backoff ends at its exact end; see ExactBackoffQueue."""
    by_attempts = False
    """Whether backoff grows with the number of attempts, as in v1.33, not with refusals or errors in a row."""

    def __init__(
        self,
        initial_s: float,
        max_s: float,
        sort_key: Callable[[QueuedPodInfo], Any],
        has_groups: bool = False,
    ) -> None:
        self._initial, self._max = micros(initial_s) * 1000, micros(max_s) * 1000
        self._has_groups = has_groups
        self.rejected: KeyedHeap[QueuedPodInfo] = KeyedHeap(
            lambda info: (info.backoff_expiration, sort_key(info))
        )
        self.members: KeyedHeap[QueuedPodInfo] = KeyedHeap(lambda info: info.backoff_expiration)
        self.errors: KeyedHeap[QueuedPodInfo] = KeyedHeap(lambda info: info.backoff_expiration)
        self.early = self.rejected
        """The pods that may be popped before their backoff is over."""

    def expiration(self, info: QueuedPodInfo, size: int = 1) -> float:
        """The whole second in which the backoff of the pod ends, counted from its timestamp.

        The maximum backoff of a pod group grows with the square root of its `size`.
        """
        count = info.consecutive_errors_count or info.unschedulable_count
        if self.by_attempts:
            count = info.attempts
        if count == 0 or self._max == 0:
            return NO_BACKOFF
        # In nanoseconds, because the shift drops bits.
        shift, longest = count - 1, self._max
        if size > 1:
            longest = int(longest * math.sqrt(size))
        backoff = longest if self._initial > longest >> shift else self._initial << shift
        return self._end(micros(info.timestamp) * 1000 + backoff)

    def _end(self, nanos: int) -> float:
        return float(nanos // (SECOND * 1000))

    def is_backing_off(self, info: QueuedPodInfo, now: float) -> bool:
        """Whether the pod is still backing off, including the whole second in which its backoff ends."""
        return info.backoff_expiration >= window(now)

    def add(self, info: QueuedPodInfo) -> None:
        """Add the pod for the rest of its backoff."""
        into = self.rejected if info.has_rejectors else self.errors
        if info.has_rejectors and self._has_groups and info.pod.spec.scheduling_group is not None:
            into = self.members
        for heap in self._heaps:
            if heap is not into:
                heap.delete(info.pod.key)
        into.put(info.pod.key, info)

    @property
    def _heaps(self) -> tuple[KeyedHeap[QueuedPodInfo], ...]:
        return self.rejected, self.members, self.errors

    def changed(self) -> None:
        """Let members of pod groups be popped early, too, after a change of the cluster."""
        while (info := self.members.pop()) is not None:
            self.rejected.put(info.pod.key, info)

    def replace_pod(self, key: str, pod: Pod) -> QueuedPodInfo | None:
        """Replace the pod by its new version, if present."""
        for heap in self._heaps:
            info = heap.get(key)
            if info is not None:
                info.pod = pod
                heap.put(key, info)
                return info
        return None

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod with this key."""
        return self.rejected.get(key) or self.members.get(key) or self.errors.get(key)

    def delete(self, key: str) -> QueuedPodInfo | None:
        """Remove the pod, if present."""
        return self.rejected.delete(key) or self.members.delete(key) or self.errors.delete(key)

    def pop_completed(self, now: float) -> list[QueuedPodInfo]:
        """Remove and return the pods whose backoff is over, rejected ones first."""
        completed = []
        for heap in self._heaps:
            while (first := heap.peek()) is not None and not self.is_backing_off(first, now):
                heap.pop()
                completed.append(first)
        return completed

    def next_completion(self) -> float | None:
        """The whole second at which the next pod can be released; None when empty."""
        heads = [info for heap in self._heaps if (info := heap.peek()) is not None]
        return min((info.backoff_expiration + 1 for info in heads), default=None)

    def __contains__(self, key: str) -> bool:
        return key in self.rejected or key in self.members or key in self.errors

    def __len__(self) -> int:
        return len(self.rejected) + len(self.members) + len(self.errors)


class ExactBackoffQueue(BackoffQueue):
    """The backoff queue with feature gate SchedulerPopFromBackoffQ off.

    Pods stay to the exact end of their backoff, sorted by it. A flush every second, counted from `started`, releases
    them.
    """

    is_exact = True

    def __init__(
        self,
        initial_s: float,
        max_s: float,
        sort_key: Callable[[QueuedPodInfo], Any],
        started: float,
    ) -> None:
        super().__init__(initial_s, max_s, sort_key)
        self.rejected = KeyedHeap(lambda info: info.backoff_expiration)
        self.early = KeyedHeap(sort_key)  # stays empty
        self._started = started

    def _end(self, nanos: int) -> float:
        return nanos // 1000 / SECOND

    def is_backing_off(self, info: QueuedPodInfo, now: float) -> bool:
        """Whether the backoff of the pod ends at `now` or later."""
        return micros(info.backoff_expiration) >= micros(now)

    def pop_completed(self, now: float) -> list[QueuedPodInfo]:
        """Remove and return the pods whose backoff was over at the last flush."""
        return super().pop_completed(last_tick(self._started, now, BACKOFF_TICK_S))

    def next_completion(self) -> float | None:
        """The first flush after the end of a backoff; None when empty."""
        heads = [info for heap in self._heaps if (info := heap.peek()) is not None]
        ends = [info.backoff_expiration for info in heads]
        ticks = [last_tick(self._started, end, BACKOFF_TICK_S) for end in ends]
        return min((tick + BACKOFF_TICK_S for tick in ticks), default=None)


SECOND = 1_000_000
LEFTOVER_TICK_S = 30
BACKOFF_TICK_S = 1


def micros(seconds: float) -> int:
    """`seconds` in whole microseconds."""
    return round(seconds * SECOND)


def window(seconds: float) -> int:
    """The whole second of a time: pods whose backoff ends in one window are released together."""
    return math.floor(seconds)


def last_tick(start: float, moment: float, period_s: int) -> float:
    """The last tick, not later than `moment`, of a flush that started at `start` and runs every `period_s`."""
    beat = period_s * SECOND
    beats = (micros(moment) - micros(start)) // beat
    return (micros(start) + beats * beat) / SECOND


def make_backoff_queue(
    settings: QueueSettings, sort_key: Callable[[QueuedPodInfo], Any], now: float
) -> BackoffQueue:
    """Build the backoff queue that `settings` ask for."""
    backoff_s = settings.pod_initial_backoff_s, settings.pod_max_backoff_s
    backoff: BackoffQueue
    if settings.gates.enabled("SchedulerPopFromBackoffQ"):
        backoff = BackoffQueue(*backoff_s, sort_key, settings.gates.enabled("GenericWorkload"))
    else:
        backoff = ExactBackoffQueue(*backoff_s, sort_key, now)
    backoff.by_attempts = settings.gates.release.backoff_by_attempts
    return backoff
