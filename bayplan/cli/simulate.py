"""Simulate: `bayplan simulate`, the scheduler on manifests instead of a cluster."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..api.durations import EXPECTED, parse_duration
from ..errors import InputError
from ..sim import Simulation, SimulationReport
from .consoles import stdout_console, written_to_stdout
from .html import html_to
from .metrics import metrics_to
from .options import PENDING, AllOption, Question, takes_question
from .output import print_json, print_names, print_yaml
from .progress import progress_bar
from .render import render_report
from .render_explain import render_explanations
from .targets import STDOUT
from .trace import TraceWriter, trace_to


class Output(StrEnum):
    """How the result is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


FORMS = ", ".join(Output)


class SimulateCommand(TyperCommand):
    """Lets `--trace` stand alone: then the trace goes to standard output."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare `--trace` its value before the options are read."""
        spelled = []
        for i, arg in enumerate(args):
            following = args[i + 1] if i + 1 < len(args) else "--"
            is_bare = arg == "--trace" and following.startswith("-") and following != STDOUT
            spelled.append(f"--trace={STDOUT}" if is_bare else arg)
        return super().parse_args(ctx, spelled)


@takes_question
def simulate(
    question: Question,
    output: Annotated[
        Output,
        typer.Option("-o", "--output", metavar="FORM", help=f"How to print it: {FORMS}."),
    ] = Output.TABLE,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show for each pod what every plugin said.")
    ] = False,
    everything: AllOption = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Stop when so much time has passed in the cluster, such as 90s or 2h. "
            "Default: when nothing changes any more.",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="[FILE]",
            help="Write each thing that happens, and when, to a file, or before the result.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the scheduler's metrics to a file at the end, in the text format of Prometheus; "
            "- is standard output, after the result.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page about the run to a file: one file, which opens in a browser without a network.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Place pods on a cluster that is described by manifests, and show where they go.

    Pods with spec.nodeName are running already; all others are scheduled in queue order.
    Deployments and other workloads become their pods. The files may be what
    "kubectl get nodes,pods -A -o yaml" prints. Time passes in no time: a Timeline among them
    says what comes, changes and goes when.

    Ends with 0 when every pod found a node, 1 when some did not, 2 when the input is wrong.

    Example: bayplan simulate -f cluster.yaml -f workload.yaml --explain
    """
    until_s = _parse_until(until)
    settings, manifests = question.settings, question.manifests
    with metrics_to(metrics) as write_metrics, html_to(html) as page:
        with trace_to(trace, output is Output.JSON) as writer:
            simulation = settings.simulation(
                manifests.objects, manifests.place_of, explain=explain, trace=writer
            )
            page.follow(simulation, settings)
            report = _run(simulation, writer, until_s)
        page.write(report, question.sources)
        print_report(report, output, explain, everything)
        write_metrics(simulation.scheduler.metrics)
    if not report.is_complete:
        raise typer.Exit(PENDING)


def _parse_until(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds is None:
        raise InputError(f'--until: {EXPECTED}; got "{text}"')
    return seconds


def _run(
    simulation: Simulation, writer: TraceWriter | None, until_s: float | None
) -> SimulationReport:
    """Run it, with a bar that shows how far it is, unless the trace on the screen does."""
    if writer is not None:
        names = (len(pod.key) for pod in simulation.cluster.list("Pod"))
        writer.make_room(max(names, default=0))
        if writer.is_stdout:
            return simulation.run(until_s=until_s)
    with progress_bar("scheduling") as on_pods:
        return simulation.run(on_pods, until_s)


def print_report(report: SimulationReport, output: Output, explain: bool, everything: bool) -> None:
    """Print the report in the form asked for."""
    match output:
        case Output.JSON:
            print_json(report)
        case Output.YAML:
            print_yaml(report)
        case Output.NAME:
            print_names(report)
        case _:
            console = stdout_console()
            wide = output is Output.WIDE
            everything = everything or wide or not console.is_terminal
            with written_to_stdout(console):
                if explain:
                    render_explanations(console, report, everything)
                render_report(console, report, wide=wide, everything=everything)
