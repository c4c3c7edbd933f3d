"""Coscheduling: the pods of a labelled group are bound together or not at all.

The label `pod-group.scheduling.sigs.k8s.io/name` or `scheduling.x-k8s.io/pod-group` names the group of a pod. The
number that must run together is in the PodGroup of that name (scheduling.x-k8s.io/v1alpha1) or, for groups by the first
label without such an object, in the label `.../min-available`. Off unless a profile enables it. As QueueSort it has
the order of scheduler-plugins: pkg/coscheduling/coscheduling.go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Self

import msgspec
import numpy as np

from ..api.custom import CustomObject
from ..api.pod import Pod
from ..api.pod_groups import labelled_group_of, min_available
from ..api.resources import is_scalar
from ..errors import InputError
from ..framework import (
    SUCCESS,
    CustomResource,
    CycleState,
    EventWithHint,
    Handle,
    Hint,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ReservePlugin,
    Status,
    typed_args,
    unresolvable,
    unschedulable,
    wait,
)
from ..framework.cycle_state import PODS_TO_ACTIVATE
from ..framework.diagnosis import Diagnosis
from ..framework.events import NODE, POD, ActionType, required, wait_for
from ..framework.interface import QueuedPod
from ..table import NodeTable

GroupKey = tuple[str, str, str]

POD_GROUPS = CustomResource("podgroups.v1alpha1.scheduling.x-k8s.io", "PodGroup")
REMEMBER_S = 5 * 60
"""Seconds after which a group that did not fit is retried even if no change was found."""


class CoschedulingArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The arguments of scheduler-plugins' Coscheduling, and this plugin's own name for the first of them."""

    api_version: str = ""
    kind: str = "CoschedulingArgs"
    permit_waiting_time_seconds: float | None = None
    permit_timeout_s: float | None = msgspec.field(default=None, name="permit_timeout_s")
    pod_group_backoff_seconds: int = 0
    pod_group_reject_percentage: int | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
            ("podGroupRejectPercentage", self.pod_group_reject_percentage),
        ):
            if value:
                problem = (
                    "expected none, as a group that did not fit waits until the cluster has changed"
                )
                raise InputError(f"args: {name}: {problem}; got {value}")
        if self.kind != "CoschedulingArgs":
            raise InputError(f'args: kind: expected CoschedulingArgs; got "{self.kind}"')
        if None not in (self.permit_waiting_time_seconds, self.permit_timeout_s):
            both = "permitWaitingTimeSeconds or permit_timeout_s"
            raise InputError(f"args: expected {both}; got both")
        if self.timeout_s < 0:
            problem = f"expected zero or more; got {self.timeout_s:g}"
            raise InputError(f"args: permitWaitingTimeSeconds: {problem}")

    @property
    def timeout_s(self) -> float:
        """Seconds that a member waits for the others, unless its group has its own timeout."""
        given = (self.permit_waiting_time_seconds, self.permit_timeout_s)
        return next((each for each in given if each is not None), 60)


