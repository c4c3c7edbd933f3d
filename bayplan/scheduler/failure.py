"""Failure: the end of an attempt without a node: back to the queue, a condition, an event.

Mirrors handleSchedulingFailure of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging
import math
from time import perf_counter

from ..api.pod import Pod, PodCondition
from ..errors import ApiError
from ..framework import Code, CycleState, Status
from ..framework.events import ASSIGNED_POD_DELETE
from ..framework.faults import FAULT, PluginFaultError
from ..framework.handle import Client, PodEvent
from ..framework.lister import Lister
from ..observe.profile_metrics import ERROR, UNSCHEDULABLE
from ..observe.times import DECIDED, ENDED
from ..queue.queued_pod import QueuedPodInfo
from ..runtime import ProfileRuntime
from . import steps
from .attempt import Attempt, Outcome
from .attempt_account import explain_refusal
from .binding import Binding
from .parts import Parts

log = logging.getLogger(__name__)

NOTE_LIMIT = 1024


class FailureHandler:
    """Reports that a pod was not placed, and queues it again."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._queue = parts.queue
        self._lister: Lister = parts.cluster
        self._client: Client = parts.cluster

    def requeue(self, queued: QueuedPodInfo, attempt: Attempt) -> None:
        """End a failed attempt."""
        if attempt.status is not None and isinstance(attempt.status.error, PluginFaultError):
            self._parts.faults.note(attempt.status.error)
            # The same code would fail again: the pod waits instead of being retried after its backoff.
            attempt.unschedulable_plugins = frozenset({FAULT})
        if self._parts.is_observed:
            what = "refused" if attempt.outcome is Outcome.UNSCHEDULABLE else "failed"
            self._parts.settings.observer(what, attempt.pod, attempt.message)
        if steps.is_logged():
            steps.log_failure(attempt)
        if attempt.explanation is not None:
            profile = self._parts.profiles[attempt.pod.scheduler_name]
            explain_refusal(attempt.explanation, profile, attempt.unschedulable_plugins)
        self._handle(queued, attempt)
        self._parts.settings.ended(attempt)

    def victims_left(self, queued: QueuedPodInfo, attempt: Attempt, status: Status) -> None:
        """End an attempt that waited for the deletion of its victims; if that failed, the pod is not nominated."""
        if not status.is_success:
            message = f"{attempt.fit_error} preemption: {status.message}"
            attempt.fail(Status(Code.Unschedulable, (message,)))
        self.requeue(queued, attempt)

    def binding_failed(self, binding: Binding, status: Status) -> None:
        """Requeue the pod of a binding cycle that failed and was undone, and retry pods that may use its node."""
        attempt, assumed = binding.attempt, binding.assumed
        attempt.was_handled = True
        if binding.is_concurrent:
            self._parts.metrics.bindings.value -= 1
        if status.is_rejected and not binding.is_permitted:
            attempt.reject(status)
        else:
            attempt.fail(status, nominated_node_name="")
        note_failure(binding.profile, binding.state, attempt)
        has_left = not self._parts.cache.has_pod(
            assumed
        )  # or another scheduler placed it meanwhile
        if has_left and not status.is_rejected:
            self._queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, assumed, None)
        self.requeue(binding.queued, attempt)
        if has_left and status.is_rejected:
            # After the pod is requeued, so that it is not retried itself: its own reservation was not in its way.
            self._queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, assumed, None, lambda pod: pod.uid != assumed.uid
            )

    def _handle(self, queued: QueuedPodInfo, attempt: Attempt) -> None:
        """Requeue the pod with the plugins that refused it, set its nomination, write condition and event."""
        current = self._lister.get("Pod", attempt.pod.namespace, attempt.pod.name)
        queued.set_rejectors(attempt.unschedulable_plugins, attempt.pending_plugins)
        if current is None or current.node_name:
            self._queue.done(
                queued.pod.uid
            )  # deleted, or placed by another scheduler: nothing to retry
            if current is not None and current.uid != queued.pod.uid:
                current = None  # another pod of that name: write nothing about it
        elif current.uid != queued.pod.uid:
            self._queue.done(queued.pod.uid)
            return
        else:
            queued.pod = current
            self._queue.add_unschedulable_if_not_present(queued)
            self._queue.nominator.add(current, attempt.nominated_node_name)
        self._report(attempt, current)

    def _report(self, attempt: Attempt, current: Pod | None) -> None:
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
        except ApiError as error:  # the pod is back in the queue: the next attempt writes it again
            log.warning("pod %s: cannot write its condition: %s", pod.key, error)


def note_failure(profile: ProfileRuntime, state: CycleState, attempt: Attempt) -> None:
    """Count an attempt that ended without a binding, and how long it took."""
    times = state.times
    times[ENDED] = perf_counter()
    if math.isnan(times[DECIDED]):
        times[DECIDED] = times[ENDED]  # a step before the decision failed
    is_refused = attempt.outcome is Outcome.UNSCHEDULABLE
    profile.metrics.failed(times, UNSCHEDULABLE if is_refused else ERROR)


def shortened(note: str) -> str:
    """The note, cut to the length that an event can hold."""
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
