"""Render rebalance: the moves in order, what each gains, and what the plan comes to."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...answers.rebalance import Objective, RebalancePlan
from .tables import count, hint, new_table, section

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
        table = new_table()
        table.add_column("STEP", justify="right")
        for name in ("POD", "FROM", "TO"):
            table.add_column(name, overflow="fold")
        for name in ("GAIN", "THEN"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("NOTE", overflow="fold")
        for number, move in enumerate(shown, 1):
            gain, then = (value_text(plan.objective, v) for v in (move.gain, move.after))
            notes = [move.why] if move.why else []
            if move.scheduler_choice != move.target:
                notes.append(f"the scheduler itself would choose {move.scheduler_choice}")
            cells = (move.pod, move.source, move.target, gain, then, "; ".join(notes))
            table.add_row(str(number), *map(Text, cells))
        section(console, table)
        hint(console, len(plan.moves) - len(shown), "move")
    console.print(summary(plan))


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
