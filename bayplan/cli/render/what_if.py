"""Render what-if: which pods move, wait or are preempted, and why, and which budgets are exceeded."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...answers.what_if import PodChange, WhatIfAnswer, WhatIfState
from .courses import render_course, render_search
from .tables import count, hint, new_table, section

MAX_PODS = 40
STYLES = {
    WhatIfState.RUNNING: "cyan",
    WhatIfState.PENDING: "yellow",
    WhatIfState.LOST: "red",
    WhatIfState.ABSENT: "dim",
}


def render_what_if(console: Console, answer: WhatIfAnswer, everything: bool = False) -> None:
    """Print the answer; long tables are cut unless `everything`."""
    if answer.search is not None:
        render_search(console, answer.search)
    # What hurts comes first, as the rest may be cut.
    changes = sorted(answer.pods, key=lambda change: not change.is_worse)
    shown = changes if everything else changes[:MAX_PODS]
    if shown:
        section(console, _pod_table(shown))
        hint(console, len(changes) - len(shown), "pod")
    if answer.groups:
        section(console, _group_table(answer))
    if answer.preempted:
        section(console, _preempted_table(answer))
    if answer.budgets:
        section(console, _budget_table(answer))
    for course in answer.courses:
        render_course(console, course, everything)
    console.print(summary(answer))
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)


def summary(answer: WhatIfAnswer) -> Text:
    """`5 moved, 1 placed, 2 newly pending; pending 3 → 4`."""
    said = answer.summary()
    parts = [
        f"{said[name]:,} {text}"
        for name, text in (
            ("moved", "moved"),
            ("madeAnew", "created again on the same node"),
            ("placed", "placed"),
            ("newlyPending", "newly pending"),
            ("lost", "lost"),
            ("deleted", "deleted"),
            ("preempted", "preempted"),
        )
        if said[name]
    ]
    if said["budgetsViolated"]:
        parts.append(f"{count(said['budgetsViolated'], 'disruption budget')} overdrawn")
    text = ", ".join(parts) if parts else "nothing changes"
    text += f"; pending {said['pendingBefore']:,} → {said['pendingAfter']:,}"
    if answer.groups:
        before, after = answer.groups_started
        text += f"; pod groups started {before:,} → {after:,}"
    return Text(text, style="bold yellow" if answer.is_worse else "bold green")


def _pod_table(changes: list[PodChange]) -> Table:
    table = new_table()
    for name in ("POD", "WAS", "NOW", "WHY"):
        table.add_column(name, overflow="fold")
    for change in changes:
        now = Text(str(change.now), style=STYLES[change.now.state])
        if change.successor:
            now.append(f" (as {change.successor})", style="dim")
        table.add_row(Text(change.key), Text(str(change.was)), now, Text(change.why))
    return table


def _group_table(answer: WhatIfAnswer) -> Table:
    table = new_table()
    for name in ("POD GROUP", "WAS", "NOW", "WHY"):
        table.add_column(name, overflow="fold")
    for change in answer.groups:
        now = Text(str(change.now), style="cyan" if change.now.has_started else "yellow")
        table.add_row(Text(change.key), Text(str(change.was)), now, Text(change.why))
    return table


def _preempted_table(answer: WhatIfAnswer) -> Table:
    table = new_table()
    for name in ("PREEMPTED", "NODE", "FOR"):
        table.add_column(name, overflow="fold")
    for entry in answer.preempted:
        table.add_row(*map(Text, (entry.victim, entry.node, entry.preemptor)))
    return table


def _budget_table(answer: WhatIfAnswer) -> Table:
    table = new_table()
    table.add_column("BUDGET", overflow="fold")
    for name in ("ALLOWED", "TAKEN", "AT ONCE"):
        table.add_column(name, justify="right")
    table.add_column("")
    for use in answer.budgets:
        verdict = Text("kept", style="green")
        if use.is_violated:
            verdict = Text("overdrawn", style="red")
        numbers = use.allowed, len(use.pods), use.at_once
        table.add_row(Text(use.budget), *map(str, numbers), verdict)
    return table
