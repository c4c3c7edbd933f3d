"""Import trace: `bayplan research trace`, tables of nodes and pods made into manifests, and their simulation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...errors import InputError
from ..command_table import CommandApp
from ..options.config_options import PROVIDER, SchedulerChoice
from ..options.input_options import seconds_if_given, takes_input_limit
from ..options.option_groups import argument, option, option_group, takes_options
from ..options.output_files import STDOUT, whole_target
from ..options.scheduler_options import FILENAME, PENDING, read_cluster
from ..render.consoles import print_notes, say
from ..render.plain_data import (
    ANSWER_FORM,
    REPORT_FORM,
    AnswerForm,
    ReportForm,
    print_in_form,
    print_notices,
)
from ..render.progress_bar import progress_bar
from .import_published import POD_LIMIT, PUBLISHED, TO, write_objects

if TYPE_CHECKING:
    from rich.console import Console


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


@app.command("list", short_help="List the published traces that can be imported.")
def list_traces(output: AnswerForm = ANSWER_FORM) -> None:
    """List the published traces that can be imported, with their files and where their schema is described.

    Example: bayplan research trace list -o json
    """
    from ...sim.traces.open_trace import TRACE_FORMATS

    items = [each.to_dict() for each in TRACE_FORMATS]
    print_in_form(
        output,
        lambda: {"items": items},
        lambda console: _print_trace_list(console, items),
        lambda: [each.name for each in TRACE_FORMATS],
        "TraceFormatList",
    )


def _print_trace_list(console: Console, items: Sequence[dict[str, Any]]) -> None:
    for item in items:
        console.print(item["name"], style="bold", markup=False, end="")
        say(console, f": {item['about']}")
        say(console, f"  schema: {item['schema']}", "dim")
        for file in item["files"]:
            name = f"[{file['name']}]" if file["optional"] else file["name"]
            say(console, f"  {name}: {file['about']}")
    console.print("Files in [brackets] may be missing.", style="dim", markup=False)


@import_app.command("openb", short_help="Convert openb, a GPU cluster of 2023, to manifests.")
@takes_input_limit
def import_openb(
    folder: Path = argument("FOLDER", "The folder with the CSV files of the trace."),
    nodes: Path | None = option("--nodes FILE", "Another table of nodes."),
    pods: Path | None = option("--pods FILE", "Another table of pods."),
    demand: float | None = option(
        "--demand PERCENT",
        "Sample pods until they request this share of the GPUs, all created at the start. "
        "Default: every pod once, at its own time.",
    ),
    seed: int = option("--seed NUMBER", "Seed for sampling the pods.", default=0),
    pods_per_node: int | None = POD_LIMIT,
    to: str = TO,
) -> None:
    """Convert openb, Alibaba's GPU cluster of 2023 (cluster-trace-gpu-v2023), to manifests.

    A GPU is 1,000 of the resource bayplan.dev/gpu-milli; its model is the label bayplan.dev/gpu-model.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import openb traces/openb --to openb.json
    """
    from ...sim.traces import find_openb
    from ...sim.traces.trace_manifests import with_pod_limit

    if demand is not None and not 0 < demand <= 10_000:
        raise InputError(f"--demand: expected a percentage above 0; got {demand:g}")
    trace = find_openb(folder, nodes, pods)
    objects = trace.objects(None if demand is None else demand / 100, seed)
    write_objects(to, with_pod_limit(objects, pods_per_node))


@import_app.command("csv", short_help="Convert tables of your own to manifests.")
@takes_input_limit
def import_csv(
    nodes: Path | None = option("--nodes FILE", "A table with one node per line."),
    pods: Path | None = option("--pods FILE", "A table with one pod per line."),
    column: list[str] | None = option(
        "--column FIELD=COLUMN[:UNIT]",
        "The column of a field, and the unit of its numbers. May be given several times.",
    ),
    pods_per_node: int | None = POD_LIMIT,
    to: str = TO,
) -> None:
    """Convert tables of your own, gzipped or not, to manifests; the first line names the columns.

    Fields of nodes and pods: name, count, cpu, memory, any resource, label:KEY, annotation:KEY. Of pods also namespace,
    priority, scheduler, created-at, duration, and selector:KEY (values a|b) for nodes with that label.
    Other columns are left out.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import csv --pods jobs.csv --to jobs.json
    """
    from ...sim.traces import read_own_tables
    from ...sim.traces.own_tables import parse_columns
    from ...sim.traces.trace_manifests import MAX_PODS

    if nodes is None and pods is None:
        raise InputError("trace import csv: expected --nodes, --pods or both; got neither")
    if nodes is None and pods_per_node is not None:
        raise InputError("--pods-per-node: expected a table of nodes in --nodes; got none")
    columns = parse_columns(column or ())
    write_objects(to, read_own_tables(nodes, pods, columns, pods_per_node or MAX_PODS))
    if columns.unused:
        names = ", ".join(sorted(columns.unused))
        print_notes([f"columns that are no field were left out: {names}"])


@takes_input_limit
def generate_trace(
    file: Path = argument("FILE", "A file of kind WorkloadModel, YAML or JSON."),
    seed: int = option("--seed NUMBER", "Seed for drawing the workload.", default=0),
    to: str = TO,
) -> None:
    """Draw a workload from a model: nodes, jobs that arrive over time, and failures of nodes and zones.

    Exit status: 0, or 2 when the file is wrong.

    Example: bayplan research trace generate model.yaml --seed 1 --to day.jsonl
    """
    from ...sim.synthetic import generate, read_model

    write_objects(to, generate(read_model(file), seed))


@takes_input_limit
def fit_trace(
    files: list[str] = option(
        "-f, --filename FILE",
        "Manifests of nodes and pods, as an import writes them. May be given several times.",
        show_default=False,
        default=...,
    ),
    to: str = option(
        "--to FILE", "Where to write the model; - is standard output.", default=STDOUT
    ),
) -> None:
    """Fit a model to the pods of a trace: rate, time of day, bursts, requests and durations.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan research trace fit -f openb.json --to model.yaml
    """
    from ...sim import read_manifests
    from ...sim.synthetic import fit_model
    from ...yaml_tree import format_tree

    manifests = read_manifests(files)
    manifests.refuse_remarks()
    text = format_tree(fit_model(manifests.objects))
    if to == STDOUT:
        sys.stdout.write(text)
        return
    with whole_target("--to", Path(to)) as file:
        file.write(text)


@option_group
class TraceOptions(SchedulerChoice):
    """The options of `bayplan research trace simulate`."""

    trace: Path = argument(
        "TRACE",
        "Manifests as JSON lines, sorted by time, gzipped or not, as trace import writes them.",
    )
    results: Path | None = option(
        "--results FILE",
        "Write a row for each pod as it ends: JSON lines if the name ends with .jsonl, else CSV; gzipped if "
        "it ends with .gz.",
    )
    filename: list[Path] | None = FILENAME
    until: str | None = option(
        "--until DURATION",
        "Stop after this time in the cluster, such as 90s or 2h. Default: when nothing changes any more.",
    )
    algorithm_provider: str | None = PROVIDER
    output: ReportForm = REPORT_FORM


@takes_input_limit
@takes_options(TraceOptions)
def simulate_trace(options: TraceOptions) -> None:
    """Simulate a trace of any length, in memory for the pods that exist at a time.

    Objects are read at their times, and finished pods are removed. Decisions are those of "bayplan simulate"; the
    result is sums, quantiles and use over time. Nodes may be in the trace, or in the files of -f.

    Exit status: 0 when every pod had a node, 1 when some are pending, 2 when the input is wrong.

    Example: bayplan research trace simulate a.jsonl.gz --results pods.csv.gz
    """
    from ...sim import Manifests
    from ...sim.settings import reading_for
    from ...sim.streaming import StreamedSimulation, read_lines, write_rows

    until_s = seconds_if_given("--until", options.until)
    settings = options.settings(provider=options.algorithm_provider)
    with (
        reading_for(settings),
        write_rows(options.results) as sink,
        progress_bar("scheduling") as on_pods,
    ):
        manifests = read_cluster(options.filename).manifests if options.filename else Manifests()
        simulation = StreamedSimulation(
            read_lines(options.trace),
            sink,
            manifests.objects,
            place_of=manifests.place_of,
            **settings.scheduler(),
        )
        report = simulation.run_stream(on_pods, until_s)

    def render(console: Console) -> None:
        from ..render.run_tables import render_stream

        render_stream(console, report)
        print_notices(console, report.notices)

    print_in_form(options.output, report.to_dict, render)
    if not report.is_complete:
        raise typer.Exit(PENDING)


app.command("simulate", short_help="Simulate a trace of any length.")(simulate_trace)
app.command("generate", short_help="Draw a workload from a model.")(generate_trace)
app.command("fit", short_help="Fit a model to a trace.")(fit_trace)
for _name, _help, _command in PUBLISHED:
    import_app.command(_name, short_help=_help)(_command)
