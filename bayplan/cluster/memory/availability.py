"""Availability: a pod counts as available once it has been ready for `minReadySeconds` of its workload.

Mirrors IsPodAvailable of pkg/api/v1/pod/util.go. A pod is taken to be ready since its start.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from ...api.pod import Pod
from ...api.workloads import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from ...clock import Clock
from ..objects.object_index import Later
from .pod_index import OwnerKey

IsReady: TypeAlias = Callable[[Pod], bool]
Waiting: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet
"""The workloads with `minReadySeconds`."""


class Availability:
    """The available pods; calls `recheck` with a workload when one of its pods becomes available.

    Without a clock and timers a ready pod is available at once.
    """

    def __init__(
        self,
        is_ready: IsReady,
        recheck: Callable[[OwnerKey], None],
        time: tuple[Clock, Later] | None,
    ) -> None:
        self._is_ready = is_ready
        self._recheck = recheck
        self._time = time
        self._expected: set[tuple[OwnerKey, str]] = set()
        """The workloads and uids of pods for which a timer is set."""

    def of(self, workload: Waiting) -> IsReady:
        """Whether a pod of the workload is available."""
        seconds = workload.spec.min_ready_seconds
        if seconds <= 0 or self._time is None:
            return self._is_ready
        clock, timers = self._time
        key = workload.kind, workload.namespace, workload.name

        def is_available(pod: Pod) -> bool:
            if not self._is_ready(pod):
                return False
            started = pod.status.start_time
            if not started:
                return True
            missing_s = seconds - (clock.now() - datetime.fromisoformat(started)).total_seconds()
            if missing_s > 0:
                self._expect(timers, key, pod.uid, missing_s)
            return missing_s <= 0

        return is_available

    def _expect(self, timers: Later, key: OwnerKey, uid: str, missing_s: float) -> None:
        if (key, uid) in self._expected:
            return
        self._expected.add((key, uid))

        def fire() -> None:
            self._expected.discard((key, uid))
            self._recheck(key)

        timers.after(missing_s, fire)
