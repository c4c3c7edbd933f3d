"""GroupAlgorithm: the nodes for the members of a pod group, found by trying the members one after another.

Mirrors podGroupSchedulingDefaultAlgorithm, podGroupSchedulingPlacementAlgorithm and updatePodGroupCondition of
pkg/scheduler/schedule_one_podgroup.go.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from ..api.pod import Pod
from ..api.pod_groups import POD_GROUP_SCHEDULED, PodGroup, PodGroupCondition
from ..cache import Trial
from ..clock import Clock, rfc3339
from ..errors import ExtenderError
from ..framework import SUCCESS, Code, CycleState, Status, failure, unschedulable
from ..framework.group_options import HeldEviction, held_evictions
from ..framework.handle import Executor, outcome_of
from ..framework.placement import GroupRoom, Placement, PodGroupAssignments, PodGroupInfo
from ..observe.times import DECIDED, STARTED
from ..queue.queued_pod import QueuedPodInfo
from ..runtime import PluginRunError, ProfileRuntime
from ..table import Ints
from .attempt import Attempt
from .binding import Binding, BindingTools
from .deciding import Decider
from .failure import FailureHandler
from .group_attempt import (
    UNSCHEDULABLE_GROUP,
    WAITING,
    GroupAttempt,
    GroupResult,
    MemberTrial,
    PlacementTrial,
)
from .parts import Parts, SchedulerCluster
from .placement_search import GroupFilling, PlacementSearch


class PodPath(Protocol):
    """The steps of the path of one pod (`cycle.py`)."""

    decider: Decider
    failure: FailureHandler
    binding_tools: BindingTools

    def assume(
        self, profile: ProfileRuntime, state: CycleState, queued: QueuedPodInfo, attempt: Attempt
    ) -> Binding | None:
        """Assume and Reserve; None if one of them refuses."""

    def permit(self, binding: Binding) -> bool:
        """Permit, which may hold the pod; False if it refuses."""

    def begin(self, binding: Binding) -> None:
        """Begin to bind a pod."""

    def skip(self, pod: Pod) -> bool:
        """Whether the pod needs no node any more, or has one."""


class GroupTools(msgspec.Struct):
    """Parts that the cycles of all groups share."""

    parts: Parts
    cycle: PodPath
    conditions: GroupConditions
    search: PlacementSearch

    @property
    def has_placements(self) -> bool:
        """Feature gate TopologyAwareWorkloadScheduling."""
        return self.parts.feature_gates.enabled("TopologyAwareWorkloadScheduling")

    @property
    def preempts(self) -> bool:
        """Feature gate WorkloadAwarePreemption."""
        return self.parts.feature_gates.enabled("WorkloadAwarePreemption")


class GroupAlgorithm:
    """The algorithm for one group, which may run several times: for each placement, and without some pods."""

    _asks_permit = True
    """Whether Permit determines that enough members have a node."""

    def __init__(
        self,
        tools: GroupTools,
        profile: ProfileRuntime,
        group: PodGroupInfo,
        queued: Sequence[QueuedPodInfo],
        state: CycleState,
        trial: Trial,
    ) -> None:
        self._tools = tools
        self.profile = profile
        self.group = group
        self.trial = trial
        self.queued = self._queued = queued
        self._state = state
        self._filling: GroupFilling | None = None
        self._placement_metrics = tools.parts.metrics.placements

    def __call__(self) -> Status:
        """Try the group on the nodes in their present state."""
        account = self.find_nodes(makes_room=False)
        if account.placements:
            self._filling = None  # the result depends on more than the rows
        return account.status

    def room(self) -> GroupRoom | None:
        """Amounts that the group needs; None if its result depends on more. Call it before pods are removed."""
        search = self._tools.search
        fillings = search.fillings(self.profile, self.group)
        if fillings is None:
            return None
        self._filling = search.filling(self.profile, self.group, fillings)
        return search.room(self.profile, self.group, fillings)

    def states(self) -> Mapping[str, CycleState]:
        """The states of the members that were tried, by their keys; empty, as this release does not use them."""
        return {}

    def fits_beside(self, pods: Sequence[Pod]) -> bool:
        """Whether the group fits after `pods` were put back on their nodes; if not, the caller removes them again."""
        if self._filling is None:
            return self().is_success
        return self._filling.fits_beside(pods)

    def find_nodes(self, makes_room: bool = True, tells_all: bool = False) -> GroupAttempt:
        """Find a node for each member, on the best placement; no member stays assumed."""
        if not self._tools.has_placements:
            return GroupAttempt(self.group, self._try_members(None, makes_room, makes_room))
        try:
            return self._try_placements(makes_room, tells_all)
        except PluginRunError as failed:
            return GroupAttempt(self.group, GroupResult(failed.status))

    def _try_placements(self, makes_room: bool, tells_all: bool) -> GroupAttempt:
        placing = self.profile.placing
        rows = np.sort(self._tools.parts.cache.snapshot.order)
        found = placing.run_generate(self._state, self.group, Placement("", rows))
        if isinstance(found, Status):
            return GroupAttempt(self.group, GroupResult(found))
        if self._placement_metrics is not None:
            self._placement_metrics.generated.labels(self.profile.name).count += len(found)
        tried: list[PlacementTrial] = []
        failed: GroupAttempt | None = None
        tiers = sorted({placement.tier for placement in found})
        for tier in tiers:
            placements = sorted((p for p in found if p.tier == tier), key=lambda p: p.name)
            is_last = tier == tiers[-1]
            account = self._try_tier(
                placements, makes_room, makes_room and is_last, makes_room and not tells_all
            )
            if account.status.code is Code.Error:
                return account
            tried += account.placements
            account.placements = tried
            if account.chosen is not None:
                return account
            failed = failed or account
        assert failed is not None, "PlacementGenerate returns at least one placement"
        failed.result = self._no_placement(len(found), failed.result)
        return failed

    def _try_tier(
        self, placements: Sequence[Placement], is_real: bool, makes_room: bool, is_searched: bool
    ) -> GroupAttempt:
        """Try the group on the placements, and choose the best; if it fits on none, the result is that of the first.

        `is_real` is false in a trial without pods that might be preempted. Unless `is_searched`, the members are tried
        on every placement.
        """
        account = self._search_placements(placements, makes_room) if is_searched else None
        if account is not None:
            return account
        table = self._tools.parts.cache.table
        tried: list[PlacementTrial] = []
        for placement in placements:
            within = placement.rows if len(placement.rows) != table.node_count else None
            started = perf_counter()
            result = self._try_members(within, makes_room, is_real and len(placements) == 1)
            if result.status.code is Code.Error:
                return GroupAttempt(self.group, result)
            self._note_tried(result.status.is_success, not result.status.is_success, started)
            tried.append(PlacementTrial(placement, result))
        account = GroupAttempt(self.group, tried[0].result)
        if any(trial.placement.name for trial in tried):
            account.placements = tried
        best = self._best(tried)
        if best is not None:
            account.result, account.chosen = best.result, best.placement
        return account

    def _search_placements(
        self, placements: Sequence[Placement], makes_room: bool
    ) -> GroupAttempt | None:
        """The result of `_try_tier` without trying the members on every placement; None if they have to be tried."""
        started = perf_counter()
        possible = self._tools.search.find(self.profile, self.group, placements)
        if possible is None:
            return None
        if not possible:
            first = self._try_members(placements[0].rows, makes_room, False)
            if first.is_possible:
                return None
            self._note_tried(0, len(placements), started)
            return GroupAttempt(self.group, first)
        totals = np.zeros(len(possible), dtype=np.int64)
        if len(possible) > 1:
            totals = self.profile.placing.run_scores(self._state, self.group, possible).totals
        best = possible[self._highest(totals)]
        result = self._try_members(best.placement.rows, makes_room, True)
        if not result.is_possible:
            return None
        self._note_tried(len(possible), len(placements) - len(possible), started)
        return GroupAttempt(self.group, result, chosen=best.placement)

    def _note_tried(self, possible: int, others: int, started: float) -> None:
        """Count placements that were tried since `started`."""
        if self._placement_metrics is not None:
            took_s = perf_counter() - started
            self._placement_metrics.tried(self.profile.name, possible, others, took_s)

    def _best(self, tried: Sequence[PlacementTrial]) -> PlacementTrial | None:
        """The placement with the highest score among those on which the group fits."""
        possible = [trial for trial in tried if trial.result.is_possible]
        if len(possible) < 2:
            return possible[0] if possible else None
        assigned = [self._assignments(trial) for trial in possible]
        scores = self.profile.placing.run_scores(self._state, self.group, assigned)
        for position, trial in enumerate(possible):
            trial.scores = {name: int(given[position]) for name, given in scores.by_plugin.items()}
            trial.total = int(scores.totals[position])
        return possible[self._highest(scores.totals)]

    def _highest(self, totals: Ints) -> int:
        """The position of the highest total; the tie-break of nodes chooses between equal ones."""
        tied = np.flatnonzero(totals == totals.max())
        return int(tied[0]) if len(tied) == 1 else self._tools.parts.ties.choose_any(tied)

    def _assignments(self, trial: PlacementTrial) -> PodGroupAssignments:
        row_of, placed = self._tools.parts.cache.table.row_of, trial.result.placed
        pods = [member.attempt.pod for member in placed]
        rows = [row_of[member.node_name] for member in placed]
        return PodGroupAssignments(trial.placement, pods, rows)

    def _try_members(self, within: Ints | None, makes_room: bool, is_last: bool) -> GroupResult:
        """Try the members one after another, on the rows `within` (None means all), then undo everything.

        In the last run, the members of a group that fits stay on their nodes until they are assumed for good.
        """
        result = GroupResult(unschedulable(UNSCHEDULABLE_GROUP))
        needs_preemption = False
        assumed: list[tuple[MemberTrial, Pod]] = []
        held = held_evictions(self._state)
        for queued in self._queued:
            member = self._begin(queued)
            result.members.append(member)
            pod = self._try_member(member, within, makes_room)
            if held:
                result.held += self._without_victims(held, pod is not None)
            if pod is None:
                status = member.attempt.status
                assert status is not None, "a member without a node has failed"
                if status.is_rejected:
                    continue  # the group may start without it
                text = f"failed to schedule other pod from a pod group: {status.message}"
                result.status, result.waits_for_preemption = failure(text), False
                break
            assumed.append((member, pod))
            needs_preemption = needs_preemption or member.needs_preemption
            if member.permit is not None and member.permit.is_success:
                result.waits_for_preemption = needs_preemption
                result.status = (
                    unschedulable(UNSCHEDULABLE_GROUP, WAITING) if needs_preemption else SUCCESS
                )
        keeps = is_last and result.status.is_success
        for member, pod in reversed(assumed):
            self._take_back(member, pod, keeps)
        # After the members, which may have the host ports of victims.
        for victim in (pod for eviction in result.held for pod in eviction.victims.pods):
            self.trial.restore(victim)
        return result

    def _without_victims(self, held: list[HeldEviction], is_used: bool) -> Sequence[HeldEviction]:
        """Remove the victims of a member's held evictions from their nodes; none if the member did not get the node."""
        new, held[:] = list(held), []
        if not is_used:
            return ()
        for eviction in new:
            for victim in eviction.victims.pods:
                self.trial.remove(victim)
        return new

    def _begin(self, queued: QueuedPodInfo) -> MemberTrial:
        state = CycleState()
        state.group = self._state
        state.times[STARTED] = perf_counter()
        attempt = Attempt(queued.pod, number=queued.attempts)
        return MemberTrial(queued, attempt, state)

    def _try_member(self, member: MemberTrial, within: Ints | None, makes_room: bool) -> Pod | None:
        """Find a node for the member and assume it there; returns the pod with its node, None if it has none."""
        tools, attempt, state = self._tools, member.attempt, member.state
        try:
            tools.cycle.decider.find_node(self.profile, state, attempt, within, makes_room)
        except PluginRunError as failed:
            attempt.fail(failed.status, nominated_node_name="")
        except ExtenderError as error:
            attempt.fail(failure(error), nominated_node_name="")
        state.times[DECIDED] = perf_counter()
        node_name = attempt.node_name
        if attempt.status is not None:
            node_name = attempt.nominated_node_name or ""
            if not node_name:
                return None
            member.needs_preemption = True
        assumed = self.trial.assume(attempt.pod, state.placed(attempt.pod, node_name))
        was_nominated = attempt.pod.nominated_node_name
        tools.parts.queue.nominator.delete(assumed)
        status = self._try_to_commit(member, assumed)
        if not status.is_success and status.code is not Code.Wait:
            self.trial.forget(assumed)
            tools.parts.queue.nominator.leave_queue(attempt.pod, was_nominated)
            member.needs_preemption = False
            return None
        member.node_name, member.permit = node_name, status
        return assumed

    def _try_to_commit(self, member: MemberTrial, assumed: Pod) -> Status:
        """Run Reserve and Permit for a member on trial; a refusal is undone and noted."""
        profile, attempt, tools = self.profile, member.attempt, self._tools.cycle.binding_tools
        try:
            plan = profile.committing.plan(assumed.spec)
        except PluginRunError as failed:
            attempt.fail(failed.status, nominated_node_name="")
            return failed.status
        if plan.is_idle:
            return SUCCESS
        binding = Binding(tools, profile, member.state, member.queued, assumed, attempt, plan)
        status = binding.run_reserve() if plan.reserves else SUCCESS
        if status.is_success and plan.permits and self._asks_permit:
            status, _ = binding.run_permit()
        binding.undo_if_refused(status)
        return status

    def _no_placement(self, tried: int, first: GroupResult) -> GroupResult:
        """The result of a group that fits on no placement: the first one's, with a status about all of them."""
        text = f"0/{tried} placements are available, first placement status: {first.status.message}"
        return replace(first, status=unschedulable(text))

    def _take_back(self, member: MemberTrial, assumed: Pod, keeps: bool) -> None:
        committing = self.profile.committing
        if committing.plan(assumed.spec).reserves:
            committing.run_unreserve(member.state, assumed, assumed.node_name)
        (self.trial.give_back if keeps else self.trial.forget)(assumed)
        pod = member.attempt.pod
        self._tools.parts.queue.nominator.leave_queue(pod, pod.nominated_node_name)


