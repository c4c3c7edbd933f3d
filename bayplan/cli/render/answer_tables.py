"""Answer tables: the answers of capacity, rebalance and right-sizing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.capacity import Capacity
from ...answers.rebalance import Move, RebalancePlan
from ...answers.rightsizing import Rightsizing
from ...choices import Objective
from ...errors import counted
from .cluster_totals import render_totals
from .consoles import conclude, say
from .node_names import NodeNames
from .table_layout import Listing
from .tables import hint, section

MAX_ROWS = 12


def render_capacity(console: Console, answer: Capacity, everything: bool = False) -> None:
    """Print the answer; long tables are cut unless `everything`."""
    section(console, _kind_table(answer))
    rows = [(f"{number:,}", f"{nodes:,}") for number, nodes in answer.histogram().items()]
    headings, most = ("MORE PODS", "ON NODES"), None if everything else MAX_ROWS
    section(console, Listing(headings, rows, right=headings), even_empty=True, most=most)
    render_totals(console, answer.totals, wide=True)
    if answer.first_refused:
        is_mix = len(answer.kinds) > 1
        refusals = [
            (f"{nodes:,}", f"{kind.name}: {reason}" if is_mix else reason)
            for kind in answer.kinds
            for reason, nodes in kind.refusals.most_common()
        ]
        heads = ("NODES", "REFUSE ONE MORE")
        table = Listing(heads, refusals, right=heads[:1], text=heads[1:])
        section(console, table, even_empty=True)
        for kind in answer.kinds:
            if kind.members and kind.message:
                console.print(Text(f"one more {kind.name}: {kind.message}"))
    conclude(console, summary(answer))


def summary(answer: Capacity) -> Text:
    """`40 more pods fit; cpu runs out first`, or `4 more pod groups fit, 12 pods; cpu runs out first`."""
    has_groups = all(kind.members for kind in answer.kinds)
    fits = sum(kind.fits for kind in answer.kinds) if has_groups else answer.fits
    noun, at_least = "pod group" if has_groups else "pod", "at least " if answer.is_limited else ""
    text = f"{at_least}{fits:,} more {f'{noun} fits' if fits == 1 else f'{noun}s fit'}"
    if has_groups:
        text += f", {counted(answer.fits, 'pod')}"
    elif len(answer.kinds) > 1:
        text += f", {counted(answer.rounds, 'time')} the mix"
    if answer.is_limited:
        text += " (the limit)"
    elif answer.bottleneck:
        text += f"; {answer.bottleneck} runs out first"
    elif not has_groups and answer.first_refused:
        rest = "no resource runs out: nodes refuse for other reasons"
        text += f"; {answer.obstacle or _refused_outright(answer) or rest}"
    return Text(text, style="bold green" if fits else "bold yellow")


def _refused_outright(answer: Capacity) -> str:
    """The message of the copy that was refused before any node, by a limit range or a quota; empty if none was."""
    first = [kind for kind in answer.kinds if kind.name == answer.first_refused]
    return first[0].message if first and not first[0].refusals else ""


def _kind_table(answer: Capacity) -> Listing:
    has_groups = any(kind.members for kind in answer.kinds)
    numbers = ("RATIO", *(("MEMBERS",) if has_groups else ()), "FITS", "ON NODES")
    first = "POD OR GROUP" if has_groups else "POD"
    table = Listing((first, *numbers, "ONE MORE"), right=numbers, text=("ONE MORE",))
    for kind in answer.kinds:
        alone = "would fit by itself" if kind.fits_alone else "does not fit"
        more = "not asked" if answer.is_limited else alone
        members = (str(kind.members or 1),) if has_groups else ()
        table.add(
            kind.name,
            *(f"{kind.ratio:,}", *members, f"{kind.fits:,}", f"{len(kind.nodes):,}"),
            more,
        )
    return table


def render_rightsizing(console: Console, answer: Rightsizing) -> None:
    """Print the proposals, the totals of the cluster with them, and the scheduler's result for them."""
    numbers = ("PODS", "REQUESTED", "USED", "PROPOSED", "FREES")
    rows = [[str(cell) for cell in one.to_dict().values()] for one in answer.proposals]
    heads = ("WORKLOAD", "CONTAINER", "RESOURCE", *numbers)
    section(console, Listing(heads, rows, right=numbers))
    render_totals(console, answer.totals)
    if answer.unmeasured:
        say(console, f"{counted(answer.unmeasured, 'running pod')} without a measured use", "dim")
    for name in answer.displaced:
        text = f"{name} has less than its pods would request: some would have to move"
        say(console, text, "yellow")
    for pod in answer.placed:
        say(console, f"{pod} gets a node then", "green")
    conclude(console, Text(answer.headline(), style="bold"))


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
    conclude(console, moves_summary(plan))


def _move_table(console: Console, plan: RebalancePlan, moves: Sequence[Move]) -> Listing:
    names = NodeNames.told(console, (name for move in moves for name in (move.source, move.target)))
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


def moves_summary(plan: RebalancePlan) -> Text:
    """`3 moves: nodes in use 6 → 5`."""
    before, after = (value_text(plan.objective, v) for v in (plan.before, plan.after))
    title = TITLES[plan.objective]
    if not plan.moves:
        pods = counted(plan.movable, "pod")
        return Text(f"no move helps: {title} {before}, {pods} could be moved", style="bold")
    return Text(
        f"{counted(len(plan.moves), 'move')}: {title} {before} → {after}", style="bold green"
    )


def value_text(objective: Objective, value: float) -> str:
    """The objective as people read it."""
    if objective is Objective.SPREAD:
        return f"{value * 100:.2f}%"
    return f"{value:,.2f}".removesuffix("0").removesuffix(".0")
