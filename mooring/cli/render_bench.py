"""Render bench: tables of what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ..sim.bench import EventRun, PodRun


def pod_table(runs: Sequence[PodRun]) -> Table:
    """Pods: how many, how fast, how much memory."""
    table = _table(
        "workload",
        ("nodes", "pods", "placed", "pods/s", "µs/pod", "p50 µs", "p99 µs", "MiB/10k pods"),
    )
    for run in runs:
        table.add_row(
            run.workload,
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.placed:,}",
            f"{run.pods_per_s:,.0f}",
            f"{run.us_per_pod:,.1f}",
            f"{run.p50_us:,.1f}",
            f"{run.p99_us:,.1f}",
            f"{run.mib_per_10k_pods:,.1f}",
        )
    return table


def event_table(runs: Sequence[EventRun]) -> Table:
    """Events: what each costs, and how many pods it brings back."""
    table = _table("event", ("nodes", "pods waiting", "µs/event", "moved/event"))
    for run in runs:
        table.add_row(
            run.event,
            f"{run.nodes:,}",
            f"{run.waiting:,}",
            f"{run.us_per_event:,.1f}",
            f"{run.moved_per_event:,.1f}",
        )
    return table


def _table(first: str, numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
