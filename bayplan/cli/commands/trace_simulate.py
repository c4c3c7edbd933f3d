"""Trace simulate: `bayplan research trace simulate`, the scheduler on a trace of any length."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.text.durations import EXPECTED, parse_duration
from ...errors import InputError
from ..options.config_options import (
    ConfigOption,
    FeatureGatesOption,
    KubernetesVersionOption,
    PluginFilesOption,
    ProviderOption,
    SeedOption,
    read_settings,
)
from ..options.input_options import takes_input_limit
from ..options.scheduler_options import PENDING, FilenameOption, read_cluster
from ..render.answer_output import print_notices
from ..render.consoles import stdout_console, written_to_stdout
from ..render.plain_data import print_json_document, print_yaml_document
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from ...sim.streaming import StreamReport


class StreamOutput(StrEnum):
    """Output formats of the sums."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


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
        show_default=False,
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Stop after this time in the cluster, such as 90s or 2h. Default: when nothing changes any more.",
        show_default=False,
    ),
]
FormOption = Annotated[
    StreamOutput,
    typer.Option(
        "-o", "--output", metavar="FORM", help=f"How to print it: {', '.join(StreamOutput)}."
    ),
]


@takes_input_limit
def simulate_trace(
    trace: TraceArgument,
    results: ResultsOption = None,
    filename: FilenameOption = None,
    until: UntilOption = None,
    config: ConfigOption = None,
    algorithm_provider: ProviderOption = None,
    kubernetes_version: KubernetesVersionOption = "",
    feature_gates: FeatureGatesOption = "",
    plugins: PluginFilesOption = None,
    seed: SeedOption = None,
    output: FormOption = StreamOutput.TABLE,
) -> None:
    """Simulate a trace in memory for the pods that are there at a time, however long it is.

    Objects are read as their time comes, and finished pods leave. Decisions are those of "bayplan simulate"; the result
    is sums, quantiles and use over time. Nodes may be in the trace, or in the files of -f.

    Exit status: 0 when every pod had a node, 1 when some are pending, 2 when the input is wrong.

    Example: bayplan research trace simulate a.jsonl.gz --results pods.csv.gz
    """
    from ...sim import Manifests
    from ...sim.settings import reading_for
    from ...sim.streaming import StreamedSimulation, read_lines, write_rows

    until_s = None if until is None else parse_duration(until)
    if until is not None and until_s is None:
        raise InputError(f'--until: {EXPECTED}; got "{until}"')
    settings = read_settings(
        config, algorithm_provider, feature_gates, plugins, seed, kubernetes_version
    )
    with reading_for(settings), write_rows(results) as sink, progress_bar("scheduling") as on_pods:
        manifests = read_cluster(filename).manifests if filename else Manifests()
        simulation = StreamedSimulation(
            read_lines(trace),
            sink,
            manifests.objects,
            settings.config,
            place_of=manifests.place_of,
            seed=settings.seed,
            feature_gates=settings.feature_gates,
            plugins=settings.plugins,
        )
        report = simulation.run_stream(on_pods, until_s)
    _print(report, output)
    if not report.is_complete:
        raise typer.Exit(PENDING)


def _print(report: StreamReport, output: StreamOutput) -> None:
    match output:
        case StreamOutput.JSON:
            print_json_document(report.to_dict())
        case StreamOutput.YAML:
            print_yaml_document(report.to_dict())
        case _:
            from ..render.stream import render_stream

            console = stdout_console()
            with written_to_stdout(console):
                render_stream(console, report)
                print_notices(console, report.notices)
