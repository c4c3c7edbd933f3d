"""Rebalance: `bayplan rebalance`, a plan of moves that make a cluster better."""

from __future__ import annotations

from typing import Annotated

import typer

from ..answers.rebalance import Objective, plan_rebalance
from ..answers.rebalance.planning import DEFAULT_MOVES
from .answering import print_answer
from .options import AllOption, AnswerForm, AnswerOption, Question, takes_question
from .progress import progress_bar
from .render_rebalance import render_plan

OBJECTIVES = ", ".join(Objective)


@takes_question
def rebalance(
    question: Question,
    objective: Annotated[
        Objective, typer.Option(metavar="WHAT", help=f"What is to become better: {OBJECTIVES}.")
    ] = Objective.SPREAD,
    max_moves: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="At most so many moves.")
    ] = DEFAULT_MOVES,
    by_eviction: Annotated[
        bool,
        typer.Option(
            "--by-eviction",
            help="Only moves that evicting the pod brings about: the scheduler is sure to choose that node.",
        ),
    ] = False,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Plan moves of pods that improve the cluster most, and print the plan; nothing is moved.

    spread evens out the nodes' use of cpu and memory, pack empties nodes, cost empties those that cost most,
    constraints moves pods whose nodes would refuse them today. Each landing place is checked by the filters, as if the
    pod was deleted and came anew; disruption budgets are kept. Daemons, static and critical pods, pods without an owner
    and pods with device claims stay.

    Ends with 0, or with 2 when the input is wrong.

    Example: bayplan rebalance -f cluster.yaml --objective pack --max-moves 10
    """
    with progress_bar("planning") as on_moves:
        plan = plan_rebalance(
            question.manifests.objects,
            objective,
            question.settings,
            max_moves=max_moves,
            by_eviction=by_eviction,
            place_of=question.manifests.place_of,
            on_progress=on_moves,
        )
    print_answer(
        plan,
        "RebalancePlan",
        output,
        lambda: [f"pod/{move.pod} node/{move.source} node/{move.target}" for move in plan.moves],
        lambda console: render_plan(console, plan, everything or not console.is_terminal),
    )
