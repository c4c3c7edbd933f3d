"""Bench command: measure the scheduler on made-up workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import InputError
from ..sim.bench import BenchRun, run_bench
from ..sim.workloads import WORKLOADS
from .failures import reports_failures

DEFAULT_NODES = [1000, 5000]
DEFAULT_PODS = 10_000


def complete_workload(incomplete: str) -> list[tuple[str, str]]:
    """Workloads for shell completion."""
    return [(w.name, w.summary) for w in WORKLOADS.values() if w.name.startswith(incomplete)]


@reports_failures
def bench(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            help=f"Workload to run, may be repeated: {', '.join(WORKLOADS)}. Default: all.",
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
        if name not in WORKLOADS:
            raise InputError(f'--workload: expected one of {", ".join(WORKLOADS)}; got "{name}"')
    if json_file is not None and not json_file.parent.is_dir():
        raise InputError(
            f"--json: {json_file}: expected a folder that is there; got {json_file.parent}"
        )
    wanted = [(name, count) for name in workload or WORKLOADS for count in nodes or DEFAULT_NODES]
    progress = Console(stderr=True)
    runs: list[BenchRun] = []
    for number, (name, count) in enumerate(wanted, 1):
        with progress.status(f"{name}, {count} nodes ({number} of {len(wanted)})"):
            runs.append(run_bench(name, count, pods))
    Console().print(_table(runs))
    if json_file is not None:
        json_file.write_text(json.dumps([run.as_dict() for run in runs], indent=2) + "\n")


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
