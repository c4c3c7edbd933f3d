"""Sweep: `bayplan research sweep`, many simulations on many cores or machines."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.own_documents import API_VERSION
from ..options.input_options import takes_input_limit
from ..render.consoles import stderr_console, stdout_console, written_to_stdout
from ..render.plain_data import print_json_document, print_yaml_document
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from ...sweeps import Sweep

FAILED = 1
"""The exit status when a run failed."""


class SweepForm(StrEnum):
    """Output formats of the results."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file of kind Sweep, YAML or JSON.")
]
ToOption = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE",
        help="The table of results, .csv or .parquet. Default: the name of the sweep with .csv, in the current folder.",
        show_default=False,
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        metavar="NUMBER",
        min=1,
        help="Runs at a time. Default: one per core.",
        show_default=False,
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on the Ray cluster at this address; local starts one on this machine.",
        show_default=False,
    ),
]
RetryOption = Annotated[
    bool, typer.Option("--retry-failed", help="Repeat the runs that failed before.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="List the runs, and which of them are done.")
]
FormOption = Annotated[
    SweepForm,
    typer.Option(
        "-o", "--output", metavar="FORM", help=f"How to print it: {', '.join(SweepForm)}."
    ),
]


@takes_input_limit
def sweep(
    file: FileArgument,
    to: ToOption = None,
    jobs: JobsOption = None,
    ray: RayOption = None,
    retry_failed: RetryOption = False,
    dry_run: DryRunOption = False,
    output: FormOption = SweepForm.TABLE,
) -> None:
    """Simulate many inputs, configurations and seeds, and collect what came of them.

    Results are written as they come. A run is named by a hash of all that it depends on, and is not repeated: a sweep
    that was interrupted goes on where it was.

    Exit status: 0, 1 when a run failed, or 2 when the input is wrong.

    Example: bayplan research sweep sweep.yaml --to results.parquet
    """
    from ...sweeps import Sweep, read_sweep

    found = Sweep(read_sweep(file), to or Path(f"{file.stem}.csv"), retry_failed=retry_failed)
    if dry_run:
        _list(found, output)
        return
    with progress_bar("simulating") as on_runs:
        results = found.run(jobs=jobs, ray=ray, on_progress=on_runs)
    if output is SweepForm.TABLE:
        from ..render.sweep_table import render_results

        console = stdout_console()
        with written_to_stdout(console):
            render_results(console, results)
        stderr_console().print(f"{results.path}", style="dim", markup=False, soft_wrap=True)
    else:
        _print("SweepReport", results.to_dict(), output)
    if results.failed:
        raise typer.Exit(FAILED)


def _list(found: Sweep, output: SweepForm) -> None:
    """Print the runs, and which are done."""
    states = []
    for run in found.runs:
        result = found.result_of(run)
        states.append("missing" if result is None else "failed" if result.is_failed else "done")
    if output is not SweepForm.TABLE:
        pairs = zip(found.runs, states, strict=True)
        runs = [{**run.to_dict(), "status": state} for run, state in pairs]
        _print("SweepPlan", {"missing": len(found.missing), "runs": runs}, output)
        return
    from ..render.sweep_table import render_plan

    console = stdout_console()
    with written_to_stdout(console):
        render_plan(console, found.runs, states, len(found.missing))


def _print(kind: str, content: dict[str, object], output: SweepForm) -> None:
    show = print_json_document if output is SweepForm.JSON else print_yaml_document
    show({"apiVersion": API_VERSION, "kind": kind, **content})