class Coscheduling(
    QueueSortPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
):
    """Places one group after the other: at most one incomplete group holds resources.

    So no two groups can wait for each other's nodes. The turn of a group begins with the first member that waits. It
    ends when enough members have a node, when too few members can still get one, or when a member waited too long. In
    the last two cases the waiting members are rejected, and the group is retried after a change of the cluster. Then
    the next group has its turn.
    """

    name = "Coscheduling"
    custom_resources = (POD_GROUPS,)

    def __init__(self, permit_timeout_s: float = 60) -> None:
        self._permit_timeout_s = permit_timeout_s
        self._holder: GroupKey | None = None
        self._waiting: set[str] = set()
        """Members of the holder that wait, by uid."""
        self._failed: set[str] = set()
        """Members of the holder that found no node in this turn, by uid."""
        self._denied: dict[str, Pod] = {}
        """Members of other groups, which were refused during this turn, by uid."""
        self._did_not_fit: dict[GroupKey, GroupSituation] = {}
        self._gave_up: dict[GroupKey, float] = {}
        """Time of the last turn that did not complete a group; such a group comes after those that wait since."""

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        plugin = cls(typed_args(CoschedulingArgs, args).timeout_s)
        plugin.handle = handle
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        change = ActionType.UpdatePodLabel | ActionType.UpdatePodScaleDown
        change |= ActionType.UpdatePodToleration
        return (
            wait_for(POD, ActionType.Add, helps=self._after_pod_added),
            wait_for(POD, ActionType.Delete, helps=self._after_pod_left),
            wait_for(POD, change, helps=self._after_pod_changed),
            wait_for(NODE, ActionType.Add | ActionType.Update),
            wait_for(POD_GROUPS.name, ActionType.Add | ActionType.Update, self._after_pod_group),
            wait_for(POD_GROUPS.name, ActionType.Delete, self._after_pod_group),
        )

    def _after_pod_group(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Hint: the required number of members may have changed."""
        changed = required(CustomObject, new or old)
        group = _group(pod)
        is_own = group is not None and group[1:] == (changed.namespace, changed.name)
        return Hint.QUEUE if is_own else Hint.SKIP

    def _after_pod_added(self, pod: Pod, before: None, added: Pod) -> bool:
        """Hint: another member was added, which may complete the group."""
        return _group(added) == _group(pod)

    def _after_pod_changed(self, pod: Pod, before: Pod | None, after: Pod) -> bool:
        """Hint: a member may fit now, or a pod on a node may need less."""
        return bool(after.node_name) or _group(after) == _group(pod)

    def _after_pod_left(self, pod: Pod, gone: Pod, after: None) -> bool:
        """Hint: a pod was deleted from its node. Resources that a group only reserved during its turn do not count."""
        group = _group(gone)
        if group is not None:
            if group == _group(pod):
                return False
            if self._still_wants_a_node(gone) and not self._is_complete(group, gone):
                return False
        scarce = {name for name in pod.requests if is_scalar(name)}
        return not (scarce and scarce.isdisjoint(gone.requests))

    def sort_key(self, queued: QueuedPod) -> tuple[int, float, str]:
        """By priority, then by the time of the group or of the first attempt of other pods, then by name."""
        pod = queued.pod
        since = queued.initial_attempt_timestamp
        since = queued.timestamp if since is None else since
        return -pod.priority, self._group_time(pod, since), f"{pod.namespace}/{pod.name}"

    def _group_time(self, pod: Pod, since: float) -> float:
        """Time of the group's last failure, or of the creation of its PodGroup; `since` without one."""
        group = _group(pod)
        if group is None:
            return since
        failed = self._gave_up.get(group)
        if failed is not None:
            return failed
        found = self.handle.custom_objects(POD_GROUPS.name).get(group[2], group[1])
        created = found.creation_timestamp if found is not None else None
        return since if created is None else _seconds(created)

    def pre_enqueue(self, pod: Pod) -> Status:
        group = _group(pod)
        return SUCCESS if group is None else self._are_enough(group, pod)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        group = _group(pod)
        if group is None or self._is_complete(group, pod):
            return SUCCESS
        if self._holder not in (None, group):
            assert self._holder is not None
            self._denied[pod.uid] = pod
            return unresolvable(f"group {self._holder[2]} is being placed")
        if self._holder is None and self._is_known_not_to_fit(group):
            return unresolvable(f"group {group[2]} did not fit, and nothing has changed since")
        return self._are_enough(group, pod)

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        group = _group(pod)
        if group is not None and self._holder == group:
            self._failed.add(pod.uid)
            if self._can_still_make_it(group, pod):
                return PostFilterResult(), unschedulable()
            self._give_up(group, f"pod {pod.name} of group {group[2]} finds no node")
            self._did_not_fit[group] = self._situation(group)
        return PostFilterResult(), unschedulable()

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        group = _group(pod)
        if group is None or self._holder != group:
            return
        has_waited = pod.uid in self._waiting
        self._waiting.discard(pod.uid)
        is_deleted = not self._still_wants_a_node(pod)
        if is_deleted and self._waiting and self._can_still_make_it(group, pod):
            return
        self._give_up(group, f"pod {pod.name} of group {group[2]} lost its node")
        if has_waited and not is_deleted:  # after a refusal; an error says nothing about room
            self._did_not_fit[group] = self._situation(group, leaving=pod)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        group = _group(pod)
        if group is None:
            return SUCCESS, 0
        if not self._is_complete(group, pod):
            if self._holder is None:
                self._holder = group
                missing = [m for m in self.handle.pod_groups.members(group) if not m.node_name]
                state.read(PODS_TO_ACTIVATE).update({m.key: m for m in missing})
            self._waiting.add(pod.uid)
            return wait(f"group {group[2]} is not complete"), self._timeout_s(group)
        self._release(group)
        self._did_not_fit.pop(group, None)
        self._gave_up.pop(group, None)
        for waiting in self.handle.waiting_pods or ():
            if _group(waiting.pod) == group:
                waiting.allow(self.name)
        return SUCCESS, 0

    def _are_enough(self, group: GroupKey, pod: Pod) -> Status:
        known, needed = self.handle.pod_groups.member_count(group), self._needed(group, pod)
        if needed is None:
            return unresolvable(f"PodGroup {group[2]} is not there")
        if known >= needed:
            return SUCCESS
        return unresolvable(f"group {group[2]} needs {needed} pods; {known} are there")

    def _is_complete(self, group: GroupKey, pod: Pod) -> bool:
        """Whether enough members have a node, including the pod itself during Permit."""
        needed = self._needed(group, pod)
        return needed is not None and self.handle.pod_groups.placed_count(group) >= needed

    def _needed(self, group: GroupKey, pod: Pod) -> int | None:
        """Number of members that must run together; None if it is unknown."""
        found = self._spec_of(group).get("minMember")
        return max(found, 1) if isinstance(found, int) else min_available(pod)

    def _timeout_s(self, group: GroupKey) -> float:
        """Seconds that a member waits for the others."""
        found = self._spec_of(group).get("scheduleTimeoutSeconds")
        return found if isinstance(found, int) and found > 0 else self._permit_timeout_s

    def _spec_of(self, group: GroupKey) -> dict[str, Any]:
        """The spec of the group's PodGroup; empty without one."""
        _, namespace, name = group
        found = self.handle.custom_objects(POD_GROUPS.name).get(name, namespace)
        return found.raw.get("spec") or {} if found is not None else {}

    def _still_wants_a_node(self, pod: Pod) -> bool:
        """Whether the pod is in the cluster, and not on a node there."""
        stored = self.handle.lister.get("Pod", pod.namespace, pod.name)
        return stored is not None and stored.uid == pod.uid and not stored.node_name

    def _can_still_make_it(self, group: GroupKey, pod: Pod) -> bool:
        """Whether enough members are left that have not failed in this turn."""
        members = {member.uid for member in self.handle.pod_groups.members(group)}
        needed = self._needed(group, pod)
        return needed is not None and len(members - self._failed) >= needed

    def _give_up(self, group: GroupKey, why: str) -> None:
        self._gave_up[group] = self.handle.clock.timestamp()
        self._release(group)
        for waiting in self.handle.waiting_pods or ():
            if _group(waiting.pod) == group:
                waiting.reject(self.name, why)

    def _release(self, group: GroupKey) -> None:
        """End the turn of the group, and activate the groups that were held back."""
        if self._holder == group:
            self._holder = None
            self._waiting, self._failed = set(), set()
            denied, self._denied = list(self._denied.values()), {}
            self.handle.activate(denied)

    def _is_known_not_to_fit(self, group: GroupKey) -> bool:
        then = self._did_not_fit.get(group)
        if then is None:
            return False
        now = self._situation(group)
        if now.since - then.since < REMEMBER_S and now.is_like(then):
            return True
        del self._did_not_fit[group]
        return False

    def _situation(self, group: GroupKey, leaving: Pod | None = None) -> GroupSituation:
        members = self.handle.pod_groups.members(group)
        found = GroupSituation(self.handle.table, members, self.handle.clock.monotonic(), leaving)
        found.spec = self._spec_of(group)
        return found


class GroupSituation:
    """Result of a group's turn: the nodes, the amounts taken of them, and its own members.

    `leaving` is a member that is about to leave its node. Situations are compared by amounts, not by pods, so a result
    only holds for a limited time.
    """

    def __init__(
        self, table: NodeTable, members: Sequence[Pod], since: float, leaving: Pod | None
    ) -> None:
        self.since = since
        self.spec: dict[str, Any] = {}
        """The spec of its PodGroup."""
        self._nodes = table.node_changes.version
        self._members = {member.uid: member.spec for member in members if not member.node_name}
        self._pods = table.pod_count.copy()
        self._taken = {name: table.requested[name].copy() for name in table.requested}
        if leaving is not None:
            self._members[leaving.uid] = leaving.spec
            row = table.row_of[leaving.node_name]
            self._pods[row] -= 1
            for name, amount in leaving.usage.items():
                self._taken[name][row] -= amount

    def is_like(self, other: GroupSituation) -> bool:
        """Whether nothing has changed between the two that could make the group fit."""
        return (
            self._nodes == other._nodes
            and self.spec == other.spec
            and self._members == other._members
            and np.array_equal(self._pods, other._pods)
            and all(
                np.array_equal(taken, other._taken.get(name, 0 * taken))
                for name, taken in self._taken.items()
            )
        )


def _group(pod: Any) -> GroupKey | None:
    name = labelled_group_of(pod) if isinstance(pod, Pod) else None
    return None if name is None else ("label", pod.namespace, name)


@lru_cache(maxsize=1024)
def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
