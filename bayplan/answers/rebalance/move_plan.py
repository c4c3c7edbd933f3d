"""Move plan: moves in order, and the gain of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...choices import Objective
from ...sim.plain_part import PlainPart
from ...sim.totals import TotalsChange
from ...trials import NONE_WAITED, SettledAnswer, Settlement
from ..budget_effects import BudgetUse


@dataclass(frozen=True, slots=True)
class Move(PlainPart):
    """A pod's eviction from one node and placement on another."""

    PLAIN = "pod from=source to=target before~ after~ gain~ schedulerChoice why"

    pod: str
    source: str
    target: str
    before: float
    """The objective before the move."""
    after: float
    scheduler_choice: str
    """The node the scheduler would choose on its own."""
    why: str = ""

    @property
    def gain(self) -> float:
        """The decrease of the objective."""
        return self.before - self.after


@dataclass(slots=True, repr=False)
class RebalancePlan(PlainPart, SettledAnswer):
    """Moves in order. The plan itself moves nothing."""

    PLAIN = "settled objective before~ after~ movable moves budgets totals"

    objective: Objective
    before: float
    moves: list[Move] = field(default_factory=list)
    movable: int = 0
    """Number of movable pods."""
    budgets: list[BudgetUse] = field(default_factory=list)
    settled: Settlement = NONE_WAITED
    """Result for the waiting pods before the question."""
    totals: TotalsChange = field(default_factory=TotalsChange)
    """The resources of all nodes, before and after the moves."""

    @property
    def after(self) -> float:
        return self.moves[-1].after if self.moves else self.before

    def headline(self) -> str:
        """`3 moves for pack: 6 → 5`."""
        values = f"{self.before:.4g} → {self.after:.4g}"
        return f"{len(self.moves):,} moves for {self.objective.value}: {values}"

    def shown_rows(self) -> list[dict[str, Any]]:
        """The moves."""
        fields = ("pod", "from", "to", "gain", "why")
        return [{name: move.to_dict()[name] for name in fields} for move in self.moves]

    def frame_rows(self) -> list[dict[str, Any]]:
        """The moves in order."""
        return [move.to_dict() for move in self.moves]
