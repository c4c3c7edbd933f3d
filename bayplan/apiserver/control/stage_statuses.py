"""Stage statuses: the statuses and events of pods whose stages are played."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from ...api.pod import Pod
from ...api.pod_stages import PREFIX, PodStages
from ...cluster.memory.stages import StagePlayer
from ..registry.object_registry import ObjectRegistry
from . import kubelet_statuses
from .kubelet_events import KubeletEvents

Tree = dict[str, Any]


class StatusSink(Protocol):
    """Writes the results of pods."""

    def write(self, pod: Pod, edit: Callable[[Tree, str], Tree]) -> Tree | None:
        """Write the status of a pod."""

    def remove(self, pod: Pod) -> None:
        """Remove a terminating pod."""


class StageStatuses:
    """Writes the stages of pods as statuses, through `sink`, and as events."""

    def __init__(self, sink: StatusSink, events: KubeletEvents) -> None:
        self._sink = sink
        self._events = events

    def create_containers(self, pod: Pod) -> None:
        """The containers are being created."""
        self._sink.write(pod, kubelet_statuses.creating)

    def fail_to_pull(self, pod: Pod, image: str) -> None:
        """An attempt to pull an image has failed."""
        note = f"{PREFIX}image-pull-error"
        failed = {"reason": "ErrImagePull", "message": f'failed to pull image "{image}": {note}'}
        self._sink.write(pod, lambda tree, now: kubelet_statuses.waiting(tree, failed, now))
        self._events.not_pulled(pod, image, note)

    def wait_to_pull(self, pod: Pod, image: str) -> None:
        """The next attempt to pull an image waits."""
        waits = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
        self._sink.write(pod, lambda tree, now: kubelet_statuses.waiting(tree, waits, now))
        self._events.waits_to_pull(pod, image)

    def run(self, pod: Pod, is_ready: bool, restarts: int) -> None:
        """The containers run, for the first time or after so many restarts."""
        edit = kubelet_statuses.restarted if restarts else kubelet_statuses.running
        self._sink.write(pod, lambda tree, now: edit(tree, now, is_ready))
        self._events.starting(pod)
        if not is_ready:
            self._events.unhealthy(pod, f"{PREFIX}ready-after")

    def make_ready(self, pod: Pod) -> None:
        """The running pod is ready."""
        self._sink.write(pod, kubelet_statuses.ready)

    def crash(self, pod: Pod, exit_code: int, wait_s: float) -> None:
        """The containers have ended and are started again in `wait_s`."""
        self._sink.write(pod, lambda tree, now: kubelet_statuses.crashed(tree, exit_code, now))
        if wait_s:
            self._events.waits_to_restart(pod)

    def end(self, pod: Pod, exit_code: int) -> None:
        """The containers have ended for good."""
        self._sink.write(pod, lambda tree, now: kubelet_statuses.ended(tree, exit_code, now))

    def remove(self, pod: Pod) -> None:
        """A terminating pod has ended."""
        self._sink.remove(pod)

    def refuse(self, pod: Pod, annotation: str, fault: str) -> None:
        """An annotation of the pod is wrong and is ignored."""
        text = f"metadata.annotations[{annotation}]: {fault}"
        self._events.warn(pod, "InvalidAnnotation", text)


def resume(player: StagePlayer, registry: ObjectRegistry, pod: Pod, stages: PodStages) -> None:
    """Go on with a pod that ran before the server was started again."""
    record = registry.store.get("pods", (pod.namespace, pod.name))
    if record is None:
        return
    tree = record.decode()
    started, stopped = kubelet_statuses.times(tree)
    since = partial(_since_s, registry)
    if started:
        player.expect(pod, stages, kubelet_statuses.restarts(tree), since(started))
    elif stopped:
        player.expect_restart(pod, stages, kubelet_statuses.restarts(tree), since(stopped))


def _since_s(registry: ObjectRegistry, text: str) -> float:
    passed = registry.clock.now() - datetime.fromisoformat(text)
    return max(passed.total_seconds(), 0)
