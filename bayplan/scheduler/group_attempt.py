"""GroupAttempt: the result of one scheduling cycle of a pod group, by member and by placement; its cause in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..api.pod import Pod
from ..api.pod_groups import PodGroup
from ..framework import Code, CycleState, Status
from ..framework.group_options import HeldEviction
from ..framework.placement import Placement, PodGroupInfo
from ..queue.queued_pod import QueuedPodInfo
from .attempt import Attempt

UNSCHEDULABLE_GROUP = "pod group is unschedulable"
WAITING = "pod group is waiting for preemption to complete"
INSUFFICIENT = "Insufficient "
NO_PLACEMENT = "placements are available"
MAX_NAMED = 2


class MemberTrial(msgspec.Struct):
    """One member in one run of the algorithm: a node for it, or why there is none."""

    queued: QueuedPodInfo
    attempt: Attempt
    state: CycleState
    node_name: str = ""
    """The node the algorithm chose; for a member that needs a preemption, the node to be freed."""
    needs_preemption: bool = False
    permit: Status | None = None
    """Result of Permit; None when the member did not get that far."""
    was_tried: bool = True
    """Whether nodes were tried; False if the group has no placement, and after an error."""

    @property
    def has_node(self) -> bool:
        """Whether the member has a node in this attempt."""
        return self.attempt.status is None

    def reject_with_group(self) -> None:
        """Fail a member that had a node, because its group is rejected."""
        permit = self.permit.message if self.permit is not None else ""
        reasons = (UNSCHEDULABLE_GROUP, permit) if permit else (UNSCHEDULABLE_GROUP,)
        self.fail(Status(Code.Unschedulable, reasons), "")

    def fail(self, status: Status, nominated_node_name: str | None) -> None:
        """Fail the member for a reason of its group: no plugin is recorded as its rejector."""
        self.attempt.unschedulable_plugins = self.attempt.pending_plugins = frozenset()
        self.attempt.fail(status, nominated_node_name)


class GroupResult(msgspec.Struct):
    """One run of the algorithm for a group."""

    status: Status
    members: list[MemberTrial] = msgspec.field(default_factory=list)
    """In order; fewer than the group has when an error ended the run."""
    waits_for_preemption: bool = False
    held: list[HeldEviction] = msgspec.field(default_factory=list)
    """Evictions for members, carried out if the group waits for them."""

    @property
    def is_possible(self) -> bool:
        """Whether the group fits, or will fit after its victims are gone."""
        return self.status.is_success or self.waits_for_preemption

    @property
    def placed(self) -> list[MemberTrial]:
        """The members that have a node."""
        return [member for member in self.members if member.node_name]


class PlacementTrial(msgspec.Struct):
    """One placement: the result of the group there, and its scores if several placements are possible."""

    placement: Placement
    result: GroupResult
    scores: dict[str, int] | None = None
    """Weighted score by plugin."""
    total: int | None = None


class WorkloadPreemption(msgspec.Struct):
    """The attempt to make room for the whole group."""

    status: Status
    victims: Sequence[Pod] = ()
    nominations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The nodes that members wait for, by the key of the member; "" for none."""


class GroupAttempt(msgspec.Struct):
    """One scheduling cycle of a pod group."""

    group: PodGroupInfo
    result: GroupResult
    placements: list[PlacementTrial] = msgspec.field(default_factory=list)
    """The placements that were tried; empty when there was no choice of nodes."""
    chosen: Placement | None = None
    preemption: WorkloadPreemption | None = None
    """None when preemption for the whole group was not tried."""
    before_preemption: Status | None = None
    """The status before preemption for the whole group was tried; None if it was not."""
    attempts: list[Attempt] = msgspec.field(default_factory=list)
    """The attempts of the members that were tried, or would have been, in order."""
    popped: Sequence[Pod] = ()
    """All members that were in the queue, in order; those without an attempt are being deleted, or have a node."""

    @property
    def is_waiting(self) -> bool:
        """Whether the group waits for its victims to leave."""
        return self.result.waits_for_preemption

    @property
    def status(self) -> Status:
        return self.result.status

    @property
    def outcome(self) -> str:
        """The result of the cycle as metrics name it."""
        if self.is_waiting:
            return "waiting_on_preemption"
        if self.status.is_success:
            return "scheduled"
        return "unschedulable" if self.status.is_rejected else "error"


