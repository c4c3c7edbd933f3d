"""GangScheduling: the pods of a PodGroup with a gang policy are bound when enough of them have a node.

Mirrors pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go. Off unless a profile enables it.
The arguments are ours: kube-scheduler has none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Self

from ...api.pod import Pod, PodSpec
from ...api.pod_groups import PodGroup, pod_group_of
from ...framework import (
    SUCCESS,
    CycleState,
    EventWithHint,
    Handle,
    PermitPlugin,
    PreEnqueuePlugin,
    Settled,
    Status,
    failure,
    typed_args,
    unresolvable,
    unschedulable,
    wait,
)
from ...framework.events import (
    POD,
    POD_GROUP,
    ActionType,
    Affected,
    called_for,
    required,
    wait_for,
)
from ...framework.group_options import GroupOptions
from ...framework.handle import release_of
from ...framework.interface import NOT_SETTLED, PlacementFeasiblePlugin
from ...framework.lister import group_of

# Queueing hints: events after which a pod that waits for its gang may fit.
# Mirrors the queueing hints of pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go.


def events(affected: Affected) -> Sequence[EventWithHint]:
    """Events that GangScheduling waits for. Groups never change, and a pod keeps its group.

    `affected` finds the pods that PreEnqueue may admit after a pod was added.
    """
    return (
        wait_for(POD, ActionType.Add, helps=called_for(affected)(after_pod_added)),
        wait_for(POD_GROUP, ActionType.Add, helps=after_pod_group_added),
    )


def after_pod_added(pod: Pod, before: None, added: Pod) -> bool:
    """Hint: another member was added, which may complete the gang."""
    group = pod_group_of(pod)
    return group is not None and added.namespace == pod.namespace and pod_group_of(added) == group


def after_pod_group_added(pod: Pod, before: PodGroup | None, added: PodGroup) -> bool:
    """Hint: the PodGroup of the pod was added."""
    return added.namespace == pod.namespace and added.name == pod_group_of(pod)


def after_pod_group_updated(pod: Pod, old: Any, after: PodGroup) -> bool:
    """Hint: the gang may be complete, because it needs fewer pods."""
    before = required(PodGroup, old)
    is_smaller = bool(before.gang and after.gang) and after.min_count < before.min_count
    return is_smaller and after_pod_group_added(pod, before, after)


TIMEOUT_S = 5 * 60
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
WAITING = "waiting for minCount pods from a gang to be scheduled"
WAIT = wait(WAITING)


class GangScheduling(PreEnqueuePlugin, PermitPlugin, PlacementFeasiblePlugin):
    """Holds pods back until the gang is complete in the queue, then until enough of it has a node."""

    name = "GangScheduling"

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        handle.group_options = typed_args(GroupOptions, args)
        return super().from_args(None, handle)

    def events_to_register(self) -> Sequence[EventWithHint]:
        found = events(self._affected)
        if not release_of(self).groups_are_entries:
            return found
        return (*found, wait_for(POD_GROUP, ActionType.Update, helps=after_pod_group_updated))

    def _affected(self, old: Any, new: Any) -> Collection[str]:
        """The keys of the pods that may be admitted after a new pod: its gang, if that is complete now."""
        group = group_of(new, self.handle.lister) if isinstance(new, Pod) else None
        if group is None:
            return ()
        key = ("PodGroup", new.namespace, group.name)
        if self.handle.pod_groups.member_count(key) < group.min_count:
            return ()
        return [pod.key for pod in self.handle.pod_groups.members(key)]

    def settled(self, spec: PodSpec) -> Settled:
        return NOT_SETTLED if spec.scheduling_group is not None else Settled(commits=False)

    def pre_enqueue(self, pod: Pod) -> Status:
        name = pod_group_of(pod)
        if name is None:
            return SUCCESS
        group = group_of(pod, self.handle.lister)
        if group is None:
            return unresolvable(
                f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            )
        known = self.handle.pod_groups.member_count(("PodGroup", pod.namespace, name))
        if known < group.min_count:
            return unresolvable(TOO_FEW)
        return SUCCESS

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        name = pod_group_of(pod)
        if name is None:
            return SUCCESS, 0
        group = group_of(pod, self.handle.lister)
        if group is None:
            # An error, so that the pod is requeued and PreEnqueue holds it.
            where = f"{pod.namespace}/{name}"
            return failure(
                f'failed to get podGroup {where}: podgroup.scheduling.k8s.io "{name}" not found'
            ), 0
        if group.min_count == 0:
            return SUCCESS, 0
        key = ("PodGroup", pod.namespace, name)
        if self.handle.pod_groups.placed_count(key) < group.min_count:
            if state.group is None:  # in the cycle of the group, its members are being tried
                self.handle.activate_members(self.handle.pod_groups.waiting(key))
            return WAIT, TIMEOUT_S
        if state.group is not None:
            return SUCCESS, 0
        for held in self.handle.waiting_pods or ():
            if held.pod.namespace == pod.namespace and pod_group_of(held.pod) == name:
                held.allow(self.name)
        return SUCCESS, 0

    def placement_feasible(self, group: PodGroup, placed: int, left: int) -> Status:
        needed = group.min_count if group.gang is not None else 1
        counts = f"{placed} scheduled, {left} remaining"
        if placed + left < needed:
            return unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
        if placed < needed:
            return wait(f"minCount ({needed}) is not yet satisfied: {counts}")
        return SUCCESS
