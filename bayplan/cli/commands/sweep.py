"""Sweep: `bayplan research sweep`, many simulations on many cores or machines."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..options.config_options import warn_once
from ..options.input_options import takes_input_limit
from ..options.option_groups import argument, option
from ..render.consoles import say, stderr_console
from ..render.plain_data import REPORT_FORM, ReportForm, print_in_form
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...sweeps import Sweep

FAILED = 1
"""The exit status when a run failed."""


@takes_input_limit
def sweep(
    file: Path = argument("FILE", "A file of kind Sweep, YAML or JSON."),
    to: Path | None = option(
        "--to FILE",
        "The table of results, .csv or .parquet. Default: the name of the sweep with .csv, in the current folder.",
    ),
    jobs: int | None = option("-j, --jobs NUMBER", "Runs at a time. Default: one per core.", min=1),
    ray: str | None = option(
        "--ray ADDRESS", "Run on the Ray cluster at this address; local starts one on this machine."
    ),
    retry_failed: bool = option("--retry-failed", "Repeat the runs that failed before."),
    dry_run: bool = option("--dry-run", "List the runs, and which of them are done."),
    output: ReportForm = REPORT_FORM,
) -> None:
    """Simulate many inputs, configurations and seeds, and collect the results.

    Results are written when a run ends. A run is named by a hash of its inputs, and is not repeated: an interrupted
    sweep continues where it stopped.

    Exit status: 0, 1 when a run failed, or 2 when the input is wrong.

    Example: bayplan research sweep sweep.yaml --to results.parquet
    """
    from ...sweeps import Sweep, read_sweep

    found = Sweep(read_sweep(file), to or Path(f"{file.stem}.csv"), retry_failed=retry_failed)
    if dry_run:
        _list(found, output)
        return
    # Ray prints the last log lines of a lost machine to standard output, which is for the results.
    with progress_bar("simulating") as on_runs, redirect_stdout(sys.stderr):
        results = found.run(jobs=jobs, ray=ray, on_progress=on_runs)
    from ..render.sweep_table import render_results

    def show(console: Console) -> None:
        render_results(console, results)

    print_in_form(output, results.to_dict, show, kind="SweepReport")
    for warning in results.warnings:
        warn_once(warning)
    if output is ReportForm.TABLE:
        say(stderr_console(), f"{results.path}", "dim")
    if results.failed:
        raise typer.Exit(FAILED)


def _list(found: Sweep, output: ReportForm) -> None:
    """Print the runs, and which are done."""
    from ..render.sweep_table import render_plan

    states = []
    for run in found.runs:
        result = found.journal.results.get(run.id)
        states.append("missing" if result is None else "failed" if result.is_failed else "done")

    def content() -> dict[str, object]:
        pairs = zip(found.runs, states, strict=True)
        runs = [{**run.to_dict(), "status": state} for run, state in pairs]
        return {"missing": len(found.missing), "runs": runs}

    def render(console: Console) -> None:
        render_plan(console, found.runs, states, len(found.missing))

    print_in_form(output, content, render, kind="SweepPlan")
