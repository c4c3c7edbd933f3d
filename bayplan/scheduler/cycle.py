"""Cycle: the path of one pod, from the queue to its node. Read this first.

Mirrors ScheduleOne, schedulingCycle, schedulePod and prepareForBindingCycle of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from time import perf_counter

from ..api.pod import Pod
from ..cache import CacheError
from ..errors import ExtenderError
from ..framework import SUCCESS, CycleState, failure
from ..framework.cycle_state import PODS_TO_ACTIVATE
from ..observe.times import DECIDED, STARTED
from ..queue.queued_pod import QueuedPodInfo
from ..runtime import PluginRunError, ProfileRuntime
from . import steps
from .attempt import Attempt, Outcome
from .binding import Binding, BindingTools
from .deciding import Decider
from .event_handlers import EventHandlers
from .failure import FailureHandler, note_failure, scheduled_event, skip_event
from .group_cycle import GroupCycle
from .parts import Parts

BOUND, BINDING = Outcome.BOUND, Outcome.BINDING
"""They are read for every pod, which takes longer from the class of an enum."""
IN_PROGRESS = (BINDING, Outcome.WAITING)
"""Outcomes of an attempt whose binding cycle has not ended."""


class Scheduler(EventHandlers):
    """Takes events and time (`on_add`, `on_update`, `on_delete`, `run_timers`), and makes one attempt at a time.

    Synchronous and without threads: the same events give the same decisions. Work that may take long (PreBind, Bind) is
    handed to the executor, which calls back with the result. `build.py` puts it together; questions go through
    `Inquiry`.
    """

    binding_tools: BindingTools
    groups: GroupCycle | None = None
    """None if members of pod groups are scheduled one by one: without feature gate GenericWorkload."""

    def __init__(self, parts: Parts, decider: Decider) -> None:
        super().__init__(parts)
        self.extenders = parts.extenders
        self.faults = parts.faults
        self.decider = decider
        self.failure = FailureHandler(parts)
        self._is_logged = False
        self._pause = next(iter(parts.profiles.values())).handle.pause

    def schedule_one(self) -> Attempt | None:
        """Take the next pod from the queue and try to place it; None when no pod is ready, or attempts are paused.

        A member of a pod group is tried with its group: the first attempt is returned, and its `group` has all of them.
        """
        while (queued := self.pop()) is not None:
            attempt = self.schedule_popped(queued)
            if attempt is not None:
                return attempt
        return None

    def pop(self) -> QueuedPodInfo | None:
        """Take the next pod from the queue, for `schedule_popped`; None when none is ready, or attempts are paused."""
        return None if self._pause.count else self.queue.pop()

    def schedule_popped(self, queued: QueuedPodInfo) -> Attempt | None:
        """Try to place a pod that was popped, or its group; None when it needs no node any more."""
        if self.groups is not None and queued.pod.spec.scheduling_group is not None:
            attempts = self.groups.schedule(queued).attempts
            return attempts[0] if attempts else None
        if self.skip(queued.pod):
            self.queue.done(queued.pod.uid)
            return None
        if self.is_observed:
            self.observer("popped", queued.pod, f"attempt {queued.attempts}")
        attempt = self.schedule(queued)
        if attempt.status is not None and not attempt.was_handled:
            if self._pause.count:  # the attempt ends when its victims are deleted
                self._pause.ended = lambda status: self.failure.victims_left(
                    queued, attempt, status
                )
            else:
                self.failure.requeue(queued, attempt)
        return attempt

    def skip(self, pod: Pod) -> bool:
        """Whether the pod needs no node: it is another scheduler's, assumed, or being deleted, which gives an event."""
        if pod.scheduler_name not in self.profiles:
            return True
        if pod.deletion_timestamp is not None:
            steps.log_deleted(pod)
            self.cluster.record_event(skip_event(pod))
            return True
        return self.cache.is_assumed(pod)

    def schedule(self, queued: QueuedPodInfo) -> Attempt:
        """Run the scheduling cycle of one pod and, when it finds a node, start the binding cycle."""
        is_logged = self._is_logged = steps.is_logged()
        if is_logged:
            steps.log_begin(queued)
        profile = self.profiles[queued.pod.scheduler_name]
        state = CycleState()
        times = state.times
        times[STARTED] = perf_counter()
        attempt = Attempt(queued.pod, number=queued.attempts)
        try:
            self.cache.snapshot.update()
            self.decider.find_node(profile, state, attempt)
            times[DECIDED] = perf_counter()
            if attempt.node_name:
                if is_logged:
                    steps.log_choice(profile, self.cache.table, attempt)
                binding = self.assume(profile, state, queued, attempt)
                if binding is not None and self.permit(binding):
                    self.begin(binding)
        except PluginRunError as failed:
            profile.metrics.broke_off(times, perf_counter())
            attempt.fail(failed.status, nominated_node_name="")
        except ExtenderError as error:
            attempt.fail(failure(error), nominated_node_name="")
        if attempt.status is not None and not attempt.was_handled:
            note_failure(profile, state, attempt)
        took_s = perf_counter() - times[STARTED]
        if took_s > steps.SLOW_S:
            steps.log_slow(attempt, times, took_s)
        return attempt

    def assume(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        queued: QueuedPodInfo,
        attempt: Attempt,
    ) -> Binding | None:
        """Assume the pod and run Reserve; None after a refusal, which undoes both."""
        assumed = state.placed(attempt.pod, attempt.node_name)
        try:
            plan = profile.committing.plan(assumed.spec)
            self.cache.assume_pod(assumed)
        except PluginRunError as failed:
            attempt.fail(failed.status, nominated_node_name="")
            return None
        except CacheError as error:
            attempt.fail(failure(error), nominated_node_name="")
            return None
        self.queue.nominator.delete(assumed)
        binding = Binding(self.binding_tools, profile, state, queued, assumed, attempt, plan)
        attempt.outcome = BINDING
        status = binding.run_reserve() if plan.reserves else SUCCESS
        return None if binding.undo_if_refused(status) else binding

    def permit(self, binding: Binding) -> bool:
        """Run Permit and, where it asks for it, hold the pod; False after a refusal, which undoes Reserve, too."""
        if binding.plan.is_idle:
            return True
        status, timeouts_s = binding.run_permit() if binding.plan.permits else (SUCCESS, {})
        if binding.undo_if_refused(status):
            return False
        self._activate(binding.state)
        if timeouts_s:
            assumed = binding.assumed
            binding.attempt.outcome = Outcome.WAITING
            steps.log_wait(assumed, timeouts_s)
            self.observer("waiting", assumed, f"on {assumed.node_name} for {', '.join(timeouts_s)}")
        return binding.prepare(timeouts_s)

    def begin(self, binding: Binding) -> None:
        """Start the binding cycle; unless it ends at once, it continues while other pods are scheduled."""
        if binding.plan.is_idle:
            binding.start_work()
        else:
            binding.begin()
        if binding.attempt.outcome in IN_PROGRESS:
            binding.is_concurrent = True
            self.metrics.bindings.value += 1

    def bound(self, binding: Binding) -> None:
        """Finish the attempt of a pod that was bound: metrics, event, PostBind, log."""
        pod, attempt, profile = binding.assumed, binding.attempt, binding.profile
        queued, since = binding.queued, binding.queued.initial_attempt_timestamp
        if binding.is_concurrent:
            self.metrics.bindings.value -= 1
        binding.plan.idle_points.count += 1
        profile.metrics.scheduled(
            binding.state.times,
            queued.attempts,
            0.0 if since is None else self.clock.timestamp() - since,
            queued.was_flushed_from_unschedulable,
        )
        attempt.outcome = BOUND
        attempt.node_name = pod.node_name
        self.cluster.record_event(scheduled_event(pod))
        if profile.committing.post_binds:
            started = perf_counter()
            profile.committing.run_post_bind(binding.state, pod, pod.node_name)
            profile.metrics.point("PostBind").success.observe(perf_counter() - started)
        self._activate(binding.state)
        if self.is_observed:
            self.observer("bound", pod, f"to {pod.node_name}")
        if self._is_logged:
            steps.log_bound(attempt)
        self.ended(attempt)

    def _activate(self, state: CycleState) -> None:
        """Move the pods that plugins put under PODS_TO_ACTIVATE back to the active queue."""
        pods = state.get(PODS_TO_ACTIVATE)
        if pods:
            self.queue.activate(pods.values())
            pods.clear()
