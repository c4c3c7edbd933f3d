"""Plan: moves in order, and what each of them gains."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...sim.frames import make_frame
from ..budgets import BudgetUse


class Objective(StrEnum):
    """What is to become better; of each, less is better."""

    SPREAD = "spread"
    """How far the nodes' utilisation of cpu and memory is from that of the cluster: the root of the mean square."""
    PACK = "pack"
    """How many nodes run pods, daemons and static pods aside."""
    COST = "cost"
    """What the nodes cost that run pods."""
    CONSTRAINTS = "constraints"
    """How many pods are where the filters would not let them go today."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is evicted from one node and comes to another."""

    pod: str
    source: str
    target: str
    before: float
    """The objective before the move."""
    after: float
    scheduler_choice: str
    """Where the scheduler would put the pod by itself."""
    why: str = ""

    @property
    def gain(self) -> float:
        """By how much the objective falls."""
        return self.before - self.after

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "pod": self.pod,
            "from": self.source,
            "to": self.target,
            "before": round(self.before, 6),
            "after": round(self.after, 6),
            "gain": round(self.gain, 6),
            "schedulerChoice": self.scheduler_choice,
            "why": self.why,
        }


@dataclass(slots=True)
class RebalancePlan:
    """Moves in the order in which they are to be made. Nothing was moved."""

    objective: Objective
    before: float
    moves: list[Move] = field(default_factory=list)
    movable: int = 0
    """How many pods could be moved at all."""
    budgets: list[BudgetUse] = field(default_factory=list)

    @property
    def after(self) -> float:
        return self.moves[-1].after if self.moves else self.before

    def to_frame(self) -> Any:
        """The moves in order as a pandas DataFrame."""
        return make_frame(move.to_dict() for move in self.moves)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/answers.md describes it."""
        return {
            "objective": self.objective.value,
            "before": round(self.before, 6),
            "after": round(self.after, 6),
            "movable": self.movable,
            "moves": [move.to_dict() for move in self.moves],
            "budgets": [use.to_dict() for use in self.budgets],
        }
