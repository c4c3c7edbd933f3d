"""Answer tables: the answers of capacity, rebalance and right-sizing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...answers.capacity import Capacity
from ...answers.rebalance import Move, RebalancePlan
from ...answers.rightsizing import Rightsizing
from ...choices import Objective
from .cluster_totals import render_totals
from .consoles import conclude
from .node_names import NodeNames
from .table_layout import Listing
from .tables import count, hint, section

MAX_ROWS = 12


def render_capacity(console: Console, answer: Capacity, everything: bool = False) -> None:
    """Print the answer; long tables are cut unless `everything`."""
    section(console, _kind_table(answer))
    histogram = list(answer.histogram().items())
    shown = histogram if everything else histogram[:MAX_ROWS]
    section(console, _histogram_table(shown))
    hint(console, len(histogram) - len(shown), "row")
    render_totals(console, answer.totals, wide=True)
    if answer.first_refused:
        section(console, _refusal_table(answer))
        for kind in answer.kinds:
            if kind.members and kind.message:
                console.print(Text(f"one more {kind.name}: {kind.message}"))
    conclude(console, summary(answer))


def summary(answer: Capacity) -> Text:
    """`40 more pods fit; cpu runs out first`."""
    fits = answer.fits
    if all(kind.members for kind in answer.kinds):
        return _group_summary(answer)
    at_least = "at least " if answer.is_limited else ""
    text = f"{at_least}{fits:,} more {'pod fits' if fits == 1 else 'pods fit'}"
    if len(answer.kinds) > 1:
        text += f", {count(answer.rounds, 'time')} the mix"
    if answer.is_limited:
        text += " (the limit)"
    elif answer.bottleneck:
        text += f"; {answer.bottleneck} runs out first"
    elif answer.obstacle:
        text += f"; {answer.obstacle}"
    elif refused := _refused_outright(answer):
        text += f"; {refused}"
    elif answer.first_refused:
        text += "; no resource runs out: nodes refuse for other reasons"
    return Text(text, style="bold green" if fits else "bold yellow")


def _refused_outright(answer: Capacity) -> str:
    """The message of the copy that was refused before any node, by a limit range or a quota; empty if none was."""
    first = [kind for kind in answer.kinds if kind.name == answer.first_refused]
    return first[0].message if first and not first[0].refusals else ""


def _group_summary(answer: Capacity) -> Text:
    """`4 more pod groups fit, 12 pods; cpu runs out first`."""
    groups = sum(kind.fits for kind in answer.kinds)
    at_least = "at least " if answer.is_limited else ""
    text = f"{at_least}{groups:,} more {'pod group fits' if groups == 1 else 'pod groups fit'}"
    text += f", {count(answer.fits, 'pod')}"
    if answer.is_limited:
        text += " (the limit)"
    elif answer.bottleneck:
        text += f"; {answer.bottleneck} runs out first"
    return Text(text, style="bold green" if groups else "bold yellow")


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


def _histogram_table(rows: list[tuple[int, int]]) -> Listing:
    headings = ("MORE PODS", "ON NODES")
    table = Listing(headings, right=headings)
    for number, nodes in rows:
        table.add(f"{number:,}", f"{nodes:,}")
    return table


def _refusal_table(answer: Capacity) -> Listing:
    table = Listing(("NODES", "REFUSE ONE MORE"), right=("NODES",), text=("REFUSE ONE MORE",))
    for kind in answer.kinds:
        for reason, nodes in kind.refusals.most_common():
            name = f"{kind.name}: " if len(answer.kinds) > 1 else ""
            table.add(f"{nodes:,}", f"{name}{reason}")
    return table


def render_rightsizing(console: Console, answer: Rightsizing) -> None:
    """Print the proposals, the totals of the cluster with them, and the scheduler's result for them."""
    numbers = ("PODS", "REQUESTED", "USED", "PROPOSED", "FREES")
    table = Listing(("WORKLOAD", "CONTAINER", "RESOURCE", *numbers), right=numbers)
    for one in answer.proposals:
        row = one.to_dict()
        amounts = (row["requested"], row["used"], row["proposed"], row["frees"])
        table.add(one.workload, one.container, one.resource, str(one.pods), *amounts)
    if answer.proposals:
        section(console, table)
    render_totals(console, answer.totals)
    if answer.unmeasured:
        text = f"{count(answer.unmeasured, 'running pod')} without a measured use"
        console.print(text, style="dim", markup=False, highlight=False)
    for name in answer.displaced:
        text = f"{name} has less than its pods would request: some would have to move"
        console.print(text, style="yellow", markup=False, highlight=False)
    for pod in answer.placed:
        console.print(f"{pod} gets a node then", style="green", markup=False, highlight=False)
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


def moves_summary(plan: RebalancePlan) -> Text:
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
