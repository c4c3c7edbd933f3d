"""Cycle: the path of one pod, from the queue to its node. Read this first.

Mirrors ScheduleOne, schedulingCycle, schedulePod and prepareForBindingCycle of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from time import perf_counter

import numpy as np

from ..api.pod import Pod
from ..cache import CacheError
from ..engine import Decision, Engine
from ..errors import ApiError, ExtenderError
from ..framework import (
    PODS_TO_ACTIVATE,
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    PostFilterResult,
    Status,
    failure,
    no_node_available,
    unresolvable,
)
from ..framework.events import ASSIGNED_POD_DELETE
from ..observe import ERROR, UNSCHEDULABLE
from ..observe.times import (
    DECIDED,
    ENDED,
    FILTERED,
    PRE_FILTERED,
    PRE_SCORED,
    PRE_SCORING,
    SCORED,
    STARTED,
)
from ..queue import QueuedPodInfo
from ..runtime import PluginRunError, ProfileRuntime
from ..table import Bools, Ints
from . import steps
from .agreement import check_feasible, check_refusals, check_totals
from .attempt import Attempt, Explanation, Outcome
from .binding import Binding, BindingTools
from .event_handlers import EventHandlers
from .explain import explain_extenders, explain_refusal, explain_scores, explain_search
from .failure import FailureHandler, scheduled_event, skip_event
from .find_nodes import NodeFinder, Search
from .parts import Parts
from .select_host import select_host

log = logging.getLogger(__name__)

GOES_ON = (Outcome.BINDING, Outcome.WAITING)
NO_NODES = "no nodes available to schedule pods"


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
        self._may_use_engine = parts.extenders is None
        self._engines = {
            name: Engine(profile, parts.cache.table) for name, profile in parts.profiles.items()
        }
        self._finder = NodeFinder(parts.cache.table, parts.cache.snapshot, parts.extenders)
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

    @property
    def has_extenders(self) -> bool:
        """Whether the configuration has extenders."""
        return self._extenders is not None

    # The path of a pod

    def schedule_one(self) -> Attempt | None:
        """Take the next pod from the queue and try to place it; None when no pod is ready."""
        while (queued := self.queue.pop()) is not None:
            if self._is_pointless(queued.pod):
                self.queue.done(queued.pod.uid)
                continue
            if self.is_observed:
                self.observer("popped", queued.pod, f"attempt {queued.attempts}")
            attempt = self.schedule(queued)
            if attempt.status is not None and not attempt.was_handled:
                self._failed(queued, attempt)
            return attempt
        return None

    def schedule(self, queued: QueuedPodInfo) -> Attempt:
        """The scheduling cycle of one pod and, when it finds a node, the begin of its binding cycle."""
        is_logged = self._is_logged = steps.log.isEnabledFor(steps.LEAST)
        if is_logged:
            steps.log_begin(queued)
        profile = self.profiles[queued.pod.scheduler_name]
        state = CycleState()
        times = state.times
        times[STARTED] = perf_counter()
        attempt = Attempt(queued.pod, Outcome.ERROR, number=queued.attempts)
        try:
            self._find_node(profile, state, attempt)
            times[DECIDED] = perf_counter()
            if attempt.node_name:
                if is_logged:
                    steps.log_choice(profile, self.cache.table, attempt)
                self._commit(profile, state, queued, attempt)
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
            self._find_node(profile, state, attempt)
        except PluginRunError as failed:
            attempt.fail(failed.status)
        except ExtenderError as error:
            attempt.fail(failure(error))
        if attempt.is_failed and attempt.explanation is not None:
            self._explain_wait(attempt, attempt.explanation, attempt.unschedulable_plugins)
        return attempt

    def _find_node(self, profile: ProfileRuntime, state: CycleState, attempt: Attempt) -> None:
        """Find the nodes that fit, and choose one; or try to make room."""
        self.cache.snapshot.update()
        table, pod = self.cache.table, attempt.pod
        if table.node_count == 0:
            attempt.fail(unresolvable(NO_NODES), nominated_node_name="")
            return
        attempt.evaluated_nodes = table.node_count
        decision = self._decide(profile, state, pod) if self._may_use_engine else None
        if decision is not None and not self._explain:
            self._take(profile, state, attempt, decision)
            return
        if decision is not None:  # it is shown beside the reference, which runs all plugins
            state.clear()
        if self.metrics.is_sampled():
            state.sampled_by = self.metrics
        search = self._finder.find(profile, state, pod, everything=self._explain)
        if self._explain:
            attempt.explanation = explain_search(search, state, table)
        attempt.feasible_nodes = table.count(search.rows)
        if decision is not None:
            check_feasible(decision, table.numbers(search.rows), pod, table)
            if not attempt.feasible_nodes:
                check_refusals(decision, search.diagnosis, pod, table)
        if attempt.feasible_nodes == 0:
            self._make_room(profile, state, attempt, search.diagnosis)
            return
        row = self._choose(profile, state, attempt, search, decision)
        attempt.node_name = table.names[row]

    def _decide(self, profile: ProfileRuntime, state: CycleState, pod: Pod) -> Decision | None:
        """The engine's decision; None: the reference decides."""
        try:
            return self._engines[profile.name].decide(state, pod)
        except PluginRunError:
            # Plugins with cached answers are called for all nodes, also those that another one refuses. The reference
            # calls them in kube-scheduler's order, and reports the error if it occurs there, too.
            self.metrics.engine_failures.count += 1
            state.clear()
            return None

    def _take(
        self, profile: ProfileRuntime, state: CycleState, attempt: Attempt, decision: Decision
    ) -> None:
        """Go by a decision of the engine."""
        table, best = self.cache.table, decision.best
        attempt.feasible_nodes = best.feasible
        if not best.feasible:
            now = perf_counter()
            state.times[PRE_FILTERED] = state.times[FILTERED] = now
            profile.filter_evaluations.count(state.skip_filter)
            diagnosis = Diagnosis.of_rows(table, decision.refusals)
            self._make_room(profile, state, attempt, diagnosis)
            return
        if attempt.pod.spec.pin:
            self._finder.pass_one()
        row = self.ties.choose_best(decision, table, self._finder)
        attempt.node_name = table.names[row]
        if best.feasible > 1:
            attempt.score = best.total

    def _choose(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        attempt: Attempt,
        search: Search,
        decision: Decision | None,
    ) -> int:
        """The row of the best feasible node. A single one, or the nominated one, is taken unscored."""
        table, pod, rows, times = self.cache.table, attempt.pod, search.rows, state.times
        if attempt.explanation is not None:
            profile.scoring.run_pre_scores(state, pod, table, rows)
            explain_scores(attempt.explanation, search, profile, state, pod, table)
        if search.nominated_row is not None:
            attempt.from_nomination = True
            return search.nominated_row
        if attempt.feasible_nodes == 1:
            return int(table.numbers(rows)[0])
        if attempt.explanation is None:
            times[PRE_SCORING] = perf_counter()
            profile.scoring.run_pre_scores(state, pod, table, rows)
        times[PRE_SCORED] = perf_counter()
        is_scored = None
        totals = profile.scoring.run_scores(state, pod, table, rows, search.bare_nodes(table))
        times[SCORED] = perf_counter()
        profile.score_evaluations.count(state.skip_score)
        if decision is not None:
            check_totals(decision, table.numbers(rows), totals, pod, table)
        if self._extenders is not None:
            totals, is_scored = self._ask_for_scores(profile, attempt, search, totals)
        winner = select_host(totals, table.numbers(rows), table, search, self.ties, is_scored)
        attempt.score = int(totals[winner])
        return winner if isinstance(rows, slice) else int(rows[winner])

    def _ask_for_scores(
        self, profile: ProfileRuntime, attempt: Attempt, search: Search, totals: Ints
    ) -> tuple[Ints, Bools]:
        """`totals` with what the extenders give, and which nodes they gave something."""
        assert self._extenders is not None, "asked only when there are extenders"
        table, found = self.cache.table, search.found(self.cache.table)
        given = self._extenders.score(attempt.pod, found)
        positions = np.searchsorted(table.numbers(search.rows), found)
        # Without Score plugins every node has 1, but only as long as there are no extenders.
        totals = totals.copy() if profile.scoring.scores else np.zeros_like(totals)
        totals[positions] += given.total
        is_scored = np.zeros(len(totals), dtype=np.bool_)
        is_scored[positions] = given.is_scored
        if attempt.explanation is not None:
            explain_extenders(attempt.explanation, given, search, totals, table)
        return totals, is_scored

    def _make_room(
        self, profile: ProfileRuntime, state: CycleState, attempt: Attempt, diagnosis: Diagnosis
    ) -> None:
        """No node fits: run PostFilter, and say why."""
        diagnosis.note_rejectors()
        steps.log_refusals(attempt.pod, diagnosis)
        result = PostFilterResult("")  # without PostFilter plugins a nomination ends
        if profile.filtering.post_filters:
            result, status = self._post_filter(profile, state, attempt.pod, diagnosis)
            diagnosis.post_filter_message = status.message
            steps.log_post_filter(attempt.pod, status)
            if attempt.explanation is not None:
                attempt.explanation.post_filter = (result, status)
        attempt.unschedulable_plugins = frozenset(diagnosis.unschedulable_plugins)
        attempt.pending_plugins = frozenset(diagnosis.pending_plugins)
        attempt.fit_error = diagnosis.fit_error()
        message = diagnosis.with_post_filter(attempt.fit_error)
        refused = Status(Code.Unschedulable, (message,))
        attempt.fail(refused, nominated_node_name=result.nominated_node_name)
        if result.preemption is not None and result.preemption.chosen is not None:
            for victim in result.preemption.chosen.evicted:
                steps.log_victim(attempt.pod, victim)
                self.observer("preempted", victim, f"for {attempt.pod.key} on {victim.node_name}")

    def _post_filter(
        self, profile: ProfileRuntime, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        code, started = Code.Error, perf_counter()
        try:
            result, status = profile.filtering.run_post_filters(state, pod, diagnosis)
            code = status.code
        finally:
            profile.metrics.point("PostFilter").ended(code.name, perf_counter() - started)
        return result, status

    def _commit(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        queued: QueuedPodInfo,
        attempt: Attempt,
    ) -> None:
        """Assume, Reserve, Permit; then the binding cycle begins. Any "no" undoes the steps in reverse."""
        assumed = attempt.pod.with_node(attempt.node_name)
        try:
            self.cache.assume_pod(assumed)
        except CacheError as error:
            attempt.fail(failure(error), nominated_node_name="")
            return
        self.queue.nominator.delete(assumed)
        plan = profile.committing.plan(assumed.spec)
        binding = Binding(self._binding, profile, state, queued, assumed, attempt, plan)
        if plan.is_idle:
            attempt.outcome = Outcome.BINDING
            binding.go_on()
            if attempt.outcome is not Outcome.BOUND:
                self._note_beside(binding)
            return
        status, timeouts_s = self._reserve_and_permit(binding)
        if not status.is_success and status.code is not Code.Wait:
            binding.undo()
            self._reject(attempt, status)
            return
        self._activate(state)
        attempt.outcome = Outcome.WAITING if timeouts_s else Outcome.BINDING
        if timeouts_s:
            steps.log_wait(assumed, timeouts_s)
            self.observer("waiting", assumed, f"on {assumed.node_name} for {', '.join(timeouts_s)}")
        binding.begin(timeouts_s)
        self._note_beside(binding)

    def _reserve_and_permit(self, binding: Binding) -> tuple[Status, dict[str, float]]:
        """Ask those who have something to do for the pod."""
        status = self._reserve(binding) if binding.plan.reserves else SUCCESS
        if status.is_success and binding.plan.permits:
            return self._permit(binding)
        return status, {}

    def _reserve(self, binding: Binding) -> Status:
        profile, assumed, started = binding.profile, binding.assumed, perf_counter()
        try:
            status = profile.committing.run_reserve(binding.state, assumed, assumed.node_name)
        except PluginRunError as failed:
            status = failed.status
        profile.metrics.point("Reserve").ended(status.code.name, perf_counter() - started)
        return status

    def _permit(self, binding: Binding) -> tuple[Status, dict[str, float]]:
        profile, assumed, started = binding.profile, binding.assumed, perf_counter()
        timeouts_s: dict[str, float] = {}
        try:
            status, timeouts_s = profile.committing.run_permit(
                binding.state, assumed, assumed.node_name
            )
        except PluginRunError as failed:
            status = failed.status
        profile.metrics.point("Permit").ended(status.code.name, perf_counter() - started)
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

    def _failed(self, queued: QueuedPodInfo, attempt: Attempt) -> None:
        what = "refused" if attempt.outcome is Outcome.UNSCHEDULABLE else "failed"
        self.observer(what, attempt.pod, attempt.message)
        steps.log_failure(attempt)
        if attempt.explanation is not None:
            self._explain_wait(attempt, attempt.explanation, attempt.unschedulable_plugins)
        self._failure.handle(queued, attempt)
        self.ended(attempt)

    def _note_beside(self, binding: Binding) -> None:
        """The binding cycle has begun; if it is not over, it goes on beside the scheduling of other pods."""
        if binding.attempt.outcome in GOES_ON:
            binding.is_beside = True
            self.metrics.bindings.value += 1

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
