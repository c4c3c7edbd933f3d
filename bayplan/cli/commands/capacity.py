"""Capacity: `bayplan capacity`, how many more pods fit and what runs out first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from ...choices import DEFAULT_COPIES
from ..options.cluster_options import USAGE
from ..options.option_groups import option, option_group, takes_options
from ..options.scheduler_options import (
    PENDING,
    SHOW_ALL,
    Question,
    takes_question,
    warn,
)
from ..render.plain_data import ANSWER_FORM, AnswerForm, is_whole, print_answer
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from ...answers.capacity import Capacity
    from ...answers.measured import UseAgainstRequests
    from ...manifests.measured_use import MeasuredUse
    from ...manifests.timeline import InputObject


@option_group
class CapacityOptions:
    """The options of `bayplan capacity`, besides those of every question."""

    pod: list[str] = option(
        "--pod FILE[:RATIO]",
        "File or folder with a pod, a workload, or a PodGroup and its members to fit in; - is standard "
        "input. Several make a mix: a.yaml b.yaml:3 is three of b for each of a.",
        default=...,
    )
    nodes: list[str] | None = option(
        "--nodes NAME|KEY=VALUE",
        "Use only the node of this name, or the nodes with this label. May be given several times.",
    )
    limit: int | None = option(
        "--limit NUMBER",
        "Stop at this number of pods. Default: all are counted; where they have to be placed one after the "
        f"other, {DEFAULT_COPIES:,}.",
        min=1,
    )
    usage: list[str] | None = USAGE
    output: AnswerForm = ANSWER_FORM
    everything: bool = SHOW_ALL


@takes_question
@takes_options(CapacityOptions)
def capacity(question: Question, options: CapacityOptions) -> None:
    """Count the pods or pod groups that still fit, with their nodes and the resource that runs out first.

    The scheduler places copies, one after the other, until one does not fit; they preempt no pods. If only amounts
    matter, they are counted instead. Without -f the cluster is the one that kubectl talks to. Nothing is changed.

    Exit status: 0, 1 when not even one pod fits, 2 when the input is wrong.

    Example: bayplan capacity -f cluster.yaml --pod web.yaml --pod worker.yaml:3
    """
    from ...answers.capacity import find_capacity
    from ...answers.pod_kinds import read_pod_kinds
    from ..render.answer_tables import render_capacity

    with question.reading_more():
        kinds = read_pod_kinds(options.pod)
    remarks = [remark for kind in kinds for remark in kind.remarks]
    warn(remarks, question.options.strict)
    objects, use = question.manifests.objects, question.read_measured(options.usage)
    with progress_bar("placing") as on_pods:
        find = partial(
            find_capacity,
            kinds=kinds,
            settings=question.settings,
            nodes=options.nodes or (),
            limit=options.limit,
            as_is=question.options.as_is,
            on_progress=on_pods,
        )
        answer = find(objects, place_of=question.manifests.place_of)
        usage = None if use is None else _by_use(objects, use, find)
    print_answer(
        answer,
        "Capacity",
        options.output,
        lambda: [f"{kind.name} {kind.fits}" for kind in answer.kinds],
        lambda console: render_capacity(
            console, answer, is_whole(options.everything, options.output, console)
        ),
        [*question.remarks, *remarks],
        usage,
    )
    if not answer.rounds:
        raise typer.Exit(PENDING)


def _by_use(
    objects: Sequence[InputObject], use: MeasuredUse, find: Callable[..., Capacity]
) -> UseAgainstRequests:
    """The totals by use, and how many pods fit if requests equalled use."""
    from ...answers.measured import UseAgainstRequests, as_used

    usage, fits = UseAgainstRequests.of(objects, use), find(as_used(objects, use)).fits
    usage.by_use = {"fits": fits}
    verb = "pod would fit" if fits == 1 else "pods would fit"
    usage.conclusion = f"{fits:,} {verb} if running pods requested what they use"
    return usage
