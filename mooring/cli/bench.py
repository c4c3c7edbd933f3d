"""Bench command: measure the scheduler on made-up workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..errors import InputError
from ..sim.bench import BenchRun, run_bench
from ..sim.bench_events import EventRun, run_events
from ..sim.workloads import WORKLOADS
from .failures import reports_failures

DEFAULT_NODES = [1000, 5000]
DEFAULT_PODS = 10_000
EVENTS = "events"
NAMES = (*WORKLOADS, EVENTS)


def complete_workload(incomplete: str) -> list[tuple[str, str]]:
    """Workloads for shell completion."""
    known = [(w.name, w.summary) for w in WORKLOADS.values()]
    known.append((EVENTS, "what an event costs while pods wait"))
    return [entry for entry in known if entry[0].startswith(incomplete)]


@reports_failures
def bench(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            help=f"Workload to run, may be repeated: {', '.join(NAMES)}. Default: all.",
            autocompletion=complete_workload,
        ),
    ] = None,
    nodes: Annotated[
        list[int] | None,
        typer.Option(
            "--nodes", "-n", min=1, help="Number of nodes, may be repeated. Default: 1000 and 5000."
        ),
    ] = None,
    pods: Annotated[
        int, typer.Option("--pods", "-p", min=1, help="Number of pods.")
    ] = DEFAULT_PODS,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the runs to this file, as JSON.")
    ] = None,
) -> None:
    """Measure pods per second, every node judged for every pod.

    Example: mooring bench --workload basic --nodes 5000 --pods 10000 --json bench.json
    """
    for name in workload or ():
        if name not in NAMES:
            raise InputError(f'--workload: expected one of {", ".join(NAMES)}; got "{name}"')
    if json_file is not None and not json_file.parent.is_dir():
        raise InputError(
            f"--json: {json_file}: expected a folder that is there; got {json_file.parent}"
        )
    wanted = [(name, count) for name in workload or NAMES for count in nodes or DEFAULT_NODES]
    progress = Console(stderr=True)
    runs: list[BenchRun] = []
    events: dict[int, list[EventRun]] = {}
    for number, (name, count) in enumerate(wanted, 1):
        with progress.status(f"{name}, {count} nodes ({number} of {len(wanted)})"):
            if name == EVENTS:
                events[count] = run_events(count, pods)
            else:
                runs.append(run_bench(name, count, pods))
    console = Console()
    if runs:
        console.print(_table(runs))
    if runs and events:
        console.print()
    if events:
        console.print(_event_table(events))
    if json_file is not None:
        json_file.write_text(json.dumps(_document(runs, events), indent=2) + "\n")


def _document(runs: list[BenchRun], events: dict[int, list[EventRun]]) -> list[dict[str, Any]]:
    document = [run.as_dict() for run in runs]
    for nodes, measured in events.items():
        document += ({"workload": EVENTS, "nodes": nodes, **run.as_dict()} for run in measured)
    return document


def _event_table(events: dict[int, list[EventRun]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("event")
    for heading in ("nodes", "pods waiting", "µs/event", "moved/event"):
        table.add_column(heading, justify="right")
    for nodes, measured in events.items():
        for run in measured:
            numbers = (nodes, run.waiting, run.us_per_event, run.moved_per_event)
            table.add_row(run.event, *(f"{number:,g}" for number in numbers))
    return table


def _table(runs: list[BenchRun]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload")
    for heading in ("nodes", "pods", "placed", "pods/s", "µs/pod", "peak MiB"):
        table.add_column(heading, justify="right")
    for run in runs:
        table.add_row(
            run.workload,
            f"{run.nodes:,}",
            f"{run.pods:,}",
            f"{run.placed:,}",
            f"{run.pods_per_s:,.0f}",
            f"{run.us_per_pod:,.1f}",
            f"{run.peak_mib:,.1f}",
        )
    return table
