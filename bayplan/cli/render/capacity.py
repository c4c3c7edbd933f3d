"""Render capacity: how many pods fit, on how many nodes, the resource that runs out, and the room left."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...answers.capacity import Capacity
from .cluster_totals import render_totals
from .consoles import conclude
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
