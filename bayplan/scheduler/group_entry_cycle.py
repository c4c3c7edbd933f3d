"""GroupEntryCycle: the path of a pod group that is one entry of the queue, from the queue to the nodes of its members.

Members are tried until enough of them fit, or too few can. They do not preempt one by one: a group that does not fit
preempts as a whole.

Mirrors pkg/scheduler/schedule_one_podgroup.go of v1.37, without composite pod groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from ..api.pod import Pod
from ..api.pod_groups import PodGroup, pod_group_of
from ..framework import (
    SUCCESS,
    Code,
    CycleState,
    PodGroupPostFilterPlugin,
    Status,
    failure,
    unschedulable,
)
from ..framework.interface import PlacementFeasiblePlugin
from ..framework.placement import placed_by_name
from ..queue.group_queue import GroupQueue, QueuedGroupInfo
from ..queue.queued_pod import QueuedPodInfo
from ..runtime.plugin_failures import failed as failed_plugin
from ..table import Ints
from .group_algorithm import GroupAlgorithm
from .group_attempt import (
    UNSCHEDULABLE_GROUP,
    GroupAttempt,
    GroupResult,
    MemberTrial,
    WorkloadPreemption,
)
from .group_cycle import GroupCycle, complete, run_group_post_filter

PREEMPTS = "PreemptLowerPriority"


class ProposedNode(msgspec.Struct, frozen=True):
    """A member, and the node that a run of the algorithm found for it."""

    queued: QueuedPodInfo
    node_name: str


class GroupEntryAlgorithm(GroupAlgorithm):
    """The algorithm for one group; PlacementFeasible plugins, not Permit, determine when enough members have a node."""

    _asks_permit = False
    proposal: Sequence[ProposedNode] | None = None
    """The nodes found in the last trial without the pods that might be preempted; None before a trial."""
    _is_by_row = False
    """Whether only amounts matter: then a pod only affects members on its own node."""
    _states: Mapping[str, CycleState] = {}

    def __call__(self) -> Status:
        account = self.find_nodes(makes_room=False)
        placed = account.result.members if account.status.is_success else ()
        self.proposal = [ProposedNode(m.queued, m.node_name) for m in placed if m.node_name]
        return account.status

    def set_states(self, states: Mapping[str, CycleState]) -> None:
        """Set the states of the members that were tried, by their keys; call it before pods are removed."""
        self._states = states
        self._is_by_row = self._tools.search.fillings(self.profile, self.group) is not None

    def states(self) -> Mapping[str, CycleState]:
        return self._states

    def fits_beside(self, pods: Sequence[Pod]) -> bool:
        """Whether the members still fit on the proposed nodes after `pods` were put back on theirs."""
        assert self.proposal is not None, "the group was tried without the pods"
        concerned = self.proposal
        if self._is_by_row:
            nodes = {pod.node_name for pod in pods}
            concerned = [proposed for proposed in self.proposal if proposed.node_name in nodes]
        assumed: list[tuple[MemberTrial, Pod]] = []
        row_of = self._tools.parts.cache.table.row_of
        for proposed in concerned:
            member = self._begin(proposed.queued)
            row = np.array([row_of[proposed.node_name]], dtype=np.int64)
            pod = self._try_member(member, row, False)
            if pod is None:
                break
            assumed.append((member, pod))
        for member, pod in reversed(assumed):
            self._take_back(member, pod, False)
        return len(assumed) == len(concerned)

    def find_nodes(self, makes_room: bool = True, tells_all: bool = False) -> GroupAttempt:
        account = super().find_nodes(makes_room, tells_all)
        result = account.result
        if result.status.is_success and not result.placed:
            account.result = replace(result, status=unschedulable(UNSCHEDULABLE_GROUP))
            account.chosen = None
        return account

    def _try_members(self, within: Ints | None, makes_room: bool, is_last: bool) -> GroupResult:
        """Try the members one after another, on the rows `within` (None means all), then undo everything."""
        placed = self._tools.parts.cache.pod_groups.placed_count(
            ("PodGroup", self.group.namespace, self.group.name)
        )
        left = len(self._queued)
        status = self._progress(placed, left)
        if status.code is Code.Unschedulable:
            return GroupResult(unschedulable(UNSCHEDULABLE_GROUP, *status.reasons))
        result = GroupResult(status)
        assumed: list[tuple[MemberTrial, Pod]] = []
        for queued in self._queued if status.code is not Code.Error else ():
            member = self._begin(queued)
            result.members.append(member)
            pod = self._try_member(member, within, False)
            if pod is not None:
                assumed.append((member, pod))
                placed += 1
            elif member.attempt.status is not None and not member.attempt.status.is_rejected:
                text = member.attempt.status.message
                status = failure(f"failed to schedule other pod from a pod group: {text}")
                break
            left -= 1
            status = self._progress(placed, left)
            if not status.is_success and status.code is not Code.Wait:
                break
        if status.code is Code.Wait:
            status = unschedulable(UNSCHEDULABLE_GROUP, *status.reasons)
        result.status = status
        keeps = is_last and status.is_success
        for member, pod in reversed(assumed):
            self._take_back(member, pod, keeps)
        return result

    def _progress(self, placed: int, left: int) -> Status:
        """Whether the group fits with `placed` members on nodes; Wait if it may fit once some of the `left` are."""
        found = self._tools.parts.cluster.get("PodGroup", self.group.namespace, self.group.name)
        for plugin in self.profile.plugins.values():
            if isinstance(plugin, PlacementFeasiblePlugin) and isinstance(found, PodGroup):
                try:
                    status = plugin.placement_feasible(found, placed, left)
                except Exception as error:  # a plugin may raise anything
                    doing = "running PlacementFeasible plugin {}"
                    broken = failed_plugin(doing, plugin, error, "placement_feasible")
                    text = f"failed to evaluate placement feasibility: {broken.status.message}"
                    return failure(text)
                if not status.is_success:
                    return status
        return SUCCESS

    def _no_placement(self, tried: int, first: GroupResult) -> GroupResult:
        # kube-scheduler writes the error of a status, without its reasons; the message if there is no error.
        status, *_ = first.status.reasons
        text = f"0/{tried} placements are available, first placement status: {status}"
        return replace(first, status=unschedulable(UNSCHEDULABLE_GROUP, text))


class GroupEntryCycle(GroupCycle):
    """Schedules one pod group at a time, which is one entry of the queue."""

    _algorithm = GroupEntryAlgorithm

    def _take_members(self, first: QueuedPodInfo) -> list[QueuedPodInfo]:
        assert isinstance(first, QueuedGroupInfo), "members of groups are queued with their group"
        for info in first.members:
            self._tools.parts.queue.nominator.leave_queue(info.pod)
        return list(first.members)

    def _end(self, first: QueuedPodInfo, account: GroupAttempt, is_faulty: bool) -> None:
        """Write the condition of a group that could not be tried, and queue the members that have no node."""
        if is_faulty:
            self._tools.conditions.set(account)
        queue = self._tools.parts.queue
        assert isinstance(queue, GroupQueue), "releases with this cycle have a GroupQueue"
        assert isinstance(first, QueuedGroupInfo), "members of groups are queued with their group"
        queue.end_group(first, account.before_preemption or account.status)

    def _fault(self, queued: Sequence[QueuedPodInfo]) -> Status | None:
        """The error of a group whose members, with a node or not, differ in a field that must be equal."""
        pod = queued[0].pod
        name = pod_group_of(pod) or ""
        group = self._tools.parts.cluster.get("PodGroup", pod.namespace, name)
        if not isinstance(group, PodGroup):
            return failure(f'podgroup.scheduling.k8s.io "{name}" not found')
        members = self._tools.parts.cache.pod_groups.members(("PodGroup", pod.namespace, name))
        placed = placed_by_name(members)
        chosen = group.spec.preemption_policy if self._has_policies else None
        policy = (chosen or PREEMPTS) if self._has_policies else _policy_of(pod)
        for other in (*(info.pod for info in queued), *placed):
            text = next(_differences(other, pod, group, policy, self._has_policies), None)
            if text is not None:
                return failure(f"all pods in a single pod group should have the same {text}")
        return None

    @property
    def _has_policies(self) -> bool:
        return self._tools.parts.feature_gates.enabled("PodGroupPreemptionPolicy")

    def _make_room(self, run: GroupAlgorithm, account: GroupAttempt) -> None:
        result = account.result
        account.before_preemption = result.status
        assert isinstance(run, GroupEntryAlgorithm), "this cycle runs a GroupEntryAlgorithm"
        tried = [member for member in result.members if member.was_tried]
        run.set_states({member.attempt.pod.key: member.state for member in tried})
        complete(result, run.queued)
        preemption = account.preemption = self._preempt(run)
        told = preemption.status
        if told.code is Code.Error:
            result.status = told
            return
        result.waits_for_preemption = told.is_success
        before = result.status
        result.status = Status(before.code, (*before.reasons, told.message), before.plugin)

    def _preempt(self, run: GroupAlgorithm) -> WorkloadPreemption:
        """Run the PodGroupPostFilter plugins until one succeeds, or returns a status other than Unschedulable."""
        assert isinstance(run, GroupEntryAlgorithm), "this cycle runs a GroupEntryAlgorithm"
        found = self._tools.parts.cluster.get("PodGroup", run.group.namespace, run.group.name)
        assert isinstance(found, PodGroup), "the group exists while it is tried"
        reasons: list[str] = []
        for plugin in run.profile.plugins.values():
            if not isinstance(plugin, PodGroupPostFilterPlugin) or not plugin.helps_groups:
                continue
            answer = run_group_post_filter(plugin, found, run)
            if answer.status.is_success:
                return replace(answer, nominations=_nominations(run))
            if answer.status.code is not Code.Unschedulable:
                return answer
            reasons += answer.status.reasons
        return WorkloadPreemption(unschedulable(*reasons))

    def _settle(self, member: MemberTrial, account: GroupAttempt) -> None:
        result, key = account.result, member.attempt.pod.key
        if result.status.code is Code.Error:
            super()._settle(member, account)
            return
        nominations: Mapping[str, str] = {}
        if account.preemption is not None:
            nominations = account.preemption.nominations
        if not member.has_node:
            if key in nominations:
                member.attempt.nominated_node_name = nominations[key]
        elif result.waits_for_preemption:
            member.fail(result.status, nominations.get(key))
        elif not result.status.is_success:
            reasons = UNSCHEDULABLE_GROUP, result.status.message
            member.fail(Status(Code.Unschedulable, reasons), "")


def _nominations(run: GroupEntryAlgorithm) -> dict[str, str]:
    """The node that each member waits for; unchanged while victims of an earlier attempt are leaving."""
    if run.proposal is None:
        return {pod.key: pod.nominated_node_name for pod in run.group.pods}
    return {proposed.queued.pod.key: proposed.node_name for proposed in run.proposal}


def _differences(
    other: Pod, first: Pod, group: PodGroup, policy: str, has_policies: bool
) -> Iterator[str]:
    """The fields in which a member differs from its group."""
    priority = group.spec.priority or 0
    if other.scheduler_name != first.scheduler_name:
        yield f'.spec.schedulerName set, got: "{other.scheduler_name}" and "{first.scheduler_name}"'
    if other.priority != priority:
        yield f"priority as the pod group's priority, got {other.priority} and {priority}"
    if _policy_of(other) != policy:
        of_group = " as the pod group's preemption policy" if has_policies else ""
        yield f"preemption policy{of_group}, got {_policy_of(other)} and {policy}"


def _policy_of(pod: Pod) -> str:
    return pod.spec.preemption_policy or PREEMPTS
