"""Import trace: `bayplan trace import`, tables of nodes and pods made into manifests."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..sim.traces import find_openb, parse_columns, read_own_tables, write_list
from .consoles import stderr_console
from .failures import reports_failures
from .targets import STDOUT, whole_target

HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(name="trace", help="Bring traces of real clusters in.", context_settings=HELP)
import_app = typer.Typer(name="import", help="Make manifests of a trace's tables.")
app.add_typer(import_app)

ToOption = Annotated[
    str,
    typer.Option(
        "--to", metavar="FILE", help="Where to write the manifests; - is standard output."
    ),
]


@import_app.command("openb", short_help="Make manifests of openb, a cluster with GPUs of 2023.")
@reports_failures
def import_openb(
    folder: Annotated[Path, typer.Argument(help="The folder with the CSV files of the trace.")],
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another table of nodes.", show_default=False),
    ] = None,
    pods: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another table of pods.", show_default=False),
    ] = None,
    demand: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            help="Draw pods until they ask for so much of the GPUs, all coming at the start. "
            "Default: every pod once, at its own time.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Draws the pods.")] = 0,
    to: ToOption = STDOUT,
) -> None:
    """Make manifests of openb, Alibaba's GPU cluster of 2023 (cluster-trace-gpu-v2023).

    A GPU is 1,000 of the resource bayplan.dev/gpu-milli; its model is the label bayplan.dev/gpu-model.
    Ends with 0, or with 2 when a file is wrong.

    Example: bayplan trace import openb traces/openb --demand 130 --to openb.json
    """
    if demand is not None and not 0 < demand <= 10_000:
        raise InputError(f"--demand: expected a percentage above 0; got {demand:g}")
    trace = find_openb(folder, nodes, pods)
    _write(to, trace.objects(None if demand is None else demand / 100, seed))


@import_app.command("csv", short_help="Make manifests of tables of your own.")
@reports_failures
def import_csv(
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table with a node to a line.", show_default=False),
    ] = None,
    pods: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table with a pod to a line.", show_default=False),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN[:UNIT]",
            help="Which column a field is in, and the unit of its numbers. May be given several times.",
            show_default=False,
        ),
    ] = None,
    to: ToOption = STDOUT,
) -> None:
    """Make manifests of tables of your own, gzipped or not; the first line names the columns.

    Fields of both: name, count, cpu, memory, any resource, label:KEY, annotation:KEY. Of pods also namespace,
    priority, scheduler, created-at, duration, and selector:KEY (values a|b) for nodes with that label.
    Other columns are left out. Ends with 0, or with 2 when a file is wrong.

    Example: bayplan trace import csv --pods jobs.csv --column cpu=cores --column memory=mem_mb:M --to jobs.json
    """
    if nodes is None and pods is None:
        raise InputError("trace import csv: expected --nodes, --pods or both; got neither")
    columns = parse_columns(column or ())
    _write(to, read_own_tables(nodes, pods, columns))
    if columns.unused:
        text = f"note: columns that are no field were left out: {', '.join(sorted(columns.unused))}"
        stderr_console().print(text, style="dim", markup=False, soft_wrap=True)


def _write(to: str, objects: Iterable[dict[str, Any]]) -> None:
    """Write all manifests, or none when one is wrong."""
    whole = list(objects)
    if to == STDOUT:
        write_list(sys.stdout, whole)
        return
    with whole_target("--to", Path(to)) as file:
        count = write_list(file, whole)
    stderr_console().print(f"{to}: {count:,} objects", style="dim", markup=False, soft_wrap=True)
