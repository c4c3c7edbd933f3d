"""Answer: the consequences of changes: changed, pending and preempted pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import to_builtins

from ...api.pod import Pod
from ...cluster.memory.refusals import AdmissionRefusal
from ...sim.plain_part import PlainPart
from ...sim.totals import TotalsChange
from ...trials import NONE_WAITED, SettledAnswer, Settlement
from ..budget_effects import BudgetUse
from ..courses import Course, DrainCourse, RolloutCourse, UpgradeCourse


class WhatIfState(StrEnum):
    """State of a pod."""

    RUNNING = "running"
    PENDING = "pending"
    ABSENT = "absent"
    """Absent: not yet created, or deleted."""
    LOST = "lost"
    """Removed from its node; no controller recreates it."""


@dataclass(frozen=True, slots=True)
class Where(PlainPart):
    """State of a pod, and its node."""

    PLAIN = "state node?"

    state: WhatIfState
    node: str = ""

    @staticmethod
    def of(pod: Pod) -> Where:
        """The state of a pod that is there."""
        return Where(WhatIfState.RUNNING, pod.node_name) if pod.node_name else PENDING

    def __str__(self) -> str:
        return self.node or ("-" if self.state is WhatIfState.ABSENT else self.state.value)


ABSENT, PENDING, LOST = (
    Where(WhatIfState.ABSENT),
    Where(WhatIfState.PENDING),
    Where(WhatIfState.LOST),
)


@dataclass(frozen=True, slots=True)
class PodChange(PlainPart):
    """A pod whose state changed. `successor` is the pod that replaced it under another name."""

    PLAIN = "namespace name was now why successor? workload"

    namespace: str
    name: str
    was: Where
    now: Where
    why: str = ""
    successor: str = ""
    workload: str = ""
    """`namespace/name` of the pod's owner."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_worse(self) -> bool:
        """Whether it is newly pending, or lost."""
        waits = self.now.state is WhatIfState.PENDING and self.was.state is not WhatIfState.PENDING
        return waits or self.now.state is WhatIfState.LOST


@dataclass(frozen=True, slots=True)
class GroupPlaces(PlainPart):
    """Progress of a pod group: its members, those with a node, and the domains they are in."""

    PLAIN = "members placed started=has_started domains"

    members: int
    placed: int
    has_started: bool
    domains: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.members:
            return "-"
        where = f" in {', '.join(self.domains)}" if self.domains else ""
        return f"{self.placed} of {self.members}{where}" if self.placed else "waiting"


@dataclass(frozen=True, slots=True)
class GroupChange(PlainPart):
    """A pod group of which other members are placed than before, or in other domains."""

    PLAIN = "namespace name was now why"

    namespace: str
    name: str
    was: GroupPlaces
    now: GroupPlaces
    why: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_worse(self) -> bool:
        """Whether it had started, and now has too few members with a node."""
        return self.was.has_started and not self.now.has_started and self.now.members > 0


@dataclass(frozen=True, slots=True)
class PreemptedPod(PlainPart):
    """A pod that was preempted."""

    PLAIN = "victim node for=preemptor"

    victim: str
    node: str
    preemptor: str


@dataclass(frozen=True, slots=True)
class NodeSearch(PlainPart):
    """Number of nodes needed until all pods fit that can fit."""

    PLAIN = "like=counts@node,nodes nodes fewest=is_fewest waiting tried@nodes,pending hopeless@pod,message"

    counts: dict[str, int]
    """The nodes that are enough, by the name of the node that they are like."""
    waiting: int
    """Number of pods that wait, or cannot be evicted, without further nodes."""
    tried: dict[int, int]
    """Number of such pods for each number of nodes tried; the lowest of several tries. In order."""
    hopeless: dict[str, str]
    """Pods that no number of such nodes helps, with their messages."""
    is_fewest: bool | None = None
    """Whether every choice of one node less was tried, and none is enough. None if the nodes were added in turn."""

    @property
    def likes(self) -> tuple[str, ...]:
        """The names of the nodes to copy."""
        return tuple(self.counts)

    @property
    def nodes(self) -> int | None:
        """A sufficient number of nodes; None if no number helps any pod."""
        if self.waiting and len(self.hopeless) >= self.waiting:
            return None
        return sum(self.counts.values())


