"""Trace simulate: `bayplan research trace simulate`, the scheduler on a trace of any length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..options.config_options import PROVIDER, SchedulerChoice
from ..options.input_options import seconds_if_given, takes_input_limit
from ..options.option_groups import argument, option, option_group, takes_options
from ..options.scheduler_options import FILENAME, PENDING, read_cluster
from ..render.answer_output import print_notices
from ..render.plain_data import REPORT_FORM, ReportForm, print_in_form
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...sim.streaming import StreamReport


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
