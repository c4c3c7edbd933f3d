"""Courses: how a drain, an upgrade or a roll-out goes, step by step, and where it stalls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class DrainRound:
    """One round: pods were evicted as far as the budgets allowed, and placed where they fit."""

    at_s: float
    """Seconds since the beginning."""
    evicted: int
    pending: int
    """Pods of the cluster without a node after it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"atSeconds": self.at_s, "evicted": self.evicted, "pending": self.pending}


@dataclass(frozen=True, slots=True)
class DrainStall:
    """Pods that cannot be evicted, and the cause."""

    cause: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    """Names of their nodes."""
    budget: str = ""
    """`namespace/name` of the budget that refuses; empty when several select a pod."""
    allows: str = ""
    """Disruptions that the budget allows; a part of the cause."""
    no_node: str = ""
    """Reason why its evicted pods have no node; a part of the cause."""
    is_refused: bool = False
    """Whether kubectl drain evicts no pod of the node without a further flag, which the cause names."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "cause": self.cause,
            "refused": self.is_refused,
            "budget": self.budget or None,
            "pods": list(self.pods),
            "nodes": list(self.nodes),
        }


@dataclass(frozen=True, slots=True)
class PodAtRisk:
    """A pod that is lost, or leaves its workload without any pod for a time."""

    pod: str
    """`namespace/name`."""
    node: str
    """Its node before the eviction."""
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"pod": self.pod, "node": self.node, "why": self.why}


@dataclass(slots=True)
class DrainCourse:
    """The evictions of the pods of drained nodes."""

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
        """Number of nodes on which no pod is left that should go."""
        stuck = {node for stall in self.stalls for node in stall.nodes}
        return len(self.nodes) - len(stuck)

    @property
    def pending_peak(self) -> int:
        """The most pods without a node after a round."""
        return max((one.pending for one in self.rounds), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "nodes": list(self.nodes),
            "drained": self.drained,
            "pods": self.pods,
            "evicted": self.evicted,
            "seconds": self.seconds,
            "pendingPeak": self.pending_peak,
            "rounds": [one.to_dict() for one in self.rounds],
            "stalls": [stall.to_dict() for stall in self.stalls],
            "atRisk": [risk.to_dict() for risk in self.at_risk],
        }


@dataclass(slots=True)
class UpgradeCourse:
    """The replacement of nodes, some at a time."""

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
    """The nodes that were drained then."""
    stalls: list[DrainStall] = field(default_factory=list)
    at_risk: list[PodAtRisk] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "nodes": list(self.nodes),
            "replaced": [{"node": old, "by": new} for old, new in self.replaced.items()],
            "steps": self.steps,
            "rounds": self.rounds,
            "evicted": self.evicted,
            "seconds": self.seconds,
            "pendingBefore": self.pending_before,
            "pendingPeak": self.pending_peak,
            "peakNodes": list(self.peak_nodes),
            "stalls": [stall.to_dict() for stall in self.stalls],
            "atRisk": [risk.to_dict() for risk in self.at_risk],
        }


@dataclass(slots=True)
class RolloutStep:
    """Pods that were created together, and the events until the next were."""

    at_s: float
    """Seconds since the manifests were applied."""
    created: int = 0
    placed: dict[str, int] = field(default_factory=dict)
    """Number of pods that got a node, by its name."""
    deleted: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "atSeconds": self.at_s,
            "created": self.created,
            "placed": dict(self.placed),
            "deleted": self.deleted,
        }


@dataclass(frozen=True, slots=True)
class RolloutStall:
    """Reason why pods of the new version are missing."""

    cause: str
    pods: tuple[str, ...] = ()
    """Pods without a node; empty where they were refused."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"cause": self.cause, "pods": list(self.pods)}


@dataclass(slots=True)
class RolloutCourse:
    """The roll-out of a new version of a workload."""

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

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "workload": self.workload,
            "wanted": self.wanted,
            "updated": self.updated,
            "left": self.left,
            "steps": [step.to_dict() for step in self.steps],
            "stalls": [stall.to_dict() for stall in self.stalls],
        }


Course: TypeAlias = DrainCourse | UpgradeCourse | RolloutCourse