def run_to_tell(account: GroupAttempt) -> tuple[str, GroupResult]:
    """The run that the text is about: the chosen one, or the one that places most members; with its placement."""
    if account.chosen is not None or not account.placements:
        return account.chosen.name if account.chosen is not None else "", account.result
    best = max(account.placements, key=lambda trial: _count_fitting(trial.result))
    return best.placement.name, best.result


def cause_of(account: GroupAttempt, group: PodGroup | None, placed: int = 0) -> str:
    """Reason why the group does not start as a whole; empty when it does. `placed` members have nodes already."""
    status = account.status
    if status.is_success:
        return ""
    if status.code is Code.Error:
        return status.message
    keys = group.topology_keys if group is not None else ()
    place, result = run_to_tell(account)
    if not any(member.was_tried for member in result.members):
        if keys and status.reasons:
            return f"no node has the label {keys[0]}, which the members must share: {status.reasons[0]}"
        return status.message
    total, fitting = len(result.members), _count_fitting(result)
    where = _place(account, place, keys[0] if keys else "")
    fit = "fits" if fitting == 1 else "fit"
    head = f"{fitting} of {_members(total)} {fit}{where}"
    if placed:
        more = f", {fitting} more {fit}{where}" if fitting else ""
        head = f"{placed} of {_members(placed + total)} have nodes{more}"
    parts = [head]
    parts += _refused(result.members)
    leaving = [member for member in result.members if member.needs_preemption]
    if leaving:
        parts.append(f"{_named(leaving)} once preempted pods are gone")
    missing = (group.min_count if group is not None else 0) - total - placed
    if fitting == total and missing > 0:
        parts.append(f"{missing} more needed for minCount {group.min_count if group else 0}")
    if account.is_waiting and account.preemption is not None:
        parts.append(f"it waits for {len(account.preemption.victims)} preempted pods to leave")
    return "; ".join(parts)


def _place(account: GroupAttempt, place: str, key: str) -> str:
    """Text for the placement that the cause is about."""
    if place:
        best = f", the best of {len(account.placements)}" if len(account.placements) > 1 else ""
        return f" in {key or 'placement'} {place}{best}"
    is_first = (
        key and NO_PLACEMENT in account.status.message
    )  # of many placements, only the first is tried in full
    return f" in the first {key} by name" if is_first else ""


def _count_fitting(result: GroupResult) -> int:
    return sum(bool(member.node_name) and not member.needs_preemption for member in result.members)


def _refused(members: Sequence[MemberTrial]) -> list[str]:
    """Text for the refusals of the members without a node; equal refusals share one."""
    by_reason: dict[tuple[str, str], list[MemberTrial]] = {}
    for member in members:
        if not member.node_name:
            by_reason.setdefault(_lack(member.attempt), []).append(member)
    return [
        f"{_named(alike)} {one if len(alike) == 1 else many}"
        for (one, many), alike in by_reason.items()
    ]


def _lack(attempt: Attempt) -> tuple[str, str]:
    """Text for the refusal of a pod, in the singular and in the plural."""
    refusals, nodes = attempt.refusals, attempt.evaluated_nodes
    everywhere = [reason for reason, count in refusals.items() if count == nodes]
    if everywhere:
        where = " on every node" if nodes > 1 else " on the only node"
        if all(reason.startswith(INSUFFICIENT) for reason in everywhere):
            what = " and ".join(reason.removeprefix(INSUFFICIENT) for reason in everywhere)
            return f"lacks {what}{where}", f"lack {what}{where}"
        return _no_node(f"{', '.join(everywhere)}{where}")
    if refusals:
        counted = ", ".join(
            f"{count} {reason}" for reason, count in sorted(refusals.items(), key=lambda r: -r[1])
        )
        return _no_node(counted)
    return _no_node(attempt.fit_error or attempt.message)


def _no_node(why: str) -> tuple[str, str]:
    return f"finds no node: {why}", f"find no node: {why}"


def _named(members: Sequence[MemberTrial]) -> str:
    names = [member.attempt.pod.name for member in members]
    if len(names) <= MAX_NAMED:
        return " and ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def _members(number: int) -> str:
    return "1 member" if number == 1 else f"{number} members"
