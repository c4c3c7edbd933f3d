"""Failure: what happens when a pod was not placed: back to the queue, a condition, an event.

Mirrors handleSchedulingFailure of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging

from ..api.pod import Pod, PodCondition
from ..errors import ApiError
from ..framework import Client, Lister, PodEvent
from ..queue import QueuedPodInfo, SchedulingQueue
from .attempt import Attempt, Outcome

log = logging.getLogger(__name__)

NOTE_LIMIT = 1024


class FailureHandler:
    """Says that a pod was not placed, and sees to it that it is tried again."""

    def __init__(self, queue: SchedulingQueue, lister: Lister, client: Client) -> None:
        self._queue = queue
        self._lister = lister
        self._client = client

    def handle(self, queued: QueuedPodInfo, attempt: Attempt) -> None:
        """Requeue the pod with who refused it, set its nomination, tell people."""
        current = self._lister.get("Pod", attempt.pod.namespace, attempt.pod.name)
        queued.set_rejectors(attempt.unschedulable_plugins, attempt.pending_plugins)
        if current is None or current.node_name:
            self._queue.done(
                queued.pod.uid
            )  # deleted, or placed by another scheduler: nothing to retry
            if current is not None and current.uid != queued.pod.uid:
                current = None  # another pod of the name, which nothing is to be said about
        elif current.uid != queued.pod.uid:
            self._queue.done(queued.pod.uid)
            return
        else:
            queued.pod = current
            self._queue.add_unschedulable_if_not_present(queued)
            self._queue.nominator.add(current, attempt.nominated_node_name)
        self._tell(attempt, current)

    def _tell(self, attempt: Attempt, current: Pod | None) -> None:
        pod = current or attempt.pod
        self._client.record_event(
            PodEvent(
                regarding=pod,
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note=shortened(attempt.message),
                reporting_controller=pod.scheduler_name,
            )
        )
        if current is None:
            return
        rejected = attempt.outcome is Outcome.UNSCHEDULABLE
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            reason="Unschedulable" if rejected else "SchedulerError",
            message=attempt.message,
            observed_generation=pod.generation,
        )
        try:
            self._client.patch_status(current, condition, attempt.nominated_node_name)
        except ApiError as error:  # the pod is back in the queue: the next attempt says it again
            log.warning("pod %s: cannot write its condition: %s", pod.key, error)


def shortened(note: str) -> str:
    """The note, cut to what an event can hold."""
    return note if len(note) <= NOTE_LIMIT else note[: NOTE_LIMIT - 4] + " ..."


def scheduled_event(pod: Pod) -> PodEvent:
    """The event for a pod that was bound."""
    note = f"Successfully assigned {pod.namespace}/{pod.name} to {pod.node_name}"
    return PodEvent(pod, "Normal", "Scheduled", "Binding", note, pod.scheduler_name)


def skip_event(pod: Pod) -> PodEvent:
    """The event for a pod that is being deleted when it is popped."""
    return PodEvent(
        regarding=pod,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=f"skip schedule deleting pod: {pod.key}",
        reporting_controller=pod.scheduler_name,
    )
