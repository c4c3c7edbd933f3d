"""Answer: what would follow from changes: each pod that is not as it was, who waits, who is pushed out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...sim.frames import make_frame
from ..budgets import BudgetUse


class State(StrEnum):
    """What a pod is doing."""

    RUNNING = "running"
    PENDING = "pending"
    ABSENT = "absent"
    """It is not there: not yet, or no more."""
    LOST = "lost"
    """It was taken off its node, and nobody makes another."""


@dataclass(frozen=True, slots=True)
class Where:
    """What a pod is doing, and on which node."""

    state: State
    node: str = ""

    def __str__(self) -> str:
        return self.node or ("-" if self.state is State.ABSENT else self.state.value)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"state": self.state.value, "node": self.node or None}


ABSENT, PENDING, LOST = Where(State.ABSENT), Where(State.PENDING), Where(State.LOST)


@dataclass(frozen=True, slots=True)
class PodChange:
    """A pod that is not as it was. `successor` is the pod that took its place under another name."""

    namespace: str
    name: str
    was: Where
    now: Where
    why: str = ""
    successor: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_worse(self) -> bool:
        """Whether it waits and did not before, or is lost."""
        waits = self.now.state is State.PENDING and self.was.state is not State.PENDING
        return waits or self.now.state is State.LOST

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "was": self.was.to_dict(),
            "now": self.now.to_dict(),
            "why": self.why,
            "successor": self.successor or None,
        }


@dataclass(frozen=True, slots=True)
class Preemption:
    """A pod that had to make room."""

    victim: str
    node: str
    preemptor: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"victim": self.victim, "node": self.node, "for": self.preemptor}


@dataclass(frozen=True, slots=True)
class NodeSearch:
    """How many nodes it takes until the pods fit that can fit at all."""

    like: str
    nodes: int | None
    """The number that is enough, while one less is not; None when no number helps anyone."""
    tried: dict[int, int]
    """How many pods waited with each number that was tried."""
    hopeless: dict[str, str]
    """Pods that no number of such nodes helps, and what they are told."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "like": self.like,
            "nodes": self.nodes,
            "tried": [{"nodes": n, "pending": self.tried[n]} for n in sorted(self.tried)],
            "hopeless": [
                {"pod": pod, "message": message} for pod, message in self.hopeless.items()
            ],
        }


@dataclass(slots=True)
class WhatIf:
    """What would follow from `changes`. Pods that stay as they are, are not named, only counted."""

    changes: list[str]
    pods: list[PodChange] = field(default_factory=list)
    running: tuple[int, int] = (0, 0)
    """How many pods run, before and after."""
    pending_before: dict[str, str] = field(default_factory=dict)
    """The pods that wait, and what each is told."""
    pending_after: dict[str, str] = field(default_factory=dict)
    preempted: list[Preemption] = field(default_factory=list)
    budgets: list[BudgetUse] = field(default_factory=list)
    """The disruption budgets from which pods are taken."""
    nodes_added: list[str] = field(default_factory=list)
    nodes_removed: list[str] = field(default_factory=list)
    search: NodeSearch | None = None
    """Only for the question how many nodes it takes."""

    @property
    def is_worse(self) -> bool:
        """Whether some pod waits that did not before, or is lost."""
        return any(change.is_worse for change in self.pods)

    def summary(self) -> dict[str, int]:
        """How many pods there are of each kind of change."""
        both = [c for c in self.pods if c.was.state is c.now.state is State.RUNNING]
        moved = [c for c in both if c.was.node != c.now.node]
        placed = [
            c
            for c in self.pods
            if c.now.state is State.RUNNING and c.was.state is not State.RUNNING
        ]
        return {
            "runningBefore": self.running[0],
            "runningAfter": self.running[1],
            "pendingBefore": len(self.pending_before),
            "pendingAfter": len(self.pending_after),
            "moved": len(moved),
            "madeAnew": len(both) - len(moved),
            "placed": len(placed),
            "newlyPending": sum(c.is_worse and c.now.state is State.PENDING for c in self.pods),
            "lost": sum(c.now.state is State.LOST for c in self.pods),
            "deleted": sum(c.now.state is State.ABSENT for c in self.pods),
            "preempted": len(self.preempted),
            "budgetsViolated": sum(use.is_violated for use in self.budgets),
        }

    def to_frame(self) -> Any:
        """The pods that are not as they were, as a pandas DataFrame."""
        return make_frame(
            {
                "namespace": pod.namespace,
                "pod": pod.name,
                "was": str(pod.was),
                "now": str(pod.now),
                "why": pod.why,
            }
            for pod in self.pods
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/answers.md describes it."""
        document: dict[str, Any] = {
            "changes": list(self.changes),
            "summary": self.summary(),
            "pods": [change.to_dict() for change in self.pods],
            "pending": {
                when: [{"pod": pod, "message": message} for pod, message in pods.items()]
                for when, pods in (("before", self.pending_before), ("after", self.pending_after))
            },
            "preempted": [entry.to_dict() for entry in self.preempted],
            "budgets": [use.to_dict() for use in self.budgets],
            "nodes": {"added": list(self.nodes_added), "removed": list(self.nodes_removed)},
        }
        if self.search is not None:
            document["untilFits"] = self.search.to_dict()
        return document
