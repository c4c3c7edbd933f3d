"""Report: the result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..api.node import Node
from ..api.pod import Pod
from ..scheduler import Attempt, Outcome
from .frames import make_frame


@dataclass(slots=True)
class PodResult:
    """The last attempt of one pod, and its outcome; times are seconds on the simulation's clock."""

    attempt: Attempt
    time_s: float = 0.0
    """When the attempt ended."""
    attempts: int = 1
    created_s: float = 0.0
    finished_s: float | None = None
    deleted_s: float | None = None
    """When a placed pod was deleted."""

    @property
    def pod(self) -> Pod:
        return self.attempt.pod

    @property
    def is_placed(self) -> bool:
        """Whether it was placed, even if it was deleted later."""
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
    """When it was added, on the simulation's clock; None: at the start."""
    removed_s: float | None = None


@dataclass(slots=True)
class SimulationReport:
    """All pods that were pending, in the order of their first attempt, and all nodes.

    Pods that were preempted, or deleted before they had a node, are not included.
    """

    pods: list[PodResult]
    nodes: list[NodeUse]
    running: int
    """Number of pods on a node at the start."""
    preempted: list[tuple[Pod, Pod]] = field(default_factory=list)
    """Preempted pods, with their preemptors."""
    time_s: float = 0.0
    """When the simulation ended, on its own clock."""
    seconds: float = 0.0
    """Duration of the run on the wall clock."""

    @property
    def placed(self) -> list[PodResult]:
        return [result for result in self.pods if result.is_placed]

    @property
    def pending(self) -> list[PodResult]:
        return [result for result in self.pods if not result.is_placed]

    @property
    def is_complete(self) -> bool:
        """Whether every pod was placed."""
        return all(result.is_placed for result in self.pods)

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain data, as `bayplan simulate -o json` prints it."""
        from .documents import to_document  # avoids an import cycle

        return to_document(self)

    def pod_rows(self) -> list[dict[str, Any]]:
        """One row per pod: its node and times in seconds."""
        return [
            {
                "namespace": result.pod.namespace,
                "pod": result.pod.name,
                "node": result.attempt.node_name if result.is_placed else None,
                "outcome": result.attempt.outcome.value,
                "score": result.attempt.score,
                "priority": result.pod.priority,
                "created_s": result.created_s,
                "decided_s": result.time_s,
                "finished_s": result.finished_s,
                "attempts": result.attempts,
                "message": result.attempt.message,
            }
            for result in self.pods
        ]

    def node_rows(self) -> list[dict[str, Any]]:
        """One row per node: pods, and capacity and requests of each resource; cpu in milli."""
        rows = []
        for use in self.nodes:
            row: dict[str, Any] = {"node": use.node.name, "pods": use.pods_after}
            for resource, amount in use.node.allocatable.items():
                if resource != "pods":
                    row[resource] = amount
                    row[f"{resource} requested"] = use.after.get(resource, 0)
            rows.append(row)
        return rows

    def to_frame(self, what: str = "pods") -> Any:
        """The `pods` or the `nodes` as a pandas DataFrame."""
        return make_frame(self.node_rows() if what == "nodes" else self.pod_rows())
