"""Replay: `bayplan replay`, the decisions in a recording judged, or made again."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import InputError
from ..options.config_options import (
    ConfigOption,
    FeatureGatesOption,
    KubernetesVersionOption,
    PluginFilesOption,
    SeedOption,
    read_settings,
)
from ..options.input_options import takes_input_limit
from ..options.scheduler_options import AnswerForm, AnswerOption
from ..render.consoles import stdout_console, written_to_stdout
from ..render.plain_data import print_json_document, print_yaml_document
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from ...answers.judged_decision import JudgedDecision
    from ...answers.judged_replay import JudgedReplay
    from ...sim.recording_file import Recording
    from ...sim.replay_report import ReplayReport
    from ...sim.settings import Settings

DIFFERS = 1


class FollowMode(StrEnum):
    """The state in which decisions are compared."""

    RECORDED = "recorded"
    OWN = "own"


@takes_input_limit
def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that `bayplan record` wrote.")
    ],
    follow: Annotated[
        FollowMode,
        typer.Option(
            "--follow",
            metavar="STATE",
            help="recorded: judge each decision in the cluster as it was then. own: schedule again, in the cluster as"
            " our own decisions leave it.",
        ),
    ] = FollowMode.RECORDED,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Give the account that `bayplan shadow` gives of a live cluster: same, sampled, other state or"
            " different, per scheduler, with what comparing all nodes would gain.",
        ),
    ] = False,
    config: ConfigOption = None,
    kubernetes_version: KubernetesVersionOption = "",
    feature_gates: FeatureGatesOption = "",
    plugins: PluginFilesOption = None,
    seed: SeedOption = None,
    output: AnswerOption = AnswerForm.TABLE,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show decisions that agree.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Accept a recording without an end.")
    ] = False,
) -> None:
    """Judge every decision in a recording, or schedule its pods again.

    With --follow recorded, each decision is held against the cluster as it was when it was made: the node has the
    highest total (same, or equal where several have it), or it differs, with the reason. Pods that were refused are
    judged, too. With --follow own, pods and nodes come, change and go as they did, in simulated time, and our own
    decisions take the place of the recorded ones. The same recording and options always give the same result. In the
    table, - means no node.

    With --judge, pods of all schedulers are judged; those without a profile of their name with the default one.

    Exit status: 0 when no decision differs, 1 when one does, 2 when the input is wrong.

    Example: bayplan replay run.jsonl.gz --config other.yaml
    """
    from ...config.releases import recorded_version
    from ...sim.recording_file import read_recording

    if judge and follow is FollowMode.OWN:
        raise InputError("--judge: expected --follow recorded; got --follow own")
    recorded = read_recording(recording, partial)
    version = kubernetes_version or recorded_version(recorded.objects)
    settings = read_settings(config, None, feature_gates, plugins, seed, version)
    if judge:
        _judge(recorded, settings, output, everything)
        return
    report: ReplayReport | JudgedReplay
    if follow is FollowMode.RECORDED:
        from ...answers.judged_replay import judge_recording

        with progress_bar("judging") as on_pods:
            report = judge_recording(recorded, settings, on_pods)
    else:
        from ...sim.replay import Replay

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


def _judge(recorded: Recording, settings: Settings, output: AnswerForm, everything: bool) -> None:
    """Print the account of the recorded decisions."""
    from ...answers.judged_decision import Agreement
    from ...answers.judged_replay import decision_tree
    from ...shadow.gain import compute_gain
    from ...shadow.report import report_tree
    from ...shadow.shadow_run import ShadowRun, shadow_recording
    from ..render.judged_decisions import render_account, render_decisions

    decisions: list[JudgedDecision] = []
    run = ShadowRun(
        recorded.objects, settings, on_decision=lambda decision, _: decisions.append(decision)
    )
    with progress_bar("judging") as on_pods:
        shadow_recording(recorded, run, on_pods)
    decisions.sort(key=lambda decision: decision.number)
    gain = compute_gain(run.account, run.view, settings)
    match output:
        case AnswerForm.JSON | AnswerForm.YAML:
            trees = [{"agreement": str(one.agreement), **decision_tree(one)} for one in decisions]
            tree = report_tree(run.account, gain, trees)
            (print_json_document if output is AnswerForm.JSON else print_yaml_document)(tree)
        case AnswerForm.NAME:
            differing = [one for one in decisions if one.agreement is Agreement.DIFFERENT]
            print_pods(one.pod.key for one in (decisions if everything else differing))
        case _:
            console = stdout_console()
            with written_to_stdout(console):
                if everything:
                    render_decisions(console, decisions)
                is_whole = everything or output is AnswerForm.WIDE
                render_account(console, run.account, gain, is_whole)
    if run.account.count_of(Agreement.DIFFERENT):
        raise typer.Exit(DIFFERS)


def print_report(report: ReplayReport | JudgedReplay, output: AnswerForm, everything: bool) -> None:
    """Print the comparison in the chosen format."""
    from ..render.recorded_decisions import chosen_decisions, render_replay

    match output:
        case AnswerForm.JSON:
            print_json_document(report.to_dict())
        case AnswerForm.YAML:
            print_yaml_document(report.to_dict())
        case AnswerForm.NAME:
            print_pods(one.pod.key for one in chosen_decisions(report, everything))
        case _:
            console = stdout_console()
            with written_to_stdout(console):
                is_wide = output is AnswerForm.WIDE
                render_replay(console, report, everything, is_wide)


def print_pods(keys: Iterable[str]) -> None:
    """Print `pod/<namespace>/<name>` per decision; a pod with several decisions once."""
    for key in dict.fromkeys(keys):
        print(f"pod/{key}")
