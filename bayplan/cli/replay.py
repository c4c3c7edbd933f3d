"""Replay: `bayplan replay`, the pods of a recording scheduled again."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .config_options import (
    ConfigOption,
    FeatureGatesOption,
    PluginFilesOption,
    SeedOption,
    read_settings,
)
from .consoles import stdout_console, written_to_stdout
from .documents import print_json_document, print_yaml_document
from .input_options import takes_input_limit
from .progress import progress_bar

if TYPE_CHECKING:
    from ..sim.replay import ReplayReport

DIFFERS = 1


class ReplayOutput(StrEnum):
    """How the comparison is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


FORMS = ", ".join(ReplayOutput)


@takes_input_limit
def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that `bayplan record` wrote.")
    ],
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginFilesOption = None,
    seed: SeedOption = None,
    output: Annotated[
        ReplayOutput,
        typer.Option("-o", "--output", metavar="FORM", help=f"How to print it: {FORMS}."),
    ] = ReplayOutput.TABLE,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show pods that go to the same node.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Accept a recording without an end.")
    ] = False,
) -> None:
    """Schedule the pods of a recording again, and compare the nodes they get with those they got.

    Pods and nodes come, change and go as they did, in simulated time; the recorded scheduler's decisions are made
    again. The same recording and options always give the same result. In the table, - means that the pod had no node.

    Exit status: 0 when every pod goes where it went, 1 when one does not, 2 when the input is wrong.

    Example: bayplan replay run.jsonl.gz --config other.yaml
    """
    from ..sim.recording import read_recording
    from ..sim.replay import Replay

    settings = read_settings(config, None, feature_gates, plugins, seed)
    recorded = read_recording(recording, partial)
    with progress_bar("replaying") as on_pods:
        report = Replay(
            recorded,
            settings.config,
            seed=settings.seed,
            feature_gates=settings.feature_gates,
            plugins=settings.plugins,
        ).run(on_pods)
    print_report(report, output, everything)
    if report.differing:
        raise typer.Exit(DIFFERS)


def print_report(report: ReplayReport, output: ReplayOutput, everything: bool) -> None:
    """Print the comparison in the form asked for."""
    from .render.replay import render_replay, to_document

    match output:
        case ReplayOutput.JSON:
            print_json_document(to_document(report))
        case ReplayOutput.YAML:
            print_yaml_document(to_document(report))
        case _:
            console = stdout_console()
            with written_to_stdout(console):
                render_replay(console, report, everything)
