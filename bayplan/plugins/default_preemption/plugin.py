"""DefaultPreemption: preempt pods of lower priority to make room for a pod that fits nowhere.

Mirrors pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go and
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from msgspec.structs import asdict

from ...amounts import FitRule, kernel
from ...api.pod import Pod
from ...api.pod_groups import GroupPreemptor, PodGroup
from ...config.plugin_args import DefaultPreemptionArgs
from ...errors import ExtenderError
from ...framework import (
    SUCCESS,
    Code,
    CycleState,
    Handle,
    PodGroupPostFilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from ...framework.diagnosis import Diagnosis
from ...framework.events import (
    EACH_SPEC,
    POD,
    ActionType,
    EventWithHint,
    Hint,
    called_for,
    wait_for,
)
from ...framework.group_options import HeldEviction, held_evictions
from ...framework.handle import PreemptionExtenders, release_of
from ...framework.interface import Preemption
from ...framework.lister import group_of
from ...framework.placement import GroupTrial, TryGroup, placed_by_name
from ...framework.reserved import Reserved
from ...framework.row_statuses import no_node_available
from ...framework.victims import Victims
from ...observe.group_metrics import BY_POD, BY_POD_GROUP
from ...table.pod_matrix import PodMatrix
from .by_amounts import NO_VICTIMS, BesideRoom, ByAmounts, RoomFilters, best_candidate, room_filters
from .disruption_budgets import BudgetFollower, Budgets
from .evictions import VictimEvictions
from .for_groups import (
    VictimUnit,
    preempt_for_group,
    preempt_once_for_group,
    victim_units,
)
from .node_victims import OneByOne, UnitByUnit, reject_without_victims

NOT_HELPFUL = "Preemption is not helpful for scheduling"
IN_PROGRESS = "waiting for the preemption for this pod to be finished"
NO_CANDIDATE = "no candidate node for preemption"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
IN_PROGRESS_FOR_GROUP = "waiting for the preemption for this pod group to be finished"
NO_GROUP = "pod group for pod not found"
BY_PLACEMENT = "not eligible due to placement-based pod group scheduling limitation"
FOR_GROUP = "pod group preemption"
ONGOING = "ongoing preemption on nominated nodes"
BY_GROUP = "not eligible due to workload aware preemption enabled"


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin, PodGroupPostFilterPlugin):
    """Tries the nodes where removing pods may help, and nominates the one that costs least."""

    name = "DefaultPreemption"
    _is_async = True
    _has_placements = False
    """Feature gate TopologyAwareWorkloadScheduling."""
    _has_groups = False
    """Feature gate WorkloadAwarePreemption: pod groups preempt as a whole."""
    _preempts_once = False
    """Fact `groups_are_entries` of the release, with pod groups."""

    def __init__(self, min_percentage: int = 10, min_absolute: int = 100) -> None:
        self._min_percentage = min_percentage
        self._min_absolute = min_absolute
        self._budgets = BudgetFollower()
        self._by_place = False
        """Fact `unstarted_victims_by_place` of the release."""
        self._matrix: PodMatrix | None = None
        self._useless: tuple[int, PostFilterResult, Status] | None = None
        """Cached "preemption is not helpful" result, and the node count it is for."""
        self._last_refusal: tuple[int, tuple[tuple[str, int], ...], Status] = (0, (), SUCCESS)
        """The last result, with the node count and the reasons that it is for: pods of a class fail one after
        another.
        """
        self._evictions = VictimEvictions(self)

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or DefaultPreemptionArgs()
        plugin = cls(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        plugin.handle = handle
        gates, release = handle.feature_gates, handle.release
        plugin._budgets = BudgetFollower(release.budgets_stop_at_first)
        plugin._by_place = release.unstarted_victims_by_place
        plugin._is_async = gates.enabled("SchedulerAsyncPreemption")
        plugin._has_placements = gates.enabled("TopologyAwareWorkloadScheduling")
        plugin._has_groups = gates.enabled("WorkloadAwarePreemption")
        plugin._preempts_once = plugin._has_groups and release.groups_are_entries
        return plugin

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold the pod while its victims are being deleted, until the last one terminates."""
        if not self._evictions.last:
            return SUCCESS
        uid, message = pod.uid, IN_PROGRESS
        if self._has_groups and pod.spec.scheduling_group is not None:
            group, message = group_of(pod, self.handle.lister), IN_PROGRESS_FOR_GROUP
            uid = "" if group is None else group.uid
        last = self._evictions.last.get(uid)
        if last is None:
            return SUCCESS
        if not self.handle.release.holds_preemptor_to_the_end:
            return unresolvable(message)
        current = self.handle.lister.get("Pod", last.namespace, last.name)
        if current is None or current.uid != last.uid or current.is_terminating:
            return SUCCESS
        return unresolvable(message)

    def events_to_register(self) -> Sequence[EventWithHint]:
        waits = self._is_async and release_of(self).preemption_waits_for_deletes
        return (wait_for(POD, ActionType.Delete, after_pod_deleted),) if waits else ()

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        metrics = self.handle.metrics
        metrics.preemption_attempts.count += 1
        if metrics.preemptions is None:
            return self._post_filter(state, pod, diagnosis)
        over = metrics.preemptions.evaluating(BY_POD)
        result, status = self._post_filter(state, pod, diagnosis)
        over(status.code.name)
        return result, status

    def _post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        refusal = self._why_not_eligible(pod, diagnosis)
        if refusal:
            return PostFilterResult(), unschedulable(f"preemption: {refusal}")
        if not diagnosis.has(Code.Unschedulable):
            nodes = self.handle.table.node_count
            if self._useless is None or self._useless[0] != nodes:
                account = Preemption(reasons=Counter({NOT_HELPFUL: nodes}))
                text = no_node_available(nodes, account.reasons)
                status = unschedulable(f"preemption: {text}")
                self._useless = (nodes, PostFilterResult("", account), status)
            return self._useless[1:]
        return self._preempt(state, pod, diagnosis)

    def _preempt(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        account, chosen = self._search(state, pod, diagnosis)
        if isinstance(chosen, Status):
            return PostFilterResult(None, account), _told(chosen)
        if chosen is None:
            return PostFilterResult("", account), self._none_helped(account.reasons)
        account.chosen = chosen
        preemptions = self.handle.metrics.preemptions
        if preemptions is not None:
            preemptions.chosen(BY_POD, chosen.pdb_violations)
        if state.group is not None and self.handle.group_options.evict_for_whole_groups:
            account.is_held = True
            evict = partial(self._evictions.evict, pod, chosen, account)
            held_evictions(state.group).append(HeldEviction(pod, chosen, evict))
            return PostFilterResult(chosen.node_name, account), self._found(chosen)
        if not self._is_async and state.group is None:  # the nodes of a group are on trial
            status = self._evictions.evict_within_attempt(pod, chosen, account)
            if not status.is_success:
                return PostFilterResult(None, account), _told(status)
            return PostFilterResult(chosen.node_name, account), self._found(chosen)
        self._evictions.evict(pod, chosen, account, is_on_trial=state.group is not None)
        return PostFilterResult(chosen.node_name, account), self._found(chosen)

    def _found(self, chosen: Victims) -> Status:
        """Success, with or without a text, depending on the release."""
        if not self.handle.release.tells_preemption:
            return SUCCESS
        text = f"preemption: found a potential placement for pod on node {chosen.node_name}"
        return Status(Code.Success, (f"{text}, preempting {len(chosen.pods)} victims",))

    def _none_helped(self, reasons: Counter[str]) -> Status:
        """Status if preemption helps on no node, for these reasons."""
        nodes, given = self.handle.table.node_count, tuple(reasons.items())
        if self._last_refusal[0] != nodes or self._last_refusal[1] != given:
            status = _told(unschedulable(no_node_available(nodes, reasons)))
            self._last_refusal = (nodes, given, status)
        return self._last_refusal[2]

    def _why_not_alone(self, pod: Pod) -> str:
        """Reason why a member of a pod group must not preempt for itself; empty when it may."""
        if self._has_placements:
            group = group_of(pod, self.handle.lister)
            if group is None:
                return NO_GROUP
            if group.spec.scheduling_constraints is not None:
                return BY_PLACEMENT
        return BY_GROUP if self._has_groups else ""

    def _why_not_eligible(self, pod: Pod, diagnosis: Diagnosis) -> str:
        """Reason why the pod must not preempt others; empty when it may."""
        refusal = self._why_not_alone(pod) if pod.spec.scheduling_group is not None else ""
        if refusal:
            return refusal
        if pod.spec.preemption_policy == "Never":
            return NEVER
        table = self.handle.table
        row = table.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
        if row is None or not table.live[row]:
            return ""
        if diagnosis.status_of(row).code is Code.UnschedulableAndUnresolvable:
            return ""
        leaving = any(
            other.priority < pod.priority and is_preempted(other)
            for other in table.pods[row].values()
        )
        return TERMINATING if leaving else ""

    def _search(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[Preemption, Victims | Status | None]:
        """Find the node with the least important victims; None if there is no such node, a Status for an error.

        If only amounts matter, the kernel tries the nodes together; otherwise, and with extenders, which get the
        victims on every candidate, they are tried one by one. The arguments limit the number of nodes.
        """
        table = self.handle.table
        rows = diagnosis.rows_with(Code.Unschedulable)
        account = Preemption()
        if table.node_count != len(rows):
            account.reasons[NOT_HELPFUL] = table.node_count - len(rows)
        offset = self.handle.random.randrange(len(rows))
        has_units = self._preempts_once and self.handle.pod_groups.has_placed()
        if not has_units and not table.priorities.may_have_below(pod.priority):
            account.reasons[NO_VICTIMS] = len(rows)
            account.fill_in = partial(reject_without_victims, table, rows, offset)
            return account, None
        percentage = len(rows) * self._min_percentage // 100
        wanted = min(max(percentage, self._min_absolute), len(rows))
        filters, budgets = room_filters(self.handle), self._budgets.get(self.handle.lister)
        extenders = self.handle.extenders
        if extenders is not None and not extenders.are_interested(pod):
            extenders = None
        search = UnitByUnit if has_units else OneByOne
        one_by_one = search(filters, state, pod, table, budgets, wanted)
        one_by_one.by_place = self._by_place
        rule = None
        if isinstance(one_by_one, UnitByUnit):
            one_by_one.units_of = self._units_of
        elif extenders is None and kernel.compiled is not None:
            rule = filters.demands(state, pod, diagnosis)
        if rule is None:
            if not has_units:
                one_by_one.beside_room = self._beside_room(filters, state, pod, budgets)
            chosen = one_by_one.search(rows, offset, account)
            if extenders is not None and isinstance(chosen, Victims):
                chosen = _ask(extenders, pod, account)
            return account, chosen
        account.fill_in = partial(one_by_one.fill_in, rows, offset)
        reserved = filters.reserved(pod, table)
        found = self._by_amounts(pod, rule, budgets, reserved).search(rows, offset, wanted)
        if isinstance(found, Victims):
            return account, found
        account.reasons.update(found)
        return account, None

    def _units_of(self, pods: Sequence[Pod]) -> list[VictimUnit]:
        """The units of the pods of a node, with members on other nodes of groups that are only preempted as a whole."""
        lister, groups = self.handle.lister, self.handle.pod_groups
        units = victim_units(pods, lister, by_group=True)
        for unit in units:
            name = unit.group
            if name is not None:
                members = groups.members(("PodGroup", *name))
                unit.pods = placed_by_name(members)
        return units

    def _beside_room(
        self, filters: RoomFilters, state: CycleState, pod: Pod, budgets: Budgets
    ) -> BesideRoom | None:
        beside = filters.beside_room(state, pod) if kernel.compiled is not None else None
        if beside is None or not beside[0].is_codable:
            return None
        table, (rule, others) = self.handle.table, beside
        reserved = filters.reserved(pod, table)
        by_amounts = self._by_amounts(pod, rule, budgets, reserved)
        return BesideRoom(filters, state, pod, table, reserved, by_amounts, others)

    def _by_amounts(
        self, pod: Pod, rule: FitRule, budgets: Budgets, reserved: Reserved
    ) -> ByAmounts:
        table = self.handle.table
        if self._matrix is None:
            self._matrix = PodMatrix(table, self._by_place)
        more = reserved.usage_beside(pod) if reserved else None
        return ByAmounts(table, self._matrix, rule, pod.priority, budgets, more)

    def post_filter_group(
        self, group: PodGroup, pods: Sequence[Pod], trial: GroupTrial, try_group: TryGroup
    ) -> tuple[Sequence[Pod], Status]:
        table, order = self.handle.table, self.handle.node_order
        rows = table.numbers(table.live_rows) if order is None else order()
        there = [pod for row in rows.tolist() for pod in table.pods[row].values()]
        units = victim_units(there, self.handle.lister, self._preempts_once)
        budgets = self._budgets.get(self.handle.lister)
        if self._preempts_once:
            victims, status = self._preempt_once(group, pods, units, trial, try_group)
        else:
            victims, status = preempt_for_group(
                group, pods, units, budgets, table, trial, try_group
            )
        if victims:
            preemptor = GroupPreemptor(**asdict(group), scheduler_name=pods[0].scheduler_name)
            self._evictions.delete(victims, preemptor, pods)
        if self.handle.metrics.preemptions is not None:
            self.handle.metrics.preemptions.attempts.labels(status.code.name).count += 1
        return victims, status

    def _preempt_once(
        self,
        group: PodGroup,
        pods: Sequence[Pod],
        units: Sequence[VictimUnit],
        trial: GroupTrial,
        try_group: TryGroup,
    ) -> tuple[Sequence[Pod], Status]:
        """The victims by the rules of v1.37, with its texts; none while those of an earlier attempt are terminating."""
        if self._forbids(group, pods):
            return (), unschedulable(f"{FOR_GROUP}: {NEVER}")
        if self._waits_for_victims(group, pods, units):
            return (), Status(Code.Success, (f"{FOR_GROUP}: {ONGOING}",))
        preemptions, budgets = (
            self.handle.metrics.preemptions,
            self._budgets.get(self.handle.lister),
        )
        assert preemptions is not None, "there are metrics of pod groups"
        over = preemptions.evaluating(BY_POD_GROUP)
        left, violations, status = preempt_once_for_group(group, units, budgets, trial, try_group)
        over(status.code.name)
        preemptions.chosen(BY_POD_GROUP, violations, sum(unit.group is not None for unit in left))
        victims = [pod for unit in left for pod in unit.pods]
        text = f"found a placement for podgroup, preempting {len(victims)} victims"
        text = text if status.is_success else status.message
        return victims, Status(status.code, (f"{FOR_GROUP}: {text}",)) if text else status

    def _forbids(self, group: PodGroup, pods: Sequence[Pod]) -> bool:
        """Whether the group must not preempt, by its own policy or, if it has none, by the policy of a member."""
        if self.handle.feature_gates.enabled("PodGroupPreemptionPolicy"):
            return group.spec.preemption_policy == "Never"
        return any(pod.spec.preemption_policy == "Never" for pod in pods)

    @staticmethod
    def _waits_for_victims(
        group: PodGroup, pods: Sequence[Pod], units: Sequence[VictimUnit]
    ) -> bool:
        """Whether victims of lower priority leave a node that a member is nominated to."""
        nominated, priority = {pod.nominated_node_name for pod in pods}, group.spec.priority or 0
        return any(
            pod.node_name in nominated and is_preempted(pod)
            for unit in units
            if unit.priority < priority
            for pod in unit.pods
        )


def _told(status: Status) -> Status:
    """The status, with `subject` before its message."""
    return Status(status.code, (f"preemption: {status.message}",)) if status.message else status


def _ask(extenders: PreemptionExtenders, pod: Pod, account: Preemption) -> Victims | Status:
    """The best of the candidates returned by the extenders, which may have other victims and nodes."""
    try:
        left = extenders.choose_victims(pod, account.candidates)
    except ExtenderError as error:
        return failure(error)
    return best_candidate(left.values()) if left else unschedulable(NO_CANDIDATE)


def is_preempted(pod: Pod) -> bool:
    """Whether the pod is being deleted because the scheduler preempted it."""
    return pod.is_terminating and any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in pod.status.conditions or ()
    )


@called_for(EACH_SPEC)
def after_pod_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    """The plugin has no events of its own: those of the plugins that refused the pod apply."""
    return Hint.SKIP