@dataclass(slots=True, repr=False)
class WhatIfAnswer(PlainPart, SettledAnswer):
    """The consequences of `changes`. Unchanged pods are only counted."""

    PLAIN = "preempted refused budgets drains upgrades rollouts notes podGroups=groups"

    changes: list[str]
    pods: list[PodChange] = field(default_factory=list)
    running: tuple[int, int] = (0, 0)
    """Number of running pods, before and after."""
    pending_before: dict[str, str] = field(default_factory=dict)
    """The pending pods with their messages."""
    pending_after: dict[str, str] = field(default_factory=dict)
    preempted: list[PreemptedPod] = field(default_factory=list)
    budgets: list[BudgetUse] = field(default_factory=list)
    """The disruption budgets from which pods are taken."""
    nodes_added: list[str] = field(default_factory=list)
    nodes_removed: list[str] = field(default_factory=list)
    groups: list[GroupChange] = field(default_factory=list)
    groups_started: tuple[int, int] = (0, 0)
    """Number of pod groups with enough members on nodes, before and after."""
    settled: Settlement = NONE_WAITED
    """Result for the waiting pods before the changes."""
    refused: list[AdmissionRefusal] = field(default_factory=list)
    """Pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster after the changes."""
    courses: list[Course] = field(default_factory=list)
    """Courses of drains, upgrades and roll-outs, in the order of the changes."""
    notes: list[str] = field(default_factory=list)
    """Remarks on the changes."""
    totals: TotalsChange | None = None
    """The resources of all nodes, before and after."""
    search: NodeSearch | None = None
    """Only for the question how many nodes are needed."""

    @property
    def is_worse(self) -> bool:
        """Whether any pod is newly pending, lost or refused, or a drain or a roll-out does not get to its end."""
        if any(course.stalls for course in self.courses):
            return True
        is_pod_worse = any(change.is_worse for change in self.pods)
        refused, before = (
            sum(refusal.count for refusal in each) for each in (self.refused, self.settled.refused)
        )
        return is_pod_worse or refused > before or any(change.is_worse for change in self.groups)

    @property
    def notices(self) -> list[str]:
        """Remarks to print with the answer about the cluster after the changes."""
        known = self.settled.refused
        return [f"refused: {refusal}" for refusal in self.refused if refusal not in known]

    @property
    def drains(self) -> list[DrainCourse]:
        """Courses of the drains."""
        return [course for course in self.courses if isinstance(course, DrainCourse)]

    @property
    def upgrades(self) -> list[UpgradeCourse]:
        """Courses of the upgrades."""
        return [course for course in self.courses if isinstance(course, UpgradeCourse)]

    @property
    def rollouts(self) -> list[RolloutCourse]:
        """Courses of the roll-outs."""
        return [course for course in self.courses if isinstance(course, RolloutCourse)]

    def summary(self) -> dict[str, int]:
        """Number of pods per kind of change."""
        both = [c for c in self.pods if c.was.state is c.now.state is WhatIfState.RUNNING]
        moved = [c for c in both if c.was.node != c.now.node]
        placed = [
            c
            for c in self.pods
            if c.now.state is WhatIfState.RUNNING and c.was.state is not WhatIfState.RUNNING
        ]
        return {
            "runningBefore": self.running[0],
            "runningAfter": self.running[1],
            "pendingBefore": len(self.pending_before),
            "pendingAfter": len(self.pending_after),
            "moved": len(moved),
            "madeAnew": len(both) - len(moved),
            "placed": len(placed),
            "newlyPending": sum(
                c.is_worse and c.now.state is WhatIfState.PENDING for c in self.pods
            ),
            "lost": sum(c.now.state is WhatIfState.LOST for c in self.pods),
            "deleted": sum(c.now.state is WhatIfState.ABSENT for c in self.pods),
            "preempted": len(self.preempted),
            "stalls": sum(len(course.stalls) for course in self.courses),
            "budgetsViolated": sum(use.is_violated for use in self.budgets),
            "podGroupsStartedBefore": self.groups_started[0],
            "podGroupsStartedAfter": self.groups_started[1],
        }

    def headline(self) -> str:
        """`drain node-3: 4 moved, 1 newly pending; pending 2 → 3`."""
        said = self.summary()
        counts = ("moved", "placed", "newlyPending", "lost", "deleted", "preempted", "stalls")
        words = {"newlyPending": "newly pending"}
        parts = [f"{said[name]:,} {words.get(name, name)}" for name in counts if said.get(name)]
        changes = self.changes[0] if len(self.changes) == 1 else f"{len(self.changes)} changes"
        pending = f"pending {said['pendingBefore']:,} → {said['pendingAfter']:,}"
        return f"{changes}: {', '.join(parts) or 'no pod changes'}; {pending}"

    def shown_rows(self) -> list[dict[str, Any]]:
        """The changed pods, those that are worse off first."""
        ordered = sorted(self.pods, key=lambda change: not change.is_worse)
        return [_row(change) for change in ordered]

    def frame_rows(self) -> list[dict[str, Any]]:
        """The changed pods."""
        return [
            {**_row(change), "workload": change.workload, "successor": change.successor or None}
            for change in self.pods
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        document: dict[str, Any] = {
            "changes": list(self.changes),
            "settled": to_builtins(self.settled),
            "summary": self.summary(),
            "pods": [change.to_dict() for change in self.pods],
            "pending": {
                when: [{"pod": pod, "message": message} for pod, message in pods.items()]
                for when, pods in (("before", self.pending_before), ("after", self.pending_after))
            },
            **PlainPart.to_dict(self),
            "nodes": {"added": list(self.nodes_added), "removed": list(self.nodes_removed)},
            "totals": self.totals.to_list() if self.totals is not None else [],
        }
        if self.search is not None:
            document["untilFits"] = self.search.to_dict()
        return document


def _row(change: PodChange) -> dict[str, Any]:
    return {
        "namespace": change.namespace,
        "pod": change.name,
        "was": str(change.was),
        "now": str(change.now),
        "why": change.why,
    }
