"""Kubelets: start and end the pods of a simulation by annotations and PodStages.

Without them a pod runs and is ready as soon as it is bound, and does not end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from ...api.pod import Pod, PodCondition, PodStatus
from ...api.pod_stages import StageRule
from ...clock import Clock
from ..objects import pod_life
from ..objects.object_index import Later, WatchHandler
from .object_store import MemoryCluster
from .stages import StagePlayer, StageSink

MAX_RESTARTS = 7
"""Limit for crashing containers, unless the run has an end: the back-off is at its maximum then."""
UNREADY = PodCondition(type="Ready", status="False", reason="ContainersNotReady")
READY = PodCondition(type="Ready", status="True")


class Kubelets(StageSink, WatchHandler):
    """The kubelets of all nodes. Watches the cluster, and writes the statuses of pods with stages.

    Unless `has_end`, the number of restarts of crashing containers is limited.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        timers: Later,
        rules: Sequence[StageRule] = (),
        has_end: bool = False,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        limit = math.inf if has_end else MAX_RESTARTS
        self._player = StagePlayer(self, cluster, timers, rules, limit)
        cluster.first_status = self._first_status

    def on_add(self, obj: Any) -> None:
        """Handle a pod that already has a node: part of its duration may be over."""
        if isinstance(obj, Pod) and obj.node_name and not obj.is_finished:
            stages = self._player.of(obj)
            if stages is not None:
                running = replace(stages, ready_after_s=0.0)
                self._player.expect(obj, running, elapsed_s=self._elapsed_s(obj))

    def on_add_many(self, pods: Sequence[Pod]) -> None:
        """Handle pods that already have nodes: most have no stages."""
        for pod in pods:
            if pod.annotations or self._player.has_rules:
                self.on_add(pod)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a bound pod."""
        if isinstance(new, Pod) and new.node_name and not old.node_name:
            stages = self._player.of(new)
            if stages is not None:
                self._player.start(new, stages)

    def _first_status(self, pod: Pod, running: PodStatus) -> PodStatus:
        """The status of a pod that is being bound."""
        stages = self._player.of(pod)
        waits = stages is not None and (stages.start_delay_s or stages.image_pull_s)
        if stages is None or not (waits or stages.ready_after_s):
            return running
        return _in_phase("Pending" if waits else "Running", running, UNREADY)

    def _elapsed_s(self, pod: Pod) -> float:
        if not pod.status.start_time:
            return 0
        started = datetime.fromisoformat(pod.status.start_time)
        return max((self._clock.now() - started).total_seconds(), 0)

    # Pods on their nodes

    def run(self, pod: Pod, is_ready: bool, restarts: int) -> None:
        """Write that the containers run."""
        now = pod.status.condition("Ready")
        if pod.status.phase != "Running" or is_ready != (now is None or now.status == "True"):
            self._write(pod, _in_phase("Running", pod.status, READY if is_ready else UNREADY))

    def make_ready(self, pod: Pod) -> None:
        """Write that the running pod is ready."""
        self._write(pod, _in_phase("Running", pod.status, READY))

    def crash(self, pod: Pod, exit_code: int, wait_s: float) -> None:
        """Write that the containers have ended; the pod is unready while they wait for their next start."""
        if wait_s:
            self._write(pod, _in_phase("Running", pod.status, UNREADY))

    def end(self, pod: Pod, exit_code: int) -> None:
        """Write that the containers have ended and are not restarted."""
        self._write(pod, pod_life.finished(pod, "Failed" if exit_code else "Succeeded"))

    def remove(self, pod: Pod) -> None:
        """Remove a terminating pod that has ended."""
        self._cluster.delete(pod)

    def _write(self, pod: Pod, status: PodStatus) -> None:
        self._cluster.update(pod.with_status(status))


def _in_phase(phase: str, status: PodStatus, condition: PodCondition) -> PodStatus:
    return pod_life.with_condition(replace(status, phase=phase), condition)
