"""Report: what came of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..api.node import Node
from ..api.pod import Pod
from ..scheduler import Attempt, Outcome


@dataclass(slots=True)
class PodResult:
    """The last attempt at one pod, and what became of the pod; times are seconds on the simulation's clock."""

    attempt: Attempt
    time_s: float = 0.0
    """When the attempt ended."""
    attempts: int = 1
    created_s: float = 0.0
    finished_s: float | None = None
    deleted_s: float | None = None
    """When a pod that had found its node was deleted."""

    @property
    def pod(self) -> Pod:
        return self.attempt.pod

    @property
    def is_placed(self) -> bool:
        """Whether it found its node, whatever became of it there."""
        return self.attempt.outcome is Outcome.BOUND


@dataclass(slots=True)
class NodeUse:
    """What is requested on a node before and after: cpu in milli, others in whole units."""

    node: Node
    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    pods_before: int = 0
    pods_after: int = 0
    added_s: float | None = None
    """When it came, on the simulation's clock; None: it was there from the start."""
    removed_s: float | None = None


@dataclass(slots=True)
class SimulationReport:
    """All pods that waited, in the order they were first tried, and all nodes.

    Pods that were preempted, or deleted before they had a node, are not among them.
    """

    pods: list[PodResult]
    nodes: list[NodeUse]
    running: int
    """How many pods were on a node from the start."""
    preempted: list[tuple[Pod, Pod]] = field(default_factory=list)
    """Pods that had to make room, and for whom."""
    time_s: float = 0.0
    """When the simulation ended, on its own clock."""
    seconds: float = 0.0
    """How long the run took, on the wall clock."""

    @property
    def placed(self) -> list[PodResult]:
        return [result for result in self.pods if result.is_placed]

    @property
    def pending(self) -> list[PodResult]:
        return [result for result in self.pods if not result.is_placed]

    @property
    def is_complete(self) -> bool:
        """Whether every pod found a node."""
        return all(result.is_placed for result in self.pods)
