"""Simulate: `mooring simulate`, the scheduler on manifests instead of a cluster."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..config import load_config
from ..sim import Simulation, SimulationReport, read_manifests
from .consoles import stderr_console, stdout_console, written_to_stdout
from .failures import reports_failures
from .output import print_json, print_names, print_yaml
from .progress import progress_bar
from .render import render_report
from .render_explain import render_explanations

PENDING = 1


class Output(StrEnum):
    """How the result is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


FORMS = ", ".join(Output)


@reports_failures
def simulate(
    filename: Annotated[
        list[Path],
        typer.Option(
            "-f",
            "--filename",
            help="File or folder with manifests, YAML or JSON, also gzipped; - is standard input. "
            "May be given several times.",
            allow_dash=True,
            metavar="PATH",
            show_default=False,
        ),
    ],
    output: Annotated[
        Output,
        typer.Option("-o", "--output", metavar="FORM", help=f"How to print it: {FORMS}."),
    ] = Output.TABLE,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show for each pod what every plugin said.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all pods and nodes, however many.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration file.", show_default=False),
    ] = None,
    plugins: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Python file with plugins of your own. May be given several times.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Draws lots between equally good nodes.", show_default=False
        ),
    ] = None,
) -> None:
    """Place pods on a cluster that is described by manifests, and show where they go.

    Pods with spec.nodeName are running already; all others are scheduled in queue order.
    Deployments and other workloads become their pods. The files may be what
    "kubectl get nodes,pods -A -o yaml" prints.

    Ends with 0 when every pod found a node, 1 when some did not, 2 when the input is wrong.

    Example: mooring simulate -f cluster.yaml -f workload.yaml --explain
    """
    settings = load_config(config) if config else None
    with progress_bar("reading") as on_bytes:
        manifests = read_manifests(filename, on_bytes)
    _note_unused(manifests.unused)
    simulation = Simulation(
        manifests.objects,
        settings,
        seed=seed,
        plugins=[str(path) for path in plugins or ()],
        explain=explain,
        place_of=manifests.place_of,
    )
    with progress_bar("scheduling") as on_pods:
        report = simulation.run(on_pods)
    print_report(report, output, explain, everything)
    if not report.is_complete:
        raise typer.Exit(PENDING)


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


def _note_unused(unused: Counter[str]) -> None:
    """Say on standard error which objects were of no use."""
    if unused:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(unused.items()))
        total = unused.total()
        objects = "1 object has" if total == 1 else f"{total:,} objects have"
        text = f"note: {objects} no bearing on scheduling: {kinds}"
        stderr_console().print(text, style="dim", markup=False, soft_wrap=True)
