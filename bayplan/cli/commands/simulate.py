"""Simulate: `bayplan simulate`, the scheduler on manifests instead of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import typer

from ...errors import InputError
from ..command_table import CommandApp, PlainCommand
from ..options.autoscaler_options import AutoscalerChoice, read_scaled_pools
from ..options.cluster_options import USAGE
from ..options.input_options import seconds_if_given
from ..options.option_groups import option, option_group, takes_options
from ..options.output_files import STDOUT, stream_target, whole_target
from ..options.scheduler_options import PENDING, SHOW_ALL, Question, takes_cluster
from ..render.consoles import stdout_console
from ..render.html import html_to
from ..render.plain_data import (
    ANSWER_FORM,
    AnswerForm,
    cluster_pieces,
    form_of,
    pod_line,
    print_answer,
)
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...answers.measured import UseAgainstRequests
    from ...observe.scheduler_metrics import SchedulerMetrics
    from ...sim import Simulation, SimulationReport, TraceEntry
    from ...sim.settings import Settings

app = CommandApp()
NARROWEST, WIDEST = 20, 60
WHAT_WIDTH = len("terminating")
TIME_WIDTH = len("00:00:00")
STYLES = {
    "bound": "green",
    "finished": "blue",
    "refused": "yellow",
    "failed": "red",
    "waiting": "cyan",
    "selected": "cyan",
    "reserved": "cyan",
    "lost": "red",
    "preempted": "magenta",
    "terminating": "magenta",
    "deleted": "magenta",
    "removed": "magenta",
}


class SimulateCommand(PlainCommand):
    """Lets `--trace` stand alone: then the trace goes to standard output."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare `--trace` its value before the options are read."""
        spelled = []
        for i, arg in enumerate(args):
            following = args[i + 1] if i + 1 < len(args) else "--"
            is_bare = arg == "--trace" and following.startswith("-") and following != STDOUT
            spelled.append(f"--trace={STDOUT}" if is_bare else arg)
        return super().parse_args(ctx, spelled)


@option_group
class SimulateOptions(AutoscalerChoice):
    """The options of `bayplan simulate` besides those of a question."""

    output: AnswerForm = ANSWER_FORM
    explain: bool = option("--explain", "Show for each pod what every plugin answered.")
    everything: bool = SHOW_ALL
    usage: list[str] | None = USAGE
    until: str | None = option(
        "--until DURATION",
        "Run for this time in the cluster, such as 90s or 2h. Default: until nothing changes any more.",
    )
    pod_max_in_unschedulable_pods_duration: str | None = option(
        "--pod-max-in-unschedulable-pods-duration DURATION",
        "How long a pod stays unschedulable before it is tried again without an event. Default: 5m.",
    )
    trace: str | None = option(
        "--trace [FILE]",
        "Write each event with its time to a file, or, without FILE, before the result.",
    )
    metrics: str | None = option(
        "--metrics FILE",
        "Write the scheduler's metrics to a file at the end, in the text format of Prometheus; "
        "- is standard output, after the result.",
    )
    to: Path | None = option(
        "--to FILE",
        "Write the resulting cluster to a file that every command reads: JSON if the name ends with .json, "
        "the format of snapshots if it ends with .bay, else YAML; gzipped if .gz follows.",
    )
    html: Path | None = option(
        "--html FILE",
        "Write a page about the run to a file, which opens in a browser without a network.",
    )


@app.command(cls=SimulateCommand)
@takes_cluster
@takes_options(SimulateOptions)
def simulate(question: Question, options: SimulateOptions) -> None:
    """Place pods on a cluster that manifests describe, and show where they go.

    Pods with spec.nodeName run already; all others are scheduled in queue order. Deployments and other workloads become
    their pods. The files may be what "kubectl get nodes,pods -A -o yaml" prints, and may contain a Timeline of changes.
    Time is simulated. Without -f the cluster is the one that kubectl talks to; nothing is written to it.

    In the table of nodes, 50→77% is the share of the allocatable amount that pods request, before and after the run,
    and - means that the node has none of the resource. In the table of pods, the SCORE - means that only one node was
    feasible.

    Exit status: 0 when every pod has a node, 1 when some are pending, 2 when the input is wrong.

    With --pools an autoscaler adds nodes of these pools for pending pods, as in
    "bayplan simulate -f workload.yaml --pools pools.yaml --autoscaler karpenter --until 24h".

    Example: bayplan simulate -f cluster.yaml -f workload.yaml --explain
    """
    until_s = seconds_if_given("--until", options.until)
    settings = question.settings
    flag = "--pod-max-in-unschedulable-pods-duration"
    waits_s = seconds_if_given(flag, options.pod_max_in_unschedulable_pods_duration)
    if waits_s is not None:
        settings = settings.with_unschedulable_limit(waits_s)
    use = question.read_measured(options.usage)
    with (
        metrics_to(options.metrics) as write_metrics,
        html_to(options.html) as page,
        cluster_to(options.to) as write_cluster,
    ):
        with trace_to(options.trace, options.output is AnswerForm.JSON) as writer:
            simulation = _simulation(question, settings, options, writer)
            if use is None:
                question.manifests.drop_running()
            page.follow("", simulation)
            report = _run(simulation, writer, until_s)
        page.write(simulation, settings, report, question.sources, use)
        write_cluster(simulation)
        usage = None
        if use is not None:
            from ...answers.measured import UseAgainstRequests

            usage = UseAgainstRequests.of(question.manifests.objects, use)
        print_report(report, options, question, usage)
        write_metrics(simulation.scheduler.metrics)
    if not report.is_complete:
        raise typer.Exit(PENDING)


