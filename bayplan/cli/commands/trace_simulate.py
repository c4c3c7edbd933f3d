"""Trace simulate: `bayplan research trace simulate`, the scheduler on a trace of any length."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options.config_options import ProviderOption, SchedulerChoice
from ..options.input_options import seconds_if_given, takes_input_limit
from ..options.option_groups import takes_options
from ..options.scheduler_options import PENDING, FilenameOption, read_cluster
from ..render.answer_output import print_notices
from ..render.plain_data import ReportForm, ReportOption, print_in_form
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...sim.streaming import StreamReport


TraceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help="Manifests as JSON lines, sorted by time, gzipped or not, as trace import writes them.",
    ),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="FILE",
        help="Write a row for each pod as it ends: JSON lines if the name ends with .jsonl, else CSV; gzipped if "
        "it ends with .gz.",
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Stop after this time in the cluster, such as 90s or 2h. Default: when nothing changes any more.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TraceOptions(SchedulerChoice):
    """The options of `bayplan research trace simulate`."""

    trace: TraceArgument
    results: ResultsOption = None
    filename: FilenameOption = None
    until: UntilOption = None
    algorithm_provider: ProviderOption = None
    output: ReportOption = ReportForm.TABLE


@takes_input_limit
@takes_options(TraceOptions)
def simulate_trace(options: TraceOptions) -> None:
    """Simulate a trace in memory for the pods that are there at a time, however long it is.

    Objects are read as their time comes, and finished pods leave. Decisions are those of "bayplan simulate"; the result
    is sums, quantiles and use over time. Nodes may be in the trace, or in the files of -f.

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
            settings.config,
            place_of=manifests.place_of,
            seed=settings.seed,
            feature_gates=settings.feature_gates,
            plugins=settings.plugins,
        )
        report = simulation.run_stream(on_pods, until_s)
    print_in_form(options.output, report.to_dict, lambda console: _render(console, report))
    if not report.is_complete:
        raise typer.Exit(PENDING)


def _render(console: Console, report: StreamReport) -> None:
    from ..render.run_tables import render_stream

    render_stream(console, report)
    print_notices(console, report.notices)
