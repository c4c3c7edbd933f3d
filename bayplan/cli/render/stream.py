"""Render stream: the sums of a simulation whose pods were streamed."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...api.text.durations import format_duration
from ...sim.streaming import StreamReport
from .cluster_totals import render_totals, render_use
from .node_names import NodeNames
from .pending_rows import render_pending
from .table_layout import Listing
from .tables import duration, section


def render_stream(console: Console, report: StreamReport) -> None:
    """Print totals, waiting times, pending pods, use over time and a summary."""
    render_totals(console, report.totals)
    numbers = ("MEAN", "P50", "P95", "P99", "MAX")
    table = Listing(("", *numbers), right=numbers)
    waits, slowdowns = report.waits.to_dict(), report.slowdowns.to_dict()
    table.add("waiting time", *(format_duration(waits[name.lower()]) for name in numbers))
    table.add("slowdown", *(f"{slowdowns[name.lower()]:.2f}" for name in numbers))
    section(console, table)
    names = NodeNames.of(console, ())
    render_pending(console, report.pending_groups, names, details=False, everything=False)
    render_use(console, report.use, report.time_s)
    console.print(_summary(report))


def _summary(report: StreamReport) -> Text:
    """`990 of 1,000 pods placed, 10 pending, on 7 nodes, 980 finished, 2h in 3 s`."""
    counts = report.counts
    parts = [report.headline()]
    parts += [f"{counts[name]:,} {name}" for name in ("preempted", "finished") if counts.get(name)]
    parts.append(f"{format_duration(report.time_s)} in {duration(report.seconds)}")
    return Text(", ".join(parts), style="bold green" if report.is_complete else "bold yellow")
