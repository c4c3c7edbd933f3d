"""GroupCycle: the path of a pod group, from the queue to the nodes of its members. `cycle.py` has the path of a pod.

The members are tried one after another, each as if the ones before it were on their nodes already. Then all of that is
undone, and either all members that found a node are bound, or none.

Mirrors pkg/scheduler/schedule_one_podgroup.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

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
from ..framework.answer_checks import check_pair
from ..framework.placement import PodGroupInfo
from ..queue.queued_pod import QueuedPodInfo
from ..runtime import ProfileRuntime
from ..runtime.plugin_failures import failed as failed_plugin
from .attempt import Attempt, Outcome
from .binding import Binding
from .failure import note_failure
from .group_algorithm import GroupAlgorithm, GroupTools
from .group_attempt import (
    GroupAttempt,
    GroupResult,
    MemberTrial,
    WorkloadPreemption,
)

NO_PREEMPTION = "default preemption plugin is not registered, workload aware preemption is disabled"
NOT_WITH_CONSTRAINTS = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


class GroupCycle:
    """Schedules one pod group at a time."""

    _algorithm = GroupAlgorithm

    on_members: Callable[[Sequence[Pod]], None] | None = None
    """Called with the members of a group that were popped together, before they are tried."""

    def __init__(self, tools: GroupTools) -> None:
        self._tools = tools

    def schedule(self, first: QueuedPodInfo) -> GroupAttempt:
        """The scheduling cycle of the group of a pod that was popped."""
        queued = self._take_members(first)
        popped = [info.pod for info in queued]
        if self.on_members is not None:
            self.on_members(popped)
        member = queued[0].pod if queued else first.pod
        fault = self._fault(queued)
        if fault is not None:
            account = GroupAttempt(_group_of(member, queued), GroupResult(fault), popped=popped)
            self._submit(account, queued)
            self._end(first, account, is_faulty=True)
            return account
        queued = [info for info in queued if not self._skip(info)]
        group = _group_of(member, queued)
        if queued:
            account = self._try_group(group, queued, popped)
        else:
            account = GroupAttempt(group, GroupResult(SUCCESS), popped=popped)
        self._end(first, account, is_faulty=False)
        return account

    def _try_group(
        self, group: PodGroupInfo, queued: Sequence[QueuedPodInfo], popped: Sequence[Pod]
    ) -> GroupAttempt:
        """Find the nodes of the members; then evict the victims, and bind the members or fail them."""
        parts, started = self._tools.parts, perf_counter()
        try:
            with parts.plugin_executor.held():  # no pod is evicted while the nodes are on trial
                account = self._find_nodes(group, queued)
            account.popped = popped
            self._evict(account.result)
            self._submit(account, queued)
        finally:
            parts.cache.end_trial()
        duration = parts.metrics.group_duration.labels(
            account.outcome, queued[0].pod.scheduler_name
        )
        duration.observe(perf_counter() - started)
        self._tools.conditions.set(account)
        return account

    def _take_members(self, first: QueuedPodInfo) -> list[QueuedPodInfo]:
        """Take the waiting members out of the queue, in the order in which they are tried."""
        name = pod_group_of(first.pod)
        assert name is not None, "a pod of a group"
        members = self._tools.parts.cache.pod_groups.members(
            ("PodGroup", first.pod.namespace, name)
        )
        found, nominator = [first], self._tools.parts.queue.nominator
        for pod in members:
            if not pod.node_name and pod.name != first.pod.name:
                info = self._tools.parts.queue.pop_specific(pod)
                if info is not None:
                    found.append(info)
        for info in found:
            nominator.leave_queue(info.pod)
        return sorted(found, key=lambda info: (-info.pod.priority, info.turn, info.pod.key))

    def _fault(self, queued: Sequence[QueuedPodInfo]) -> Status | None:
        """The error of a group that cannot be tried; None if it can."""
        wanted = queued[0].pod.scheduler_name
        for info in queued:
            if info.pod.scheduler_name != wanted:
                text = "all pods in a single pod group should have the same .spec.schedulerName set, got: "
                return failure(f'{text}"{info.pod.scheduler_name}" and "{wanted}"')
        return None

    def _skip(self, info: QueuedPodInfo) -> bool:
        """Drop a member that is being deleted or has a node; returns whether it did."""
        if self._tools.cycle.skip(info.pod):
            self._tools.parts.queue.done(info.pod.uid)
            return True
        self._tools.parts.settings.observer("popped", info.pod, f"attempt {info.attempts}")
        return False

    def _find_nodes(
        self,
        group: PodGroupInfo,
        queued: Sequence[QueuedPodInfo],
        makes_room: bool = True,
        tells_all: bool = False,
    ) -> GroupAttempt:
        """Find the nodes of the members, or the pods to preempt. Members stay on trial only if the group fits."""
        profile = self._tools.parts.profiles[queued[0].pod.scheduler_name]
        self._tools.parts.cache.snapshot.update()
        both_ways = profile.handle.group_options.anti_affinity_both_ways
        counts = both_ways or profile.handle.release.counts_terms_on_trial
        trial = self._tools.parts.cache.begin_trial(hides_terms=not counts)
        run = self._algorithm(self._tools, profile, group, queued, CycleState(), trial)
        started = perf_counter()
        account = run.find_nodes(makes_room, tells_all)
        self._tools.parts.metrics.group_algorithm.observe(perf_counter() - started)
        is_refused = account.status.code is Code.Unschedulable
        if makes_room and self._tools.preempts and is_refused:
            self._make_room(run, account)
        if not account.status.is_success:
            self._tools.parts.cache.end_trial()
        return account

    def _make_room(self, run: GroupAlgorithm, account: GroupAttempt) -> None:
        """Preempt pods anywhere in the cluster for a group that does not fit."""
        preemption = account.preemption = self._preempt(run)
        status, result = preemption.status, account.result
        if status.is_success:
            result.waits_for_preemption = True
        elif status.code is Code.Error:
            result.status = status
        else:
            told = result.status
            result.status = Status(told.code, (*told.reasons, status.message), told.plugin)

    def _preempt(self, run: GroupAlgorithm) -> WorkloadPreemption:
        plugins = (
            p for p in run.profile.plugins.values() if isinstance(p, PodGroupPostFilterPlugin)
        )
        plugin = next((plugin for plugin in plugins if plugin.helps_groups), None)
        if plugin is None:
            return WorkloadPreemption(unschedulable(NO_PREEMPTION))
        found = self._tools.parts.cluster.get("PodGroup", run.group.namespace, run.group.name)
        if not isinstance(found, PodGroup):
            text = f'podgroup.scheduling.k8s.io "{run.group.name}" not found'
            return WorkloadPreemption(failure(f"failed to get pod group object: {text}"))
        if found.topology_keys:
            return WorkloadPreemption(unschedulable(NOT_WITH_CONSTRAINTS))
        return run_group_post_filter(plugin, found, run)

    def _evict(self, result: GroupResult) -> None:
        """Carry out the evictions that were held until it was known that the group fits without the victims."""
        for held in result.held if result.waits_for_preemption else ():
            held.evict()
            self._tools.cycle.decider.note_victims(held.pod, held.victims)

    def _submit(self, account: GroupAttempt, queued: Sequence[QueuedPodInfo]) -> None:
        """Bind the members that have a node when the group fits; fail the others, each for its reason.

        Permit is called when all members are assumed, so it need not hold those that come first; kube-scheduler calls
        it for each member in turn, and ends with the same members bound.
        """
        tools, result = self._tools, account.result
        complete(result, queued)
        bindings: list[Binding] = []
        for member in result.members:
            member.state.group = None
            self._settle(member, account)
            member.attempt.group = account
            account.attempts.append(member.attempt)
            own = tools.parts.profiles[member.attempt.pod.scheduler_name]
            path = own, member.state, member.queued, member.attempt
            binding = tools.cycle.assume(*path) if member.attempt.status is None else None
            if binding is not None:
                bindings.append(binding)
            elif not member.attempt.was_handled:
                self._fail(*path)
        permitted = [binding for binding in bindings if self._permits(binding)]
        for binding in permitted:
            tools.cycle.begin(binding)

    def _permits(self, binding: Binding) -> bool:
        """Run Permit for an assumed member; False if its attempt failed."""
        if self._tools.cycle.permit(binding):
            return True
        if not binding.attempt.was_handled:
            self._fail(binding.profile, binding.state, binding.queued, binding.attempt)
        return False

    def _fail(
        self, profile: ProfileRuntime, state: CycleState, queued: QueuedPodInfo, attempt: Attempt
    ) -> None:
        note_failure(profile, state, attempt)
        self._tools.cycle.failure.requeue(queued, attempt)

    def _settle(self, member: MemberTrial, account: GroupAttempt) -> None:
        """Derive the result of a member from the result of its group."""
        result = account.result
        if result.status.code is Code.Error:
            is_own = member.attempt.outcome is Outcome.ERROR and member.attempt.status is not None
            own = member.attempt.status if is_own else None
            member.fail(own or result.status, "")
        elif member.has_node:
            if result.waits_for_preemption:
                member.fail(result.status, member.node_name)
            elif not result.status.is_success:
                member.reject_with_group()
        elif member.needs_preemption and not result.waits_for_preemption:
            member.reject_with_group()

    def _end(self, first: QueuedPodInfo, account: GroupAttempt, is_faulty: bool) -> None:
        """End the attempt of the group of `first`; one that `is_faulty` was not tried."""

    def judge(self, pods: Sequence[Pod], makes_room: bool, tells_all: bool) -> GroupAttempt:
        """Result of an attempt of the group whose waiting members are `pods`, in the order of the attempt.

        Nothing is bound or requeued. If it `makes_room`, preemption goes to the cluster; if it `tells_all`, members are
        tried on every placement. Questions go through `GroupInquiry`.
        """
        queued = [QueuedPodInfo(pod, timestamp=0) for pod in pods]
        group = _group_of(pods[0], queued)
        fault = self._fault(queued)
        if fault is not None:
            account = GroupAttempt(group, GroupResult(fault))
        else:
            try:
                with self._tools.parts.plugin_executor.held():
                    account = self._find_nodes(group, queued, makes_room, tells_all)
            finally:
                self._tools.parts.cache.end_trial()
        complete(account.result, queued)
        for member in account.result.members:
            self._settle(member, account)
        return account


def _group_of(pod: Pod, queued: Sequence[QueuedPodInfo]) -> PodGroupInfo:
    name = pod_group_of(pod)
    assert name is not None, "a pod of a group"
    return PodGroupInfo(pod.namespace, name, [info.pod for info in queued])


def complete(result: GroupResult, queued: Sequence[QueuedPodInfo]) -> None:
    """Add the members that were not tried, because of an error or for want of a placement; they fail with the group."""
    for info in queued[len(result.members) :]:
        attempt = Attempt(info.pod, number=info.attempts)
        attempt.fail(result.status, None)
        result.members.append(MemberTrial(info, attempt, CycleState(), was_tried=False))


def run_group_post_filter(
    plugin: PodGroupPostFilterPlugin, group: PodGroup, run: GroupAlgorithm
) -> WorkloadPreemption:
    """Run PodGroupPostFilter of one plugin."""
    try:
        answer = plugin.post_filter_group(group, run.group.pods, run.trial, run)
        expected = "a tuple of a list of Pods and a Status"
        victims, status = check_pair(answer, Sequence, Status, expected)
    except Exception as error:  # a plugin may raise anything
        doing = "running PodGroupPostFilter plugin {}"
        broken = failed_plugin(doing, plugin, error, "post_filter_group")
        return WorkloadPreemption(broken.status)
    return WorkloadPreemption(status, victims)
