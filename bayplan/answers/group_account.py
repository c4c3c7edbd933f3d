"""Group account: the explanation of one pod group's scheduling result as plain data.

The shape is that of `bayplan explain podgroup/NAME -o json`, described in docs/output.md; fields are added, never
removed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import field

from ..api.own_documents import API_VERSION
from ..trials import AS_READ, SettledAnswer, Settlement
from .account import Alternative, PodRef, Refusal
from .manifest_changes import Data


class GroupVerdict(StrEnum):
    """Scheduling state of a pod group."""

    PLACED = "placed"
    """Every member has a node."""
    FITS = "fits"
    """Members wait, and would get nodes if the group were tried now."""
    PREEMPTS = "preempts"
    """Members would get nodes after the group preempts other pods."""
    UNSCHEDULABLE = "unschedulable"
    """Too few members would get a node."""
    GATED = "gated"
    """Held back before scheduling: members, or the PodGroup object, are missing."""
    EMPTY = "empty"
    """The group has no members."""
    ERROR = "error"
    """A plugin failed, or members have different schedulers."""


class MemberState(StrEnum):
    """State of a member."""

    PLACED = "placed"
    FITS = "fits"
    PREEMPTS = "preempts"
    """The member would get the node after other pods were removed."""
    REFUSED = "refused"
    """No node fits it, given the members before it."""
    NOT_TRIED = "notTried"
    """There was no placement to try, or an error ended the cycle."""


class ReasonCount(Data, kw_only=True):
    """A reason, and the number of nodes that it was given for."""

    reason: str
    nodes: int


class GroupMember(Data, kw_only=True):
    """One member, on the placement with the most placed members."""

    pod: PodRef
    state: MemberState
    node: str | None = None
    message: str = ""
    refusals: list[ReasonCount] = field(default_factory=list)


class PlacementTried(Data, kw_only=True):
    """A placement: nodes that share a value of the label in the topology constraint."""

    name: str
    nodes: int
    fits: bool
    members: int
    """Number of members that would get a node there."""
    total: int | None = None
    """The sum of its scores; None unless several placements are possible."""
    scores: dict[str, int] = field(default_factory=dict)
    chosen: bool = False
    message: str = ""


class GroupPreemption(Data, kw_only=True):
    """Result of preemption for the whole group."""

    helps: bool
    victims: list[PodRef] = field(default_factory=list)
    message: str = ""


class PodGroupExplanation(SettledAnswer, Data, kw_only=True):
    """The complete account of one pod group."""

    api_version: str = API_VERSION
    kind: str = "PodGroupExplanation"
    namespace: str
    name: str
    verdict: GroupVerdict
    cause: str = ""
    """Reason why the group does not start, in a sentence; empty when it does."""
    message: str = ""
    """kube-scheduler's message in the condition PodGroupScheduled."""
    settled: Settlement = AS_READ
    """Result for the waiting pods before the question."""
    min_count: int = 0
    """The number of members that start together; 0 for a group that is no gang."""
    topology_key: str | None = None
    domains: dict[str, int] = field(default_factory=dict)
    """Members that have a node, or would get one, per value of the label in the topology constraint."""
    node_count: int = 0
    remarks: list[str] = field(default_factory=list)
    gate: Refusal | None = None
    members: list[GroupMember] = field(default_factory=list)
    """Members with a node, then the others in the order in which they are tried."""
    placements: list[PlacementTried] = field(default_factory=list)
    preemption: GroupPreemption | None = None
    """None when preemption for the whole group was not tried."""
    ways: list[Alternative] = field(default_factory=list)
    """Changes that would let the group run, alternatives."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def headline(self) -> str:
        """`research/huge: unschedulable, 9 members: 8 of 9 members fit`."""
        cause = f": {self.cause}" if self.cause else ""
        return f"{self.key}: {self.verdict.value}, {len(self.members)} members{cause}"

    def shown_rows(self) -> list[dict[str, Any]]:
        """The members."""
        return [
            {"pod": m.pod.name, "state": m.state.value, "node": m.node, "message": m.message}
            for m in self.members
        ]

    @property
    def has_node(self) -> bool:
        """Whether some members have nodes, or would get them."""
        return self.verdict in (GroupVerdict.PLACED, GroupVerdict.FITS, GroupVerdict.EMPTY)
