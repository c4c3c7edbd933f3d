"""Moves: the moves in order, the gain of each, and the result of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.rebalance import Move, Objective, RebalancePlan
from .cluster_totals import render_totals
from .consoles import conclude
from .node_names import NodeNames
from .table_layout import Listing
from .tables import count, hint, section

MAX_MOVES = 40
TITLES = {
    Objective.SPREAD: "distance from even use",
    Objective.PACK: "nodes in use",
    Objective.COST: "cost of nodes in use",
    Objective.CONSTRAINTS: "misplaced pods",
}


def render_plan(console: Console, plan: RebalancePlan, everything: bool = False) -> None:
    """Print the plan; a long one is cut unless `everything`."""
    shown = plan.moves if everything else plan.moves[:MAX_MOVES]
    if shown:
        section(console, _move_table(console, plan, shown))
        hint(console, len(plan.moves) - len(shown), "move")
    render_totals(console, plan.totals)
    conclude(console, summary(plan))


def _move_table(console: Console, plan: RebalancePlan, moves: Sequence[Move]) -> Listing:
    names = NodeNames.of(console, (name for move in moves for name in (move.source, move.target)))
    names.tell(console)
    table = Listing(
        ("STEP", "POD", "FROM", "TO", "GAIN", "THEN", "NOTE"),
        right=("STEP", "GAIN", "THEN"),
        text=("NOTE",),
        spare=("GAIN", "THEN"),
    )
    for number, move in enumerate(moves, 1):
        gain, then = (value_text(plan.objective, v) for v in (move.gain, move.after))
        notes = [names.in_text(move.why)] if move.why else []
        if move.scheduler_choice != move.target:
            choice = names.short(move.scheduler_choice)
            notes.append(f"the scheduler itself would choose {choice}")
        places = (names.short(move.source), names.short(move.target))
        table.add(str(number), move.pod, *places, gain, then, "; ".join(notes))
    return table


def summary(plan: RebalancePlan) -> Text:
    """`3 moves: nodes in use 6 → 5`."""
    before, after = (value_text(plan.objective, v) for v in (plan.before, plan.after))
    title = TITLES[plan.objective]
    if not plan.moves:
        pods = count(plan.movable, "pod")
        return Text(f"no move helps: {title} {before}, {pods} could be moved", style="bold")
    return Text(f"{count(len(plan.moves), 'move')}: {title} {before} → {after}", style="bold green")


def value_text(objective: Objective, value: float) -> str:
    """The objective as people read it."""
    if objective is Objective.SPREAD:
        return f"{value * 100:.2f}%"
    return f"{value:,.2f}".removesuffix("0").removesuffix(".0")
