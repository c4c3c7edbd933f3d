"""Cycle: the path of one pod, from the queue to its node. Read this first.

Mirrors ScheduleOne, schedulingCycle, schedulePod and prepareForBindingCycle of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter

from ..amounts.kernel import Fillings
from ..api.pod import Pod
from ..cache import CacheError
from ..engine import Decision
from ..errors import ApiError, ExtenderError
from ..framework import (
    PODS_TO_ACTIVATE,
    SUCCESS,
    Code,
    CycleState,
    Status,
    failure,
    no_node_available,
)
from ..framework.events import ASSIGNED_POD_DELETE
from ..framework.faults import FAULT, PluginFaultError
from ..observe import ERROR, UNSCHEDULABLE
from ..observe.times import DECIDED, ENDED, STARTED
from ..queue import QueuedPodInfo
from ..runtime import PluginRunError, ProfileRuntime
from ..table import Ints
from . import steps
from .attempt import Attempt, Explanation, Outcome
from .attempt_account import explain_refusal
from .binding import Binding, BindingTools
from .deciding import Decider
from .event_handlers import EventHandlers
from .failure import FailureHandler, scheduled_event, skip_event
from .group_algorithm import GroupTools
from .group_attempt import GroupAttempt
from .group_condition import GroupConditions
from .group_cycle import GroupCycle
from .parts import Parts
from .placement_search import PlacementSearch

log = logging.getLogger(__name__)

GOES_ON = (Outcome.BINDING, Outcome.WAITING)


class Scheduler(EventHandlers):
    """Events and time go in (`on_add`, `on_update`, `on_delete`, `run_timers`), one attempt at a time comes out.

    Synchronous and without threads: the same events give the same decisions. What may take long (PreBind, Bind) is
    handed to the executor, and comes back as a call.
    """

    def __init__(self, parts: Parts, explain: bool = False) -> None:
        super().__init__(parts)
        self._explain = explain
        self._is_logged = False
        self._extenders = parts.extenders
        self.faults = parts.faults
        self._decider = Decider(parts, explain)
        for name, profile in parts.profiles.items():
            profile.handle.forget_answers = partial(self.forget_answers, name)
        self._failure = FailureHandler(parts.queue, parts.cluster, parts.cluster)
        announces = parts.feature_gates.enabled("NominatedNodeNameForExpectation")
        self._binding = BindingTools(
            cache=parts.cache,
            timers=parts.timers,
            executor=parts.executor,
            waiting_pods=parts.waiting_pods,
            pre_binding=parts.pre_binding,
            expect_node=self._announce if announces else None,
            leave_queue=parts.queue.done,
            bound=self._bound,
            failed=self._binding_failed,
            clock=parts.clock,
            metrics=parts.metrics,
            run_blocking=parts.run_blocking,
            extenders=parts.extenders,
        )
        self._pause = next(iter(parts.profiles.values())).handle.pause
        self._groups: GroupCycle | None = None
        if parts.has_groups:
            parts.metrics.add_pod_groups()
            self._groups = GroupCycle(self._group_tools(parts))

    @property
    def has_extenders(self) -> bool:
        """Whether the configuration has extenders."""
        return self._extenders is not None

    # The path of a pod

    def schedule_one(self) -> Attempt | None:
        """Take the next pod from the queue and try to place it; None when no pod is ready, or attempts are paused.

        A member of a pod group is tried with its group: of the attempts, which are in `group`, the first is returned.
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
        if self._groups is not None and queued.pod.spec.scheduling_group is not None:
            attempts = self._groups.schedule(queued).attempts
            return attempts[0] if attempts else None
        if self._is_pointless(queued.pod):
            self.queue.done(queued.pod.uid)
            return None
        if self.is_observed:
            self.observer("popped", queued.pod, f"attempt {queued.attempts}")
        attempt = self.schedule(queued)
        if attempt.status is not None and not attempt.was_handled:
            if self._pause.count:
                self._pause.ended = lambda status: self._end(queued, attempt, status)
            else:
                self._failed(queued, attempt)
        return attempt

    def schedule(self, queued: QueuedPodInfo) -> Attempt:
        """The scheduling cycle of one pod and, when it finds a node, the begin of its binding cycle."""
        is_logged = self._is_logged = steps.is_logged()
        if is_logged:
            steps.log_begin(queued)
        profile = self.profiles[queued.pod.scheduler_name]
        state = CycleState()
        times = state.times
        times[STARTED] = perf_counter()
        attempt = Attempt(queued.pod, Outcome.ERROR, number=queued.attempts)
        try:
            self.cache.snapshot.update()
            self._decider.find_node(profile, state, attempt)
            times[DECIDED] = perf_counter()
            if attempt.node_name:
                if is_logged:
                    steps.log_choice(profile, self.cache.table, attempt)
                binding = self._assume(profile, state, queued, attempt)
                if binding is not None and self._permit(binding):
                    self._begin(binding)
        except PluginRunError as failed:
            profile.metrics.broke_off(times, perf_counter())
            attempt.fail(failed.status, nominated_node_name="")
        except ExtenderError as error:
            attempt.fail(failure(error), nominated_node_name="")
        if attempt.status is not None and not attempt.was_handled:
            self._note_failure(profile, state, attempt)
        took_s = perf_counter() - times[STARTED]
        if took_s > steps.SLOW_S:
            steps.log_slow(attempt, times, took_s)
        return attempt

    def judge(self, pod: Pod) -> Attempt:
        """Where `pod` would go as things stand, up to the choice of a node: nothing is assumed or reserved.

        When no node fits, PostFilter makes room through the cluster. Questions go through `Inquiry.decide`.
        """
        profile, state = self.profiles[pod.scheduler_name], CycleState()
        state.times[STARTED] = perf_counter()
        attempt = Attempt(pod, Outcome.BOUND)
        try:
            self.cache.snapshot.update()
            self._decider.find_node(profile, state, attempt)
        except PluginRunError as failed:
            self.faults.note(failed.status.error)
            attempt.fail(failed.status)
        except ExtenderError as error:
            attempt.fail(failure(error))
        if attempt.is_failed and attempt.explanation is not None:
            self._explain_wait(attempt, attempt.explanation, attempt.unschedulable_plugins)
        return attempt

    def decision_on(self, profile: ProfileRuntime, pod: Pod) -> Decision | None:
        """The engine's decision on `pod` as things stand; None: plugins have to be called. Goes through `Inquiry`."""
        return self._decider.by_engine(profile, pod)

    def copies_of(self, profile: ProfileRuntime, pod: Pod) -> Ints | None:
        """How many pods like `pod` fit on each row beside each other. Goes through `Inquiry.copies`."""
        return self._decider.copies(profile, pod)

    def fillings_of(self, profile: ProfileRuntime, pods: Sequence[Pod]) -> Fillings | None:
        """How the kernel puts `pods` on rows one after another. Goes through `fill_in_order`."""
        return self._decider.fillings(profile, pods)

    def set_score_weights(self, weights: Mapping[str, int], profile_name: str) -> None:
        """Give Score plugins of a profile other weights; the plugins that are not named keep theirs."""
        profile = self.profiles[profile_name]
        profile.scoring = profile.scoring.with_weights(weights)
        self.forget_answers(profile_name)

    def forget_answers(self, profile_name: str) -> None:
        """Drop what is cached of a profile's plugins, because a weight or a parameter of one of them has changed."""
        self._decider.forget(self.profiles[profile_name])

    @property
    def has_groups(self) -> bool:
        """Whether pod groups are scheduled as a whole: feature gate GenericWorkload."""
        return self._groups is not None

    def judge_group(self, pods: Sequence[Pod], makes_room: bool, tells_all: bool) -> GroupAttempt:
        """Where the waiting members `pods` of a pod group would go; questions go through `GroupInquiry`."""
        assert self._groups is not None, "asked only with pod groups"
        with self._decider.briefly():
            return self._groups.judge(pods, makes_room, tells_all)

    def _assume(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        queued: QueuedPodInfo,
        attempt: Attempt,
    ) -> Binding | None:
        """Assume and Reserve; a "no" undoes both, and gives None."""
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
        binding = Binding(self._binding, profile, state, queued, assumed, attempt, plan)
        attempt.outcome = Outcome.BINDING
        status = self._run_reserve(binding) if plan.reserves else SUCCESS
        return binding if self._is_accepted(binding, status) else None

    def _permit(self, binding: Binding) -> bool:
        """Permit, and what holds the pod back until its binding can begin; a "no" undoes Reserve, too."""
        if binding.plan.is_idle:
            return True
        status, timeouts_s = self._run_permit(binding) if binding.plan.permits else (SUCCESS, {})
        if not self._is_accepted(binding, status):
            return False
        self._activate(binding.state)
        if timeouts_s:
            assumed = binding.assumed
            binding.attempt.outcome = Outcome.WAITING
            steps.log_wait(assumed, timeouts_s)
            self.observer("waiting", assumed, f"on {assumed.node_name} for {', '.join(timeouts_s)}")
        return binding.prepare(timeouts_s)

    def _is_accepted(self, binding: Binding, status: Status) -> bool:
        """Whether Reserve or Permit let the pod pass, for now; else its steps are undone in reverse."""
        if status.is_success or status.code is Code.Wait:
            return True
        binding.undo()
        self._reject(binding.attempt, status)
        return False

    def _begin(self, binding: Binding) -> None:
        """The binding cycle begins; if it does not end at once, it goes on beside the scheduling of other pods."""
        if binding.plan.is_idle:
            binding.go_on()
        else:
            binding.begin()
        if binding.attempt.outcome in GOES_ON:
            binding.is_beside = True
            self.metrics.bindings.value += 1

    def _group_tools(self, parts: Parts) -> GroupTools:
        gates = parts.feature_gates
        return GroupTools(
            cache=parts.cache,
            queue=parts.queue,
            profiles=parts.profiles,
            cluster=parts.cluster,
            decider=self._decider,
            reserve_and_permit=self._try_to_commit,
            assume=self._assume,
            permit=self._permit,
            begin=self._begin,
            fail=self._fail_member,
            is_pointless=self._is_pointless,
            observer=parts.observer,
            executor=parts.plugin_executor,
            metrics=parts.metrics,
            conditions=GroupConditions(parts.cluster, parts.executor, parts.clock),
            ties=parts.ties,
            search=PlacementSearch(parts.cache, self._decider, parts.ties),
            has_placements=gates.enabled("TopologyAwareWorkloadScheduling"),
            preempts=gates.enabled("WorkloadAwarePreemption"),
        )

    def _try_to_commit(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        queued: QueuedPodInfo,
        attempt: Attempt,
        assumed: Pod,
    ) -> Status:
        """Reserve and Permit for a member on trial; a "no" is undone and noted."""
        try:
            plan = profile.committing.plan(assumed.spec)
        except PluginRunError as failed:
            attempt.fail(failed.status, nominated_node_name="")
            return failed.status
        if plan.is_idle:
            return SUCCESS
        binding = Binding(self._binding, profile, state, queued, assumed, attempt, plan)
        status = self._run_reserve(binding) if plan.reserves else SUCCESS
        if status.is_success and plan.permits:
            status, _ = self._run_permit(binding)
        self._is_accepted(binding, status)
        return status

    def _fail_member(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        queued: QueuedPodInfo,
        attempt: Attempt,
    ) -> None:
        self._note_failure(profile, state, attempt)
        self._failed(queued, attempt)

    def _run_reserve(self, binding: Binding) -> Status:
        profile, assumed, started = binding.profile, binding.assumed, perf_counter()
        try:
            status = profile.committing.run_reserve(
                binding.state, assumed, assumed.node_name, binding.plan
            )
        except PluginRunError as failed:
            status = failed.status
        profile.note_point("Reserve", status, perf_counter() - started)
        return status

    def _run_permit(self, binding: Binding) -> tuple[Status, dict[str, float]]:
        profile, assumed, started = binding.profile, binding.assumed, perf_counter()
        timeouts_s: dict[str, float] = {}
        try:
            status, timeouts_s = profile.committing.run_permit(
                binding.state, assumed, assumed.node_name, binding.plan
            )
        except PluginRunError as failed:
            status = failed.status
        profile.note_point("Permit", status, perf_counter() - started)
        return status, timeouts_s

    def _announce(self, pod: Pod, node_name: str) -> None:
        """Say in the pod's status where it will go; that this fails is no reason not to go there."""
        try:
            self.cluster.patch_status(pod, None, node_name)
        except ApiError as error:
            log.warning("pod %s: cannot announce node %s: %s", pod.key, node_name, error)

    # What comes of it

    def _bound(self, binding: Binding) -> None:
        """The pod is on its node."""
        pod, attempt, profile = binding.assumed, binding.attempt, binding.profile
        queued, since = binding.queued, binding.queued.initial_attempt_timestamp
        if binding.is_beside:
            self.metrics.bindings.value -= 1
        binding.plan.idle_points.count += 1
        profile.metrics.scheduled(
            binding.state.times,
            queued.attempts,
            0.0 if since is None else self.clock.timestamp() - since,
            queued.was_flushed_from_unschedulable,
        )
        attempt.outcome = Outcome.BOUND
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

    def _binding_failed(self, binding: Binding, status: Status) -> None:
        """The binding cycle ended without a binding, and was undone: others may use what it held."""
        attempt, assumed = binding.attempt, binding.assumed
        attempt.was_handled = True
        if binding.is_beside:
            self.metrics.bindings.value -= 1
        if status.is_rejected and not binding.is_permitted:
            self._reject(attempt, status)
        else:
            attempt.fail(status, nominated_node_name="")
        self._note_failure(binding.profile, binding.state, attempt)
        has_left = not self.cache.has_pod(assumed)  # or another placed it meanwhile
        if has_left and not status.is_rejected:
            self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, assumed, None)
        self._failed(binding.queued, attempt)
        if has_left and status.is_rejected:
            # After the pod itself is back, and not for it: what it held was never the reason.
            self.queue.move_all_to_active_or_backoff(
                ASSIGNED_POD_DELETE, assumed, None, lambda pod: pod.uid != assumed.uid
            )

    def _reject(self, attempt: Attempt, status: Status) -> None:
        """Reserve or Permit said no: for a rejection kube-scheduler writes about the one node that was left."""
        if status.is_rejected:
            attempt.unschedulable_plugins = frozenset({status.plugin})
            if status.code is Code.Pending:
                attempt.pending_plugins = attempt.unschedulable_plugins
            counted = dict.fromkeys(status.reasons, 1)
            status = Status(status.code, (no_node_available(1, counted),), status.plugin)
        attempt.fail(status, nominated_node_name="")

    def _end(self, queued: QueuedPodInfo, attempt: Attempt, status: Status) -> None:
        """End an attempt that waited for the deletion of its victims; if that failed, the pod is not nominated."""
        if not status.is_success:
            message = f"{attempt.fit_error} preemption: {status.message}"
            attempt.fail(Status(Code.Unschedulable, (message,)))
        self._failed(queued, attempt)

    def _failed(self, queued: QueuedPodInfo, attempt: Attempt) -> None:
        if attempt.status is not None and isinstance(attempt.status.error, PluginFaultError):
            self.faults.note(attempt.status.error)
            # The same code would fail again: the pod waits instead of being retried after its backoff.
            attempt.unschedulable_plugins = frozenset({FAULT})
        if self.is_observed:
            what = "refused" if attempt.outcome is Outcome.UNSCHEDULABLE else "failed"
            self.observer(what, attempt.pod, attempt.message)
        if steps.is_logged():
            steps.log_failure(attempt)
        if attempt.explanation is not None:
            self._explain_wait(attempt, attempt.explanation, attempt.unschedulable_plugins)
        self._failure.handle(queued, attempt)
        self.ended(attempt)

    def _note_failure(self, profile: ProfileRuntime, state: CycleState, attempt: Attempt) -> None:
        """An attempt ended without a binding, and how long it took."""
        times = state.times
        times[ENDED] = perf_counter()
        if math.isnan(times[DECIDED]):
            times[DECIDED] = times[ENDED]  # a step before the decision failed
        is_refused = attempt.outcome is Outcome.UNSCHEDULABLE
        profile.metrics.failed(times, UNSCHEDULABLE if is_refused else ERROR)

    def _is_pointless(self, pod: Pod) -> bool:
        """Whether the pod needs no node any more, or has one."""
        if pod.scheduler_name not in self.profiles:
            return True
        if pod.deletion_timestamp is not None:
            steps.log_deleted(pod)
            self.cluster.record_event(skip_event(pod))
            return True
        return self.cache.is_assumed(pod)

    def _activate(self, state: CycleState) -> None:
        """Bring the pods back that plugins asked for."""
        pods = state.get(PODS_TO_ACTIVATE)
        if pods:
            self.queue.activate(pods.values())
            pods.clear()

    # Pods that are held back

    def gated(self) -> list[Attempt]:
        """The pods that a PreEnqueue plugin holds back, and why."""
        attempts = []
        for info in self.queue.gated():
            status = info.gated_by
            assert status is not None, "a pod is gated by what a plugin said"
            attempt = Attempt(info.pod, Outcome.GATED, status=status, number=info.attempts)
            attempt.message = status.message
            if self._explain:
                attempt.explanation = Explanation(SUCCESS, None, [], {})
                self._explain_wait(attempt, attempt.explanation, {status.plugin})
            attempts.append(attempt)
        return attempts

    def _explain_wait(
        self, attempt: Attempt, explanation: Explanation, plugins: Iterable[str]
    ) -> None:
        """Say which events may bring the pod back that `plugins` refused or hold back."""
        explain_refusal(explanation, self.profiles[attempt.pod.scheduler_name], plugins)
