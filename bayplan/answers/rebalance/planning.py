"""Planning: the moves that improve an objective most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ...sim.totals import TotalsChange
from ...sim.world import InputObject
from ..stage import PlaceOf, Stage
from .emptying import cost_of, emptying_moves, one_each, total_price
from .moving import Mover
from .plan import Move, Objective, RebalancePlan
from .repairing import misplaced_pods, repairing_moves
from .spreading import Balance, spread_moves

DEFAULT_MOVES = 20


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
    plan = RebalancePlan(objective, _value(mover, objective), movable=len(mover.movable_pods()))
    plan.settled = stage.settlement
    totals_before = stage.totals()
    for move in _moves(mover, objective, max_moves):
        plan.moves.append(move)
        if on_progress is not None:
            on_progress(len(plan.moves), max_moves)
    plan.budgets = mover.budgets.touched()
    plan.totals = TotalsChange(totals_before, stage.totals())
    return plan


def _value(mover: Mover, objective: Objective) -> float:
    match objective:
        case Objective.SPREAD:
            return Balance(mover.table).value()
        case Objective.PACK:
            return total_price(mover.table, one_each)
        case Objective.COST:
            return total_price(mover.table, cost_of)
        case Objective.CONSTRAINTS:
            return float(len(misplaced_pods(mover)))


def _moves(mover: Mover, objective: Objective, most: int) -> Iterator[Move]:
    match objective:
        case Objective.SPREAD:
            return spread_moves(mover, most)
        case Objective.PACK:
            return emptying_moves(mover, most, one_each)
        case Objective.COST:
            return emptying_moves(mover, most, cost_of)
        case Objective.CONSTRAINTS:
            return repairing_moves(mover, most)
