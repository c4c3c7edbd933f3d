"""Render capacity: how many fit, on how many nodes, what runs out, and what is left."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...answers.capacity import Capacity
from .tables import amount, count, hint, make_bar, new_table, section

MAX_ROWS = 12


def render_capacity(console: Console, answer: Capacity, everything: bool = False) -> None:
    """Print the answer; long tables are cut unless `everything`."""
    section(console, _kind_table(answer))
    histogram = list(answer.histogram().items())
    shown = histogram if everything else histogram[:MAX_ROWS]
    section(console, _histogram_table(shown))
    hint(console, len(histogram) - len(shown), "row")
    section(console, _resource_table(answer))
    if answer.first_refused:
        section(console, _refusal_table(answer))
        for kind in answer.kinds:
            if kind.members and kind.message:
                console.print(Text(f"one more {kind.name}: {kind.message}"))
    console.print(summary(answer))


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
    elif answer.first_refused:
        text += "; no resource runs out: nodes refuse for other reasons"
    return Text(text, style="bold green" if fits else "bold yellow")


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


def _kind_table(answer: Capacity) -> Table:
    table = new_table()
    has_groups = any(kind.members for kind in answer.kinds)
    table.add_column("POD OR GROUP" if has_groups else "POD", overflow="fold")
    for name in ("RATIO", *(("MEMBERS",) if has_groups else ()), "FITS", "ON NODES"):
        table.add_column(name, justify="right")
    table.add_column("ONE MORE", overflow="fold")
    for kind in answer.kinds:
        alone = "would fit by itself" if kind.fits_alone else "does not fit"
        more = "not asked" if answer.is_limited else alone
        members = (str(kind.members or 1),) if has_groups else ()
        numbers = (f"{kind.ratio:,}", *members, f"{kind.fits:,}", f"{len(kind.nodes):,}")
        table.add_row(Text(kind.name), *numbers, more)
    return table


def _histogram_table(rows: list[tuple[int, int]]) -> Table:
    table = new_table()
    table.add_column("MORE PODS", justify="right")
    table.add_column("ON NODES", justify="right")
    for number, nodes in rows:
        table.add_row(f"{number:,}", f"{nodes:,}")
    return table


def _resource_table(answer: Capacity) -> Table:
    table = new_table()
    table.add_column("RESOURCE")
    table.add_column("IN USE", no_wrap=True)
    for name in ("FREE", "OF"):
        table.add_column(name, justify="right")
    for room in answer.resources:
        if not room.allocatable:
            continue
        before, after = (used * 100 // room.allocatable for used in (room.before, room.after))
        bar = Text.assemble(*make_bar(room.before / room.allocatable, room.utilisation))
        bar.append(f" {before}%" if before == after else f" {before}→{after}%")
        free, whole = (amount(v, room.resource) for v in (room.free, room.allocatable))
        table.add_row(Text(room.resource), bar, free, whole)
    return table


def _refusal_table(answer: Capacity) -> Table:
    table = new_table()
    table.add_column("NODES", justify="right")
    table.add_column("REFUSE ONE MORE", overflow="fold")
    for kind in answer.kinds:
        for reason, nodes in kind.refusals.most_common():
            name = f"{kind.name}: " if len(answer.kinds) > 1 else ""
            table.add_row(f"{nodes:,}", Text(f"{name}{reason}"))
    return table
