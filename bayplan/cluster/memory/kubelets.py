"""Kubelets: end pods after their duration.

Real pods have no such field; in a simulation the annotation `bayplan.dev/duration` sets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...api.durations import EXPECTED, parse_duration
from ...api.pod import Pod
from ...api.pod_stages import DURATION
from ...clock import Clock
from ..objects import ControllerCluster, Later, pod_life


def duration_problem(annotations: Mapping[str, str]) -> str | None:
    """The fault of the duration annotation; None when it is valid or absent."""
    text = annotations.get(DURATION)
    if text is None or (parse_duration(text) or 0) > 0:
        return None
    return f'{EXPECTED}; got "{text}"'


class Kubelets:
    """Ends the pods of all nodes after their duration. Watches the cluster."""

    def __init__(self, cluster: ControllerCluster, clock: Clock, timers: Later) -> None:
        self._cluster = cluster
        self._clock = clock
        self._timers = timers

    def on_add(self, obj: Any) -> None:
        """Handle a pod that already has a node: part of its duration may be over."""
        if isinstance(obj, Pod) and obj.node_name and DURATION in obj.annotations:
            self._begin(obj, self._elapsed_s(obj))

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a bound pod."""
        if (
            isinstance(new, Pod)
            and new.node_name
            and not old.node_name
            and DURATION in new.annotations
        ):
            self._begin(new, 0)

    def on_delete(self, obj: Any) -> None:
        """Nothing to do: a timer checks whether its pod still exists."""

    def _begin(self, pod: Pod, elapsed_s: float) -> None:
        duration_s = parse_duration(pod.annotations[DURATION])
        if duration_s is not None and not pod.is_finished:
            self._timers.after(max(duration_s - elapsed_s, 0), lambda: self._finish(pod))

    def _finish(self, pod: Pod) -> None:
        stored = self._cluster.get("Pod", pod.namespace, pod.name)
        if stored is None or stored.uid != pod.uid or stored.is_finished:
            return
        if stored.is_terminating:
            self._cluster.delete(stored)  # its duration ended before its grace period
        else:
            self._cluster.update(stored.with_status(pod_life.finished(stored)))

    def _elapsed_s(self, pod: Pod) -> float:
        if not pod.status.start_time:
            return 0
        started = datetime.fromisoformat(pod.status.start_time)
        return max((self._clock.now() - started).total_seconds(), 0)
