"""Objectives: the moves that improve an objective most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...choices import DEFAULT_MOVES, Objective
from ...manifests.timeline import InputObject
from ...sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ...sim.totals import TotalsChange
from ..stage import PlaceOf, Stage
from .empty_nodes import NodesInUse, cost_of, emptying_moves
from .even_use import Balance, spread_moves
from .move_plan import Move, RebalancePlan
from .repairs import Misplaced, repairing_moves
from .trial_moves import Mover


def plan_rebalance(
    objects: Iterable[InputObject],
    objective: Objective = Objective.SPREAD,
    settings: Settings = DEFAULT_SETTINGS,
    *,
    max_moves: int = DEFAULT_MOVES,
    by_eviction: bool = False,
    as_is: bool = False,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> RebalancePlan:
    """Plan at most `max_moves` moves that improve the objective, in order; each assumes those before
    it.

    Pending pods are tried first; with `as_is` they are left aside. A move deletes the pod and
    recreates it: the filters must accept its target then; with `by_eviction` the target is the node
    the scheduler is certain to choose. The whole plan stays within every disruption budget.
    """
    stage = Stage(objects, settings, place_of, as_is=as_is)
    stage.begin()
    if as_is:
        stage.leave_waiting_alone()
    mover = Mover(stage, by_eviction)
    before, moves = _begin(mover, objective, max_moves)
    plan = RebalancePlan(objective, before, movable=len(mover.movable_pods))
    plan.settled = stage.settlement
    totals_before = stage.totals()
    for move in moves:
        plan.moves.append(move)
        if on_progress is not None:
            on_progress(len(plan.moves), max_moves)
    plan.budgets = mover.budgets.touched()
    plan.totals = TotalsChange(totals_before, stage.totals())
    return plan


def _begin(mover: Mover, objective: Objective, most: int) -> tuple[float, Iterator[Move]]:
    """The value of the objective, and the moves that improve it, each made on demand."""
    match objective:
        case Objective.SPREAD:
            return Balance(mover.table).value(), spread_moves(mover, most)
        case Objective.PACK | Objective.COST:
            price = cost_of if objective is Objective.COST else lambda node: 1.0
            before = NodesInUse(mover.table, price).total()
            return before, emptying_moves(mover, most, price)
        case Objective.CONSTRAINTS:
            misplacing = Misplaced(mover)
            found = misplacing.find()
            return float(len(found)), repairing_moves(mover, most, misplacing, found)