log = logging.getLogger(__name__)

SCHEDULED = POD_GROUP_SCHEDULED


class GroupConditions:
    """Writes the result of a group's cycle to its status, if it changes the status."""

    def __init__(
        self,
        cluster: SchedulerCluster,
        executor: Executor,
        clock: Clock,
        kind: str = POD_GROUP_SCHEDULED,
    ) -> None:
        self._kind = kind
        self._cluster = cluster
        self._executor = executor
        self._clock = clock

    def set(self, account: GroupAttempt) -> None:
        """Set the condition; a true condition stays true, and a deleted group has none."""
        where = account.group
        group = self._cluster.get("PodGroup", where.namespace, where.name)
        if not isinstance(group, PodGroup):
            log.warning("pod group %s: it is gone, and its condition is not written", where.key)
            return
        known = next((c for c in group.status.conditions or () if c.type == self._kind), None)
        wanted = self._condition(account.status, group, known)
        if wanted == known or (known and known.status == "True" and wanted.status != "True"):
            return
        others = [c for c in group.status.conditions or () if c.type != self._kind]
        status = replace(group.status, conditions=(*others, wanted))
        self._write(replace(group, status=status))

    def _condition(
        self, status: Status, group: PodGroup, known: PodGroupCondition | None
    ) -> PodGroupCondition:
        value = "True" if status.is_success else "False"
        reason = "Unschedulable" if status.is_rejected else "SchedulerError"
        if known is not None and known.status == value:
            since = known.last_transition_time
        else:
            since = rfc3339(self._clock.now())
        return PodGroupCondition(
            type=self._kind,
            status=value,
            observed_generation=group.metadata.generation,
            last_transition_time=since,
            reason="Scheduled" if status.is_success else reason,
            message="" if status.is_success else status.message,
        )

    def _write(self, group: PodGroup) -> None:
        def written(status: Status) -> None:
            if not status.is_success:  # the next cycle of the group writes it again
                log.warning(
                    "pod group %s: cannot write its condition: %s", group.key, status.message
                )

        self._executor.run(partial(outcome_of, self._cluster.update_status, group), written)
