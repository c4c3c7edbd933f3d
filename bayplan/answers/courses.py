"""Courses: the steps of a drain, an upgrade or a roll-out, and where it stalls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ..sim.plain_part import PlainPart


@dataclass(frozen=True, slots=True)
class DrainRound(PlainPart):
    """One round: pods were evicted as far as the budgets allowed, and placed where they fit."""

    PLAIN = "atSeconds=at_s evicted pending"

    at_s: float
    """Seconds since the beginning."""
    evicted: int
    pending: int
    """Pods of the cluster without a node after it."""


@dataclass(frozen=True, slots=True)
class DrainStall(PlainPart):
    """Pods that cannot be evicted, and the cause."""

    PLAIN = "cause refused=is_refused budget? pods nodes"

    cause: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    """Names of their nodes."""
    budget: str = ""
    """`namespace/name` of the budget that refuses; empty when several select a pod."""
    allows: str = ""
    """Number of disruptions that the budget allows; part of the cause."""
    no_node: str = ""
    """Reason why its evicted pods have no node; a part of the cause."""
    is_refused: bool = False
    """Whether kubectl drain evicts no pod of the node without a further flag, which the cause names."""


@dataclass(frozen=True, slots=True)
class PodAtRisk(PlainPart):
    """A pod that is lost, or leaves its workload without any pod for a time."""

    PLAIN = "pod node why"

    pod: str
    """`namespace/name`."""
    node: str
    """Its node before the eviction."""
    why: str


@dataclass(slots=True)
class DrainCourse(PlainPart):
    """The evictions of the pods of drained nodes."""

    PLAIN = "nodes drained pods evicted seconds pendingPeak rounds stalls atRisk"

    nodes: list[str]
    pods: int
    """Pods to be evicted."""
    evicted: int = 0
    rounds: list[DrainRound] = field(default_factory=list)
    seconds: float = 0.0
    """Virtual time until the last of them runs again."""
    stalls: list[DrainStall] = field(default_factory=list)
    at_risk: list[PodAtRisk] = field(default_factory=list)

    @property
    def drained(self) -> int:
        """Number of nodes without a pod that has to be evicted."""
        stuck = {node for stall in self.stalls for node in stall.nodes}
        return len(self.nodes) - len(stuck)

    @property
    def pending_peak(self) -> int:
        """The most pods without a node after a round."""
        return max((one.pending for one in self.rounds), default=0)


@dataclass(slots=True)
class UpgradeCourse(PlainPart):
    """The replacement of nodes, some at a time."""

    PLAIN = "nodes replaced@node,by steps rounds evicted seconds pendingBefore pendingPeak peakNodes stalls atRisk"

    nodes: list[str]
    replaced: dict[str, str] = field(default_factory=dict)
    """The new node for each old one."""
    steps: int = 0
    """Number of times that nodes were drained and replaced together."""
    rounds: int = 0
    evicted: int = 0
    seconds: float = 0.0
    pending_before: int = 0
    pending_peak: int = 0
    """The most pods of the cluster without a node at a time."""
    peak_nodes: tuple[str, ...] = ()
    """The nodes that were drained at that time."""
    stalls: list[DrainStall] = field(default_factory=list)
    at_risk: list[PodAtRisk] = field(default_factory=list)


@dataclass(slots=True)
class RolloutStep(PlainPart):
    """Pods that were created together, and the events until the next were."""

    PLAIN = "atSeconds=at_s created placed deleted"

    at_s: float
    """Seconds since the manifests were applied."""
    created: int = 0
    placed: dict[str, int] = field(default_factory=dict)
    """Number of pods that got a node, by its name."""
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class RolloutStall(PlainPart):
    """Reason why pods of the new version are missing."""

    PLAIN = "cause pods"

    cause: str
    pods: tuple[str, ...] = ()
    """Pods without a node; empty where they were refused."""


@dataclass(slots=True)
class RolloutCourse(PlainPart):
    """The roll-out of a new version of a workload."""

    PLAIN = "workload wanted updated left steps stalls"

    workload: str
    """`deployment/shop/web`."""
    wanted: int
    """Number of pods that it should have in the end."""
    steps: list[RolloutStep] = field(default_factory=list)
    updated: int = 0
    """Pods of the new version that have a node."""
    left: int = 0
    """Pods of former versions that are still there."""
    stalls: list[RolloutStall] = field(default_factory=list)


Course: TypeAlias = DrainCourse | UpgradeCourse | RolloutCourse
