"""Import trace: `bayplan trace import`, tables of nodes and pods made into manifests."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from .commands import CommandApp
from .consoles import stderr_console
from .failures import reports_failures
from .targets import STDOUT, whole_target

app = CommandApp(
    name="trace",
    no_args_is_help=True,
    help="Convert traces of real clusters to manifests.",
    epilog="Example: bayplan trace import openb traces/openb --to openb.json",
)
import_app = CommandApp(
    name="import",
    no_args_is_help=True,
    help="Convert the tables of a trace to manifests.",
    epilog="Example: bayplan trace import openb traces/openb --to openb.json",
)
app.add_typer(import_app)

ToOption = Annotated[
    str,
    typer.Option(
        "--to", metavar="FILE", help="Where to write the manifests; - is standard output."
    ),
]


@import_app.command("openb", short_help="Convert openb, a GPU cluster of 2023, to manifests.")
@reports_failures
def import_openb(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The folder with the CSV files of the trace."),
    ],
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
            help="Sample pods until they request this share of the GPUs, all created at the start. "
            "Default: every pod once, at its own time.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Seed for sampling the pods.")] = 0,
    to: ToOption = STDOUT,
) -> None:
    """Convert openb, Alibaba's GPU cluster of 2023 (cluster-trace-gpu-v2023), to manifests.

    A GPU is 1,000 of the resource bayplan.dev/gpu-milli; its model is the label bayplan.dev/gpu-model.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan trace import openb traces/openb --to openb.json
    """
    from ..sim.traces import find_openb

    if demand is not None and not 0 < demand <= 10_000:
        raise InputError(f"--demand: expected a percentage above 0; got {demand:g}")
    trace = find_openb(folder, nodes, pods)
    _write(to, trace.objects(None if demand is None else demand / 100, seed))


@import_app.command("csv", short_help="Convert tables of your own to manifests.")
@reports_failures
def import_csv(
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table with one node per line.", show_default=False),
    ] = None,
    pods: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table with one pod per line.", show_default=False),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN[:UNIT]",
            help="The column of a field, and the unit of its numbers. May be given several times.",
            show_default=False,
        ),
    ] = None,
    to: ToOption = STDOUT,
) -> None:
    """Convert tables of your own, gzipped or not, to manifests; the first line names the columns.

    Fields of nodes and pods: name, count, cpu, memory, any resource, label:KEY, annotation:KEY. Of pods also namespace,
    priority, scheduler, created-at, duration, and selector:KEY (values a|b) for nodes with that label.
    Other columns are left out.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan trace import csv --pods jobs.csv --column memory=mem_mb:M
    """
    from ..sim.traces import parse_columns, read_own_tables

    if nodes is None and pods is None:
        raise InputError("trace import csv: expected --nodes, --pods or both; got neither")
    columns = parse_columns(column or ())
    _write(to, read_own_tables(nodes, pods, columns))
    if columns.unused:
        text = f"note: columns that are no field were left out: {', '.join(sorted(columns.unused))}"
        stderr_console().print(text, style="dim", markup=False, soft_wrap=True)


def _write(to: str, objects: Iterable[dict[str, Any]]) -> None:
    """Write all manifests, or none when one is wrong."""
    from ..sim.traces import write_list

    whole = list(objects)
    if to == STDOUT:
        write_list(sys.stdout, whole)
        return
    with whole_target("--to", Path(to)) as file:
        count = write_list(file, whole)
    stderr_console().print(f"{to}: {count:,} objects", style="dim", markup=False, soft_wrap=True)
