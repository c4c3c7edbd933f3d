"""Replay: `bayplan replay`, the decisions in a recording judged, or made again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...choices import Follow
from ...errors import InputError
from ..options.config_options import EvidenceChoice, SchedulerChoice
from ..options.input_options import takes_input_limit
from ..options.option_groups import argument, option, option_group, takes_options
from ..render.plain_data import ANSWER_FORM, AnswerForm, print_in_form
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...answers.judged_decision import JudgedDecision
    from ...answers.judged_replay import JudgedReplay
    from ...shadow.shadow_run import ShadowRun
    from ...sim.recording_file import Recording
    from ...sim.replay_report import ReplayReport
    from ...sim.settings import Settings

DIFFERS = 1


@option_group
class ReplayOptions(EvidenceChoice, SchedulerChoice):
    """The options of `bayplan replay`."""

    recording: Path = argument("FILE", "A file that `bayplan record` wrote.")
    follow: Follow = option(
        "--follow STATE",
        "recorded: judge each decision in the cluster as it was then. own: schedule again, in the cluster as"
        " our own decisions leave it.",
        default=Follow.RECORDED,
    )
    judge: bool = option(
        "--judge",
        "Give the account that `bayplan shadow` gives of a live cluster: same, sampled, other state or"
        " different, per scheduler, with what comparing all nodes would gain.",
    )
    output: AnswerForm = ANSWER_FORM
    everything: bool = option("--all", "Also show decisions that agree.")
    partial: bool = option("--partial", "Accept a recording without an end.")


@takes_input_limit
@takes_options(ReplayOptions)
def replay(options: ReplayOptions) -> None:
    """Judge every decision in a recording, or schedule its pods again.

    With --follow recorded, each decision is compared with the cluster as it was when it was made: the node has the
    highest total (same, or equal where several have it), or it differs, with the reason. Pods that were refused are
    judged, too. With --follow own, pods and nodes are added, changed and deleted as recorded, in simulated time, and
    our own decisions take the place of the recorded ones. The same recording and options always give the same result.
    In the table, - means no node.

    With --judge, pods of all schedulers are judged; pods whose scheduler has no profile are judged with the default
    one.

    Exit status: 0 when no decision differs, 1 when one does, 2 when the input is wrong.

    Example: bayplan replay run.jsonl.gz --config other.yaml
    """
    from ...config.releases import recorded_version
    from ...sim.recording_file import read_recording

    if options.judge and options.follow is Follow.OWN:
        raise InputError("--judge: expected --follow recorded; got --follow own")
    if options.evidence is not None and not options.judge:
        raise InputError("--evidence: expected --judge with it; got none")
    options.check()
    recorded = read_recording(options.recording, options.partial)
    version = recorded_version(recorded.objects)
    settings = options.settings(version)
    if options.judge:
        _judge(recorded, settings, version, options)
        return
    report: ReplayReport | JudgedReplay
    if options.follow is Follow.RECORDED:
        from ...answers.judged_replay import judge_recording

        with progress_bar("judging") as on_pods:
            report = judge_recording(recorded, settings, on_pods)
    else:
        from ...sim.replay import Replay

        with progress_bar("replaying") as on_pods:
            report = Replay(recorded, settings).run(on_pods)
    from ..render.judged_decisions import render_replay

    everything, is_wide = options.everything, options.output is AnswerForm.WIDE
    shown = report.compared if everything else report.differing
    print_in_form(
        options.output,
        report.to_dict,
        lambda console: render_replay(console, report, everything, is_wide),
        lambda: pod_lines(one.pod.key for one in shown),
    )
    if report.differing:
        raise typer.Exit(DIFFERS)


def _judge(recorded: Recording, settings: Settings, version: str, options: ReplayOptions) -> None:
    """Print the account of the recorded decisions."""
    from ...shadow.shadow_run import ShadowRun, shadow_recording

    decisions: list[JudgedDecision] = []
    run = ShadowRun(
        recorded.objects,
        settings,
        evidence=options.folder(settings, version),
        on_decision=lambda decision, _: decisions.append(decision),
    )
    with progress_bar("judging") as on_pods:
        shadow_recording(recorded, run, on_pods)
    decisions.sort(key=lambda decision: decision.number)
    print_account(run, options.output, decisions, everything=options.everything)


def print_account(
    run: ShadowRun,
    output: AnswerForm,
    decisions: Sequence[JudgedDecision] | None = None,
    *,
    everything: bool = False,
) -> None:
    """Print the account of judged decisions, and end with 1 if one differs.

    `decisions` are in its document; with `everything` they are in its table and among its names, too.
    """
    from ...answers.judged_decision import Agreement
    from ...shadow.gain import compute_gain
    from ...shadow.report import report_tree
    from ..render.judged_decisions import render_account, render_decisions

    account, every = run.account, decisions or ()
    gain = compute_gain(account, run.view, run.settings)

    def document() -> dict[str, Any]:
        trees = [{"agreement": str(one.agreement), **one.to_dict()} for one in every]
        return report_tree(account, gain, None if decisions is None else trees)

    def render(console: Console) -> None:
        if everything:
            render_decisions(console, every)
        render_account(console, account, gain, everything or output is AnswerForm.WIDE)

    def names() -> list[str]:
        if decisions is None:
            return pod_lines(one.pod for one in account.differences)
        shown = (one for one in every if everything or one.agreement is Agreement.DIFFERENT)
        return pod_lines(one.pod.key for one in shown)

    print_in_form(output, document, render, names)
    if account.count_of(Agreement.DIFFERENT):
        raise typer.Exit(DIFFERS)


def pod_lines(keys: Iterable[str]) -> list[str]:
    """`pod/<namespace>/<name>` per decision; a pod with several decisions once."""
    return [f"pod/{key}" for key in dict.fromkeys(keys)]
