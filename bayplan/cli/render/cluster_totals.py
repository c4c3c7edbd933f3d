"""Cluster totals: capacity, use and free room of the whole cluster, and its use over time as a small picture."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ...api.text.durations import format_duration
from ...sim.totals import ClusterTotals, TotalsChange
from ...sim.use_over_time import PENDING, MeansOverTime
from .table_layout import Listing
from .tables import BAR_WIDTH, amount, make_bar, section, share_change, value_change

ALWAYS = ("cpu", "memory")
LEVELS = "▁▂▃▄▅▆▇█"
PICTURE_WIDTH = 40
ROUND_UP = 0.5 + 1e-6
"""Rounds halves up, also where a mean is a little less by the error of floating point."""
WIDE = 90
"""From this width on there is room for whole bars."""


def render_totals(console: Console, totals: TotalsChange, *, wide: bool = False) -> None:
    """Print a line per resource: cpu, memory and those in use, or all with `wide`."""
    before, after = totals.before, totals.after
    apart = _apart(before, after)
    numbers = {"FREE": "free", "OF": "allocatable", **apart}
    table = Listing(("RESOURCE", "IN USE", *numbers), right=numbers, styles={"RESOURCE": "cyan"})
    width = BAR_WIDTH if console.width >= WIDE else BAR_WIDTH - 4
    for name in totals.resources:
        old, new = before.of(name), after.of(name)
        if not (old.allocatable or new.allocatable):
            continue
        if wide or name in ALWAYS or old.used or new.used:
            shares = share_change(old.share, new.share)
            bar = [*make_bar(old.share, new.share, width), (f" {shares}", "")]
            changes = (
                value_change(*(amount(getattr(total, field), name) for total in (old, new)))
                for field in numbers.values()
            )
            table.add(name, bar, *changes)
    section(console, table, even_empty=True)


def _apart(before: ClusterTotals, after: ClusterTotals) -> dict[str, str]:
    """The columns for the room on nodes that are not open to every pod, by heading."""
    found = {}
    for field in ("tainted", "cordoned"):
        nodes = [getattr(totals, f"{field}_nodes") for totals in (before, after)]
        if any(nodes):
            number = value_change(*(f"{each:,}" for each in nodes))
            found[f"FREE ON\n{number} {field.upper()}"] = field
    return found


def render_use(console: Console, series: Sequence[MeansOverTime], time_s: float) -> None:
    """Print peak, mean and a picture of the values that changed over time; nothing if none did."""
    if all(each.is_flat for each in series):
        return
    headings = (f"OVER {format_duration(time_s)}", "PEAK", "AT", "MEAN", "")
    table = Listing(headings, right=("PEAK", "AT", "MEAN"), styles={"": "blue"})
    for each in series:
        is_count = each.name == PENDING
        peak, mean = (
            f"{value:,.1f}".removesuffix(".0") if is_count else f"{value * 100:.0f}%"
            for value in (each.peak, each.mean)
        )
        if each.peak:
            highest = each.peak if is_count else 1.0
            name = "pending pods" if is_count else each.name
            picture = sparkline(each.samples(PICTURE_WIDTH), highest)
            table.add(name, peak, format_duration(each.peak_at_s), mean, picture)
    section(console, table)


def sparkline(values: Sequence[float], highest: float) -> str:
    """A sign per value; a little is never shown as nothing."""
    top = len(LEVELS) - 1
    return "".join(
        LEVELS[min(max(int(value / highest * top + ROUND_UP), 1), top)] if value > 0 else LEVELS[0]
        for value in values
    )
