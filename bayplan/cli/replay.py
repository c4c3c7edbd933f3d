"""Replay: `bayplan replay`, a recorded cluster once more with a scheduler of one's own choice."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..api.own_documents import API_VERSION
from ..sim.recording import read_recording
from ..sim.replay import Comparison, Placement, Replay, ReplayReport, Verdict
from .config import FeatureGatesOption, PluginFilesOption
from .consoles import stdout_console, written_to_stdout
from .documents import print_json_document, print_yaml_document
from .failures import reports_failures
from .options import ConfigOption, SeedOption, read_settings
from .progress import progress_bar
from .render import count, hint, new_table, section

DIFFERS = 1
MAX_PODS = 40
STYLES = {
    Verdict.SAME: "",
    Verdict.OTHER: "cyan",
    Verdict.PENDING_HERE: "red",
    Verdict.PENDING_THEN: "green",
    Verdict.PENDING: "yellow",
}


class ReplayOutput(StrEnum):
    """How the comparison is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


FORMS = ", ".join(ReplayOutput)


@reports_failures
def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `bayplan record` has written.")
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
        bool, typer.Option("--all", help="Show all pods, also those that go to the same node.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Take a recording that was cut off for what there is.")
    ] = False,
) -> None:
    """Let a recorded cluster happen once more, and compare where pods went with where they go now.

    Pods and nodes come, change and go as they did, in virtual time; what the recorded scheduler decided is decided
    anew. The same recording and options always give the same result.

    Ends with 0 when every pod goes where it went, 1 when one does not, 2 when the input is wrong.

    Example: bayplan replay run.jsonl.gz --config other.yaml
    """
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
    match output:
        case ReplayOutput.JSON:
            print_json_document(to_document(report))
        case ReplayOutput.YAML:
            print_yaml_document(to_document(report))
        case _:
            console = stdout_console()
            with written_to_stdout(console):
                render_replay(console, report, everything)


def to_document(report: ReplayReport) -> dict[str, Any]:
    """The comparison as plain data; nothing in it depends on how long the replay took."""
    counts = report.counts()
    return {
        "apiVersion": API_VERSION,
        "kind": "ReplayReport",
        "summary": {
            "pods": len(report.pods),
            "same": counts[Verdict.SAME],
            "otherNode": counts[Verdict.OTHER],
            "pendingHere": counts[Verdict.PENDING_HERE],
            "pendingThen": counts[Verdict.PENDING_THEN],
            "pending": counts[Verdict.PENDING],
            "preempted": len(report.preempted),
            "time": round(report.time_s, 6),
        },
        "pods": [_pod(one) for one in report.pods],
        "preempted": [
            {"pod": victim.key, "node": victim.node_name, "for": preemptor.key}
            for victim, preemptor in report.preempted
        ],
    }


def _pod(one: Comparison) -> dict[str, Any]:
    return {
        "namespace": one.pod.namespace,
        "name": one.pod.name,
        "created": round(one.created_s, 6),
        "result": str(one.verdict),
        "recorded": _placement(one.recorded),
        "replayed": _placement(one.replayed),
        **({"lostWithNode": True} if one.is_lost else {}),
    }


def _placement(placement: Placement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    return {"node": placement.node_name, "time": round(placement.time_s, 6)}


def render_replay(console: Console, report: ReplayReport, everything: bool) -> None:
    """Print who goes elsewhere, and how many do."""
    pods = report.pods if everything else report.differing
    shown = pods if everything or not console.is_terminal else pods[:MAX_PODS]
    if shown:
        section(console, _table(shown))
        hint(console, len(pods) - len(shown), "pod")
    console.print(summary(report))


def summary(report: ReplayReport) -> Text:
    """`12 of 14 pods go where they went, 1 to another node, 1 is pending here only`."""
    counts = report.counts()
    parts = [f"{counts[Verdict.SAME]:,} of {count(len(report.pods), 'pod')} go where they went"]
    for verdict, words in (
        (Verdict.OTHER, "to another node"),
        (Verdict.PENDING_HERE, "pending here but not then"),
        (Verdict.PENDING_THEN, "pending then but not here"),
        (Verdict.PENDING, "pending both times"),
    ):
        if counts[verdict]:
            parts.append(f"{counts[verdict]:,} {words}")
    if report.preempted:
        parts.append(f"{count(len(report.preempted), 'pod')} preempted")
    return Text(", ".join(parts), style="bold yellow" if report.differing else "bold green")


def _table(pods: list[Comparison]) -> Table:
    table = new_table()
    for name in ("TIME", "POD", "RECORDED", "REPLAYED", "RESULT"):
        table.add_column(name, overflow="fold")
    for one in pods:
        result = "lost with its node" if one.is_lost else str(one.verdict)
        table.add_row(
            f"{one.created_s:.1f}s",
            Text(one.pod.key),
            _node(one.recorded),
            _node(one.replayed),
            Text(result, style=STYLES[one.verdict]),
        )
    return table


def _node(placement: Placement | None) -> Text:
    return Text(placement.node_name if placement else "-")
