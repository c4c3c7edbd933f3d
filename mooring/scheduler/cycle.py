"""Cycle: the way of one pod, from the queue to its node. Read this first.

Mirrors ScheduleOne, schedulingCycle, schedulePod and bindingCycle of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..api.pod import Pod
from ..cache import Cache
from ..framework import (
    PODS_TO_ACTIVATE,
    Code,
    CycleState,
    Diagnosis,
    PostFilterResult,
    Status,
    unresolvable,
)
from ..queue import QueuedPodInfo, SchedulingQueue
from ..runtime import PluginRunError, ProfileRuntime
from .attempt import Attempt, Outcome
from .event_handlers import EventHandlers
from .explain import explain_scores, explain_search
from .find_nodes import NodeFinder, Search
from .select_host import TieBreak, best_positions

NO_NODES = "no nodes available to schedule pods"


class Scheduler(EventHandlers):
    """Events go in (`on_add`, `on_update`, `on_delete`), one attempt at a time comes out.

    Synchronous and without threads: the same events give the same decisions.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        profiles: Mapping[str, ProfileRuntime],
        ties: TieBreak,
        explain: bool = False,
    ) -> None:
        super().__init__(cache, queue, profiles)
        self._ties = ties
        self._explain = explain
        self._finder = NodeFinder(cache.table, cache.snapshot)

    def schedule_one(self) -> Attempt | None:
        """Take the next pod from the queue and try to place it; None when no pod is ready."""
        queued = self.queue.pop()
        if queued is None:
            return None
        attempt = self.schedule(queued)
        if attempt.outcome is not Outcome.BOUND:
            self._requeue(queued, attempt)
        return attempt

    def schedule(self, queued: QueuedPodInfo) -> Attempt:
        """The scheduling cycle and, when it finds a node, the binding cycle of one pod."""
        pod = queued.pod
        profile = self.profiles[pod.scheduler_name]
        state = CycleState()
        state.write(PODS_TO_ACTIVATE, {})
        attempt = Attempt(pod, Outcome.ERROR)
        try:
            self._scheduling_cycle(profile, state, attempt)
            if attempt.node_name:
                self._commit(profile, state, attempt)
        except PluginRunError as failure:
            self._fail(attempt, failure.status)
        return attempt

    def _scheduling_cycle(
        self, profile: ProfileRuntime, state: CycleState, attempt: Attempt
    ) -> None:
        """Find the nodes that fit, and choose one; or try to make room."""
        self.cache.snapshot.update()
        table, pod = self.cache.table, attempt.pod
        if table.node_count == 0:
            self._fail(attempt, unresolvable(NO_NODES))
            return
        search = self._finder.find(profile, state, pod, everything=self._explain)
        if self._explain:
            attempt.explanation = explain_search(search, state, table)
        attempt.feasible_nodes = table.count(search.rows)
        attempt.evaluated_nodes = table.node_count
        if attempt.feasible_nodes == 0:
            self._make_room(profile, state, attempt, search.diagnosis)
            return
        row = self._choose(profile, state, attempt, search)
        attempt.node_name = table.names[row]

    def _choose(
        self, profile: ProfileRuntime, state: CycleState, attempt: Attempt, search: Search
    ) -> int:
        """The row of the best feasible node. A single one, or the nominated one, is taken unscored."""
        table, pod, rows = self.cache.table, attempt.pod, search.rows
        if self._explain and attempt.explanation is not None:
            profile.scoring.run_pre_scores(state, pod, table, rows)
            explain_scores(attempt.explanation, search, profile, state, pod, table)
        if search.nominated_row is not None:
            attempt.from_nomination = True
            return search.nominated_row
        if attempt.feasible_nodes == 1:
            return int(table.numbers(rows)[0])
        if not self._explain:
            profile.scoring.run_pre_scores(state, pod, table, rows)
        totals = profile.scoring.run_scores(state, pod, table, rows)
        best = best_positions(totals)
        winner = int(best[0])
        if len(best) > 1:
            winner = self._ties.choose(best, table.numbers(rows), table, search)
        attempt.score = int(totals[winner])
        return winner if isinstance(rows, slice) else int(rows[winner])

    def _make_room(
        self, profile: ProfileRuntime, state: CycleState, attempt: Attempt, diagnosis: Diagnosis
    ) -> None:
        """No node fits: run PostFilter, and say why."""
        diagnosis.note_rejectors()
        result = PostFilterResult("")  # without PostFilter plugins a nomination ends
        if profile.filtering.post_filters:
            result, status = profile.filtering.run_post_filters(state, attempt.pod, diagnosis)
            diagnosis.post_filter_message = status.message
            if attempt.explanation is not None:
                attempt.explanation.post_filter = (result, status)
        attempt.nominated_node_name = result.nominated_node_name
        attempt.unschedulable_plugins = frozenset(diagnosis.unschedulable_plugins)
        self._fail(
            attempt, Status(Code.Unschedulable, (diagnosis.message(),)), diagnosis.fit_error()
        )

    def _commit(self, profile: ProfileRuntime, state: CycleState, attempt: Attempt) -> None:
        """Assume, Reserve, Permit, PreBind, Bind, PostBind; any "no" undoes the steps in reverse."""
        node_name = attempt.node_name
        assumed = attempt.pod.with_node(node_name)
        self.cache.assume_pod(assumed)
        self.queue.nominator.delete(assumed)
        try:
            status = self._run_commit(profile, state, assumed)
        except PluginRunError as failure:
            status = failure.status
        if status.is_success:
            attempt.outcome = Outcome.BOUND
            return
        profile.committing.run_unreserve(state, assumed, node_name)
        if self.cache.is_assumed(assumed):
            self.cache.forget_pod(assumed)
        attempt.node_name = ""
        attempt.unschedulable_plugins = frozenset({status.plugin} if status.plugin else ())
        self._fail(attempt, status)

    def _run_commit(self, profile: ProfileRuntime, state: CycleState, assumed: Pod) -> Status:
        committing, node_name = profile.committing, assumed.node_name
        status = committing.run_reserve(state, assumed, node_name)
        if status.is_success:
            status, _ = committing.run_permit(state, assumed, node_name)
        if status.is_success:
            status = committing.run_pre_bind(state, assumed, node_name)
        if status.is_success:
            status = committing.run_bind(state, assumed, node_name)
        if status.is_success:
            self.cache.finish_binding(assumed)
            committing.run_post_bind(state, assumed, node_name)
        return status

    def _fail(self, attempt: Attempt, status: Status, fit_error: str = "") -> None:
        attempt.outcome = Outcome.UNSCHEDULABLE if status.is_rejected else Outcome.ERROR
        attempt.status = status
        attempt.message = status.message
        attempt.fit_error = fit_error

    def _requeue(self, queued: QueuedPodInfo, attempt: Attempt) -> None:
        """Back to the queue, with who refused it and the nomination it keeps."""
        queued.unschedulable_plugins = set(attempt.unschedulable_plugins)
        if attempt.nominated_node_name is not None:
            self.queue.nominator.add(queued.pod, attempt.nominated_node_name)
        self.queue.add_unschedulable(queued)

    def retry_unschedulable(self) -> int:
        """Try the refused pods again; returns how many there are to try."""
        return self.queue.retry_unschedulable()

    def gated(self) -> list[Attempt]:
        """The pods that a PreEnqueue plugin holds back, and why."""
        held = [(info.pod, info.gated_by) for info in self.queue.gated()]
        return [
            Attempt(pod, Outcome.GATED, message=status.message, status=status)
            for pod, status in held
            if status is not None
        ]
