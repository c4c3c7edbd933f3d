"""Coscheduling: the pods of a labelled group are bound together or not at all.

For clusters without PodGroup objects: the labels `pod-group.scheduling.sigs.k8s.io/name` and `.../min-available` say
who belongs together and how many of them must run. Off unless a profile enables it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.pod import Pod
from ..api.pod_groups import labelled_group_of, min_available
from ..framework import (
    PODS_TO_ACTIVATE,
    SUCCESS,
    ActionType,
    ClusterEvent,
    CycleState,
    Diagnosis,
    EventWithHint,
    Hint,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    Status,
    unresolvable,
    unschedulable,
    wait,
)
from ..table import NodeTable

GroupKey = tuple[str, str, str]


class Coscheduling(
    PreEnqueuePlugin, PreFilterPlugin, PostFilterPlugin, ReservePlugin, PermitPlugin
):
    """Places one group after the other: at most one incomplete group holds resources.

    So no two groups can wait for what the other holds. When a member finds no node, or waits too long, the members
    that wait are rejected and the next group has its turn.
    """

    name = "Coscheduling"

    def __init__(self, permit_timeout_s: float = 60) -> None:
        self._permit_timeout_s = permit_timeout_s
        self._holder: GroupKey | None = None
        self._denied: dict[str, Pod] = {}

    def events_to_register(self) -> Sequence[EventWithHint]:
        def same_group(pod: Pod, old: Any, new: Any) -> Hint:
            return Hint.QUEUE if _group(new or old) == _group(pod) else Hint.SKIP

        return [EventWithHint(ClusterEvent("Pod", ActionType.Add | ActionType.Delete), same_group)]

    def pre_enqueue(self, pod: Pod) -> Status:
        group = _group(pod)
        if group is None:
            return SUCCESS
        known, needed = len(self.handle.pod_groups.members(group)), min_available(pod)
        if known >= needed:
            return SUCCESS
        return unresolvable(f"group {group[2]} needs {needed} pods; {known} are there")

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        group = _group(pod)
        if group is None or self._holder in (None, group) or self._is_complete(group, pod):
            return SUCCESS
        assert self._holder is not None
        self._denied[pod.uid] = pod
        return unresolvable(f"group {self._holder[2]} is being placed")

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        group = _group(pod)
        if group is not None and self._holder == group:
            self._give_up(group, f"pod {pod.name} of group {group[2]} finds no node")
        return PostFilterResult(), unschedulable()

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        group = _group(pod)
        if group is not None and self._holder == group:
            self._give_up(group, f"pod {pod.name} of group {group[2]} lost its node")

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        group = _group(pod)
        if group is None:
            return SUCCESS, 0
        if not self._is_complete(group, pod):
            self._holder = group
            missing = [m for m in self.handle.pod_groups.members(group) if not m.node_name]
            state.read(PODS_TO_ACTIVATE).update({m.key: m for m in missing if m.uid != pod.uid})
            return wait(f"group {group[2]} is not complete"), self._permit_timeout_s
        self._release(group)
        for waiting in self.handle.waiting_pods or ():
            if _group(waiting.pod) == group:
                waiting.allow(self.name)
        return SUCCESS, 0

    def _is_complete(self, group: GroupKey, pod: Pod) -> bool:
        """Whether enough members have a node; during Permit the pod itself is among them."""
        return self.handle.pod_groups.placed_count(group) >= min_available(pod)

    def _give_up(self, group: GroupKey, why: str) -> None:
        self._release(group)
        for waiting in self.handle.waiting_pods or ():
            if _group(waiting.pod) == group:
                waiting.reject(self.name, why)

    def _release(self, group: GroupKey) -> None:
        """Let the other groups have their turn."""
        if self._holder == group:
            self._holder = None
            denied, self._denied = list(self._denied.values()), {}
            self.handle.activate(denied)


def _group(pod: Any) -> GroupKey | None:
    name = labelled_group_of(pod) if isinstance(pod, Pod) else None
    return None if name is None else ("label", pod.namespace, name)
