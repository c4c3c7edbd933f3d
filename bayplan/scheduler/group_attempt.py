"""GroupAttempt: the result of one scheduling cycle of a pod group, member by member and placement by placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..api.pod import Pod
from ..framework import Code, CycleState, Status
from ..framework.group_options import HeldEviction
from ..framework.placement import Placement, PodGroupInfo
from ..queue.queued_pod import QueuedPodInfo
from .attempt import Attempt

UNSCHEDULABLE_GROUP = "pod group is unschedulable"
WAITING = "pod group is waiting for preemption to complete"


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