def _simulation(
    question: Question, settings: Settings, options: SimulateOptions, writer: TraceWriter | None
) -> Simulation:
    """The simulation, with an autoscaler if there are pools."""
    manifests = question.manifests
    more: dict[str, Any] = {"explain": options.explain, "trace": writer}
    chosen = options.read_autoscaler(settings.seed)
    if chosen is None or options.pools is None:
        if options.instance_types is not None:
            raise InputError("--instance-types: expected --pools with it; got none")
        return settings.simulation(manifests.objects, manifests.place_of, **more)
    from ...autoscaling import autoscaled

    reading = read_scaled_pools(options.pools, options.instance_types, manifests.objects)
    return autoscaled(
        settings, manifests.objects, reading.pools, chosen, manifests.place_of, **more
    )


@contextmanager
def cluster_to(path: Path | None) -> Iterator[Callable[[Simulation], None]]:
    """A writer of the cluster of a simulation to the file; InputError, at once, when it cannot be written."""
    if path is None:
        yield lambda simulation: None
        return
    with whole_target("--to", path) as file:

        def write(simulation: Simulation) -> None:
            for piece in cluster_pieces(simulation.result_trees(), form_of(path.name)):
                file.write(piece)

        yield write


def _run(
    simulation: Simulation, writer: TraceWriter | None, until_s: float | None
) -> SimulationReport:
    """Run it, with a progress bar unless the trace goes to the screen."""
    if writer is not None:
        names = (len(pod.key) for pod in simulation.cluster.list("Pod"))
        writer.make_room(max(names, default=0))
        if writer.is_stdout:
            return simulation.run(until_s=until_s)
    with progress_bar("scheduling") as on_pods:
        return simulation.run(on_pods, until_s)


def print_report(
    report: SimulationReport,
    options: SimulateOptions,
    question: Question,
    usage: UseAgainstRequests | None = None,
) -> None:
    """Print the report in the chosen format, with the `usage` of the cluster before it.

    Rows and names are those of the namespace of -n; documents have all pods.
    """
    from ..render.run_tables import of_namespace, render_report

    namespace = question.options.namespace
    shown = of_namespace(report, namespace)

    def render(console: Console) -> None:
        from ..render.plugin_results import render_explanations

        wide = options.output is AnswerForm.WIDE
        details = options.everything or wide
        everything = details or not console.is_terminal
        if options.explain:
            render_explanations(console, shown, details)
        render_report(
            console,
            report,
            wide=wide,
            everything=everything,
            details=details,
            namespace=namespace,
        )

    pods = ((one.pod.key, one.attempt.node_name if one.is_placed else "") for one in shown.pods)
    names = (pod_line(*pod) for pod in pods)
    print_answer(report, "", options.output, lambda: names, render, question.remarks, usage)


WriteMetrics: TypeAlias = "Callable[[SchedulerMetrics], None]"


@contextmanager
def metrics_to(target: str | None) -> Iterator[WriteMetrics]:
    """A writer of metrics to a file, or to standard output for `-`; nowhere for None.

    A file that cannot be written is reported at once; a run that fails leaves the former content.
    """
    if target is None:
        yield lambda metrics: None
    elif target == STDOUT:
        yield lambda metrics: _write(sys.stdout.write, metrics)
    else:
        with whole_target("--metrics", Path(target)) as file:
            yield lambda metrics: _write(file.write, metrics)


def _write(write: Callable[[str], int], metrics: SchedulerMetrics) -> None:
    write(metrics.render())


class TraceWriter:
    """Writes entries as aligned lines, in colour on a terminal, or as JSON lines."""

    def __init__(self, stream: IO[str], console: Console | None, as_json: bool) -> None:
        self._stream = stream
        self._console = console
        self._as_json = as_json
        self._width = NARROWEST
        self.is_stdout = stream is sys.stdout

    def make_room(self, longest_name: int) -> None:
        """Make the column of names at least this wide."""
        self._width = min(max(self._width, longest_name), WIDEST)

    def __call__(self, entry: TraceEntry) -> None:
        """Write one entry."""
        self.make_room(len(entry.subject))
        if self._as_json:
            self._stream.write(json_line(entry))
        elif self._console is not None:
            from rich.text import Text

            style = STYLES.get(entry.what, "")
            self._console.print(Text(text_line(entry, self._width), style=style), soft_wrap=True)
        else:
            self._stream.write(text_line(entry, self._width) + "\n")


@contextmanager
def trace_to(target: str | None, as_json: bool) -> Iterator[TraceWriter | None]:
    """A writer to a file, or to standard output for `-`; None when there is nothing to write to."""
    if target is None:
        yield None
    elif target == STDOUT:
        console = stdout_console()
        yield TraceWriter(sys.stdout, console if console.is_terminal else None, as_json)
        if not as_json:
            sys.stdout.write("\n")
    else:
        with stream_target("--trace", target) as stream:
            yield TraceWriter(stream, None, as_json)


def text_line(entry: TraceEntry, width: int) -> str:
    """`00:00:05  bound        shop/web-1  to worker-a1`."""
    time = clock_time(entry.time_s)
    line = f"{time:<{TIME_WIDTH}}  {entry.what:<{WHAT_WIDTH}}  {entry.subject:<{width}}"
    return f"{line}  {entry.details}" if entry.details else line.rstrip()


def json_line(entry: TraceEntry) -> str:
    """The entry as one line of JSON."""
    import msgspec

    return msgspec.json.encode(entry.to_dict()).decode() + "\n"


def clock_time(seconds: float) -> str:
    """Hours, minutes and seconds since the start; fractions only where there are any."""
    millis = round(seconds * 1000)
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, fraction = divmod(rest, 1000)
    text = f"{hours:02d}:{minutes:02d}:{whole:02d}"
    return f"{text}.{fraction:03d}" if fraction else text
