"""Bench command: measure the scheduler on workloads from data files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..errors import InputError
from ..sim.bench import (
    EventRun,
    PodRun,
    Request,
    Run,
    find_cases,
    make_workload,
    own_cases,
    read_cases,
    run_request,
)
from .consoles import stderr_console, stdout_console
from .failures import reports_failures
from .render_bench import event_table, pod_table


def complete_workload(incomplete: str) -> list[tuple[str, str]]:
    """Workloads for shell completion."""
    known = [(case.name, case.summary) for case in own_cases()]
    return [entry for entry in known if entry[0].startswith(incomplete)]


@reports_failures
def bench(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            help="Workload to run, may be repeated; --list names them. Default: all.",
            autocompletion=complete_workload,
        ),
    ] = None,
    nodes: Annotated[
        list[int] | None,
        typer.Option(
            "--nodes",
            "-n",
            min=1,
            help="Number of nodes, may be repeated. Default: the workload's.",
        ),
    ] = None,
    pods: Annotated[
        int | None,
        typer.Option("--pods", "-p", min=1, help="Number of pods. Default: the workload's."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Take the workloads from this file."),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="List the workloads and end.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write what was measured to this file.")
    ] = None,
) -> None:
    """Measure pods per second and memory, every node judged for every pod.

    Example: mooring bench --workload basic --nodes 5000 --pods 10000 --json bench.json
    """
    cases = own_cases() if file is None else read_cases(file)
    chosen = list(find_cases(cases, workload or ()))
    if json_file is not None and not json_file.parent.is_dir():
        raise InputError(
            f"--json: {json_file}: expected a folder that is there; got {json_file.parent}"
        )
    if list_only:
        for case in cases:
            typer.echo(f"{case.name:16} {case.summary}".rstrip())
        return
    source = None if file is None else str(file)
    counts: list[int | None] = [*nodes] if nodes else [None]
    requests = []
    for case, size in chosen:
        for count in counts:
            request = Request(case.name, size.name, source, count, pods)
            make_workload(case, request)  # what is wrong is said before the first run
            requests.append(request)
    runs = _run_all(requests)
    _print(runs)
    if json_file is not None:
        document = [run.as_dict() for run in runs]
        json_file.write_text(json.dumps(document, indent=2) + "\n")


def _run_all(requests: Sequence[Request]) -> list[Run]:
    console = stderr_console()
    runs: list[Run] = []
    for number, request in enumerate(requests, 1):
        size = "" if request.nodes is None else f", {request.nodes:,} nodes"
        with console.status(f"{request.case}{size} ({number} of {len(requests)})"):
            runs += run_request(request)
    return runs


def _print(runs: Sequence[Run]) -> None:
    console: Console = stdout_console()
    pods = [run for run in runs if isinstance(run, PodRun)]
    events = [run for run in runs if isinstance(run, EventRun)]
    if pods:
        console.print(pod_table(pods))
    if pods and events:
        console.print()
    if events:
        console.print(event_table(events))
