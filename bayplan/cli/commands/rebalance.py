"""Rebalance: `bayplan rebalance`, a plan of moves that make a cluster better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...choices import DEFAULT_MOVES, OBJECTIVES, Objective, expect_choice
from ..options.cluster_options import USAGE
from ..options.option_groups import completing, option
from ..options.scheduler_options import (
    SHOW_ALL,
    Question,
    takes_question,
)
from ..render.plain_data import ANSWER_FORM, AnswerForm, is_whole, print_answer
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from ...answers.measured import UseAgainstRequests
    from ...answers.rebalance import RebalancePlan
    from ...manifests.measured_use import MeasuredUse
    from ...manifests.timeline import InputObject


@takes_question
def rebalance(
    question: Question,
    objective: str = option(
        "--objective OBJECTIVE",
        f"What to improve: {', '.join(OBJECTIVES)}.",
        default=OBJECTIVES[0],
        autocompletion=completing(OBJECTIVES),
    ),
    max_moves: int = option(
        "--max-moves NUMBER", "Plan at most this number of moves.", default=DEFAULT_MOVES, min=1
    ),
    by_eviction: bool = option(
        "--by-eviction",
        "Only moves that an eviction leads to: the scheduler will choose that node for the new pod.",
    ),
    usage: list[str] | None = USAGE,
    output: AnswerForm = ANSWER_FORM,
    everything: bool = SHOW_ALL,
) -> None:
    """Plan moves of pods that improve the cluster most, and print the plan; nothing is moved.

    spread evens out the nodes' use of cpu and memory, pack empties nodes, cost empties the most expensive nodes,
    constraints moves pods whose nodes would refuse them today. The filters check each target node as if the pod were
    deleted and created again; disruption budgets are kept. Pods of DaemonSets, static and critical pods, pods without
    an owner and pods with device claims are not moved. Without -f the cluster is the one that kubectl talks to.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan rebalance -f cluster.yaml --objective pack --max-moves 10
    """
    from ...answers.rebalance import plan_rebalance
    from ..render.answer_tables import render_plan

    expect_choice("--objective", objective, OBJECTIVES)
    use = question.read_measured(usage)
    with progress_bar("planning") as on_moves:
        plan = plan_rebalance(
            question.manifests.objects,
            Objective(objective),
            question.settings,
            max_moves=max_moves,
            by_eviction=by_eviction,
            as_is=question.options.as_is,
            place_of=question.manifests.place_of,
            on_progress=on_moves,
        )
    print_answer(
        plan,
        "RebalancePlan",
        output,
        lambda: [f"pod/{move.pod} node/{move.source} node/{move.target}" for move in plan.moves],
        lambda console: render_plan(console, plan, is_whole(everything, output, console)),
        question.remarks,
        None if use is None else _by_use(question.manifests.objects, use, plan),
    )


def _by_use(
    objects: Sequence[InputObject], use: MeasuredUse, plan: RebalancePlan
) -> UseAgainstRequests:
    """The totals by use, and how the moves change the spread of use."""
    from ...answers.measured import UseAgainstRequests, use_spread

    usage = UseAgainstRequests.of(objects, use)
    moved = {move.pod: move.target for move in plan.moves}
    before, after = use_spread(objects, use, {}), use_spread(objects, use, moved)
    usage.by_use = {
        name: {"before": round(before[name], 6), "after": round(after[name], 6)} for name in before
    }
    parts = [f"{name} {before[name]:.1%} → {after[name]:.1%}" for name in before]
    usage.conclusion = f"spread of measured use over nodes: {', '.join(parts)}"
    return usage
