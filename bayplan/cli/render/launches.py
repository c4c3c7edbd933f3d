"""Launches: the nodes that an autoscaler launched, by type, and their price."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ...api.text.durations import format_duration
from ...sim import PodResult
from ...sim.autoscaling_record import HOUR_S, NODES, ScalingReport, waiting_times
from .cluster_totals import PICTURE_WIDTH, sparkline
from .table_layout import Listing
from .tables import count, price_text, section


def render_scaling(console: Console, report: ScalingReport, pods: Sequence[PodResult]) -> None:
    """Print nodes by type, costs, waiting times, evictions, and pods that no pool can run."""
    if report.nodes:
        section(console, _type_table(report))
        section(console, _series_table(report))
    for one in report.unplaceable:
        _print(console, f"{one.workload}: {count(one.count, 'pod')} fit no pool:", "red")
        for reason, types in one.reasons.items():
            _print(console, f"  {reason} ({', '.join(types)})", "red")
    for error in report.neglected:
        _print(console, f"error: {error}", "red")
    for remark in report.remarks:
        _print(console, f"note: {remark}", "yellow")
    reasons = ", ".join(f"{number:,} {why}" for why, number in report.evictions_by_reason().items())
    evicted = f"; {count(len(report.evictions), 'pod')} evicted ({reasons})" if reasons else ""
    _print(
        console,
        f"{report.autoscaler}: {count(report.launched, 'node')} launched, "
        f"{report.removed:,} removed{evicted}",
    )
    waits = waiting_times(pods)
    _print(
        console,
        "pods waited "
        + ", ".join(
            f"{format_duration(round(value, 1))} ({name})" for name, value in waits.items()
        ),
    )
    _print(console, cost_text(report), "bold")


def cost_text(report: ScalingReport) -> str:
    """`cost 12.40, 0.52 per hour in the mean`, and how many nodes have no price."""
    text = f"cost {report.cost:,.2f}"
    if report.end_s:
        text += f", {report.cost / report.end_s * HOUR_S:,.2f} per hour in the mean"
    if report.unpriced:
        text += f"; {count(report.unpriced, 'node')} without a price not counted"
    return text


def _type_table(report: ScalingReport) -> Listing:
    numbers = ("PRICE", "NODES", "PEAK", "AT THE END", "HOURS", "COST")
    table = Listing(("POOL", "TYPE", *numbers), right=numbers, styles={"TYPE": "cyan"})
    for row in report.by_type():
        name = f"{row['type']} (spot)" if row["spot"] else row["type"]
        table.add(
            row["pool"],
            name,
            price_text(row["price"]),
            f"{row['nodes']:,}",
            f"{row['peak']:,}",
            f"{row['end']:,}",
            f"{row['hours']:,.2f}",
            f"{row['cost']:,.2f}",
        )
    return table


def _series_table(report: ScalingReport) -> Listing:
    numbers = ("PEAK", "AT", "MEAN")
    table = Listing(("", *numbers, "OVER TIME"), right=numbers, styles={"OVER TIME": "blue"})
    for each in report.series()[:2]:
        is_count = each.name == NODES
        form = "{:,.1f}" if is_count else "{:,.2f}"
        table.add(
            "nodes" if is_count else "cost per hour",
            f"{each.peak:,.0f}" if is_count else form.format(each.peak),
            format_duration(round(each.peak_at_s)),
            form.format(each.mean),
            sparkline(each.samples(PICTURE_WIDTH), each.peak or 1.0),
        )
    return table


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
