"""Import trace: `bayplan research trace`, tables of nodes and pods made into manifests."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ...api.own_documents import API_VERSION
from ...errors import InputError
from ..command_table import CommandApp
from ..options.input_options import takes_input_limit
from ..options.output_files import STDOUT
from ..render.consoles import stdout_console, written_to_stdout
from ..render.plain_data import print_json_document, print_yaml_document
from .generate_trace import fit_trace, generate_trace
from .import_published import PUBLISHED, PodLimitOption, ToOption, print_trace_notes, write_objects
from .trace_simulate import simulate_trace

app = CommandApp(
    name="trace",
    no_args_is_help=True,
    help="Convert traces of real clusters to manifests, or draw workloads from models.",
    epilog="Example: bayplan research trace import openb traces/openb --to openb.json",
)
import_app = CommandApp(
    name="import",
    no_args_is_help=True,
    help="Convert the tables of a trace to manifests.",
    epilog="Example: bayplan research trace import openb traces/openb --to openb.json",
)
app.add_typer(import_app)


class TraceListOutput(StrEnum):
    """Output formats of the list of traces."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@app.command("list", short_help="List the published traces that can be imported.")
def list_traces(
    output: Annotated[
        TraceListOutput,
        typer.Option(
            "-o",
            "--output",
            metavar="FORM",
            help=f"How to print it: {', '.join(TraceListOutput)}.",
        ),
    ] = TraceListOutput.TABLE,
) -> None:
    """List the published traces that can be imported, with their files and where their schema is described.

    Example: bayplan research trace list -o json
    """
    match output:
        case TraceListOutput.JSON:
            print_json_document(_trace_list())
        case TraceListOutput.YAML:
            print_yaml_document(_trace_list())
        case TraceListOutput.NAME:
            print("\n".join(item["name"] for item in _trace_list()["items"]))
        case _:
            _print_trace_list()


def _trace_list() -> dict[str, Any]:
    from ...sim.traces import TRACE_FORMATS

    items = [
        {
            "name": each.name,
            "about": each.about,
            "schema": each.schema,
            "files": [
                {"name": file.name, "about": file.about, "optional": file.is_optional}
                for file in each.files
            ],
        }
        for each in TRACE_FORMATS
    ]
    return {"apiVersion": API_VERSION, "kind": "TraceFormatList", "items": items}


def _print_trace_list() -> None:
    console = stdout_console()
    with written_to_stdout(console):
        for item in _trace_list()["items"]:
            console.print(item["name"], style="bold", markup=False, end="")
            console.print(f": {item['about']}", markup=False, highlight=False, soft_wrap=True)
            console.print(f"  schema: {item['schema']}", style="dim", markup=False, soft_wrap=True)
            for file in item["files"]:
                name = f"[{file['name']}]" if file["optional"] else file["name"]
                console.print(
                    f"  {name}: {file['about']}", markup=False, highlight=False, soft_wrap=True
                )
        console.print("Files in [brackets] may be missing.", style="dim", markup=False)


@import_app.command("openb", short_help="Convert openb, a GPU cluster of 2023, to manifests.")
@takes_input_limit
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
    pods_per_node: PodLimitOption = None,
    to: ToOption = STDOUT,
) -> None:
    """Convert openb, Alibaba's GPU cluster of 2023 (cluster-trace-gpu-v2023), to manifests.

    A GPU is 1,000 of the resource bayplan.dev/gpu-milli; its model is the label bayplan.dev/gpu-model.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import openb traces/openb --to openb.json
    """
    from ...sim.traces import find_openb, with_pod_limit

    if demand is not None and not 0 < demand <= 10_000:
        raise InputError(f"--demand: expected a percentage above 0; got {demand:g}")
    trace = find_openb(folder, nodes, pods)
    objects = trace.objects(None if demand is None else demand / 100, seed)
    write_objects(to, with_pod_limit(objects, pods_per_node))


@import_app.command("csv", short_help="Convert tables of your own to manifests.")
@takes_input_limit
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
    pods_per_node: PodLimitOption = None,
    to: ToOption = STDOUT,
) -> None:
    """Convert tables of your own, gzipped or not, to manifests; the first line names the columns.

    Fields of nodes and pods: name, count, cpu, memory, any resource, label:KEY, annotation:KEY. Of pods also namespace,
    priority, scheduler, created-at, duration, and selector:KEY (values a|b) for nodes with that label.
    Other columns are left out.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import csv --pods jobs.csv --to jobs.json
    """
    from ...sim.traces import parse_columns, read_own_tables
    from ...sim.traces.trace_manifests import MAX_PODS

    if nodes is None and pods is None:
        raise InputError("trace import csv: expected --nodes, --pods or both; got neither")
    columns = parse_columns(column or ())
    write_objects(to, read_own_tables(nodes, pods, columns, pods_per_node or MAX_PODS))
    if columns.unused:
        names = ", ".join(sorted(columns.unused))
        print_trace_notes([f"columns that are no field were left out: {names}"])


app.command("simulate", short_help="Simulate a trace of any length.")(simulate_trace)
app.command("generate", short_help="Draw a workload from a model.")(generate_trace)
app.command("fit", short_help="Fit a model to a trace.")(fit_trace)
for _name, _help, _command in PUBLISHED:
    import_app.command(_name, short_help=_help)(_command)
