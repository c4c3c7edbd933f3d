"""Objectives: the moves that improve an objective most, and those of pods from nodes that the filters would reject.

Labels and taints change and pods come and go, so an earlier placement may violate the rules now. A
cordon is no reason to move: pods on cordoned nodes stay until a drain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from ...api.pod import Pod, PodClass
from ...api.pod_spec import PodSpec
from ...api.taints import Toleration
from ...choices import DEFAULT_MOVES, Objective
from ...cluster.memory.absent_owners import is_daemon, is_static
from ...cluster.memory.pod_index import is_there
from ...framework import Status
from ...manifests.timeline import InputObject
from ...scheduler import Inquiry
from ...sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ...sim.totals import TotalsChange
from ...table import Bools, NodeTable
from ..stage import PlaceOf, Stage
from .empty_nodes import NodesInUse, cost_of, emptying_moves
from .even_use import Balance, spread_moves
from .move_plan import Move, RebalancePlan
from .trial_moves import Mover

PodKey: TypeAlias = tuple[PodClass, PodSpec]

CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")


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


class Misplaced:
    """Finds the pods that their own nodes would reject today, without daemons and static pods."""

    def __init__(self, mover: Mover) -> None:
        self._mover = mover
        self._kinds: dict[PodKey, dict[str, int]] = {}
        """Pods that the filters cannot tell apart, by name, and their rows."""
        self._refusing: dict[PodKey, Bools] = {}
        """Per row, for pods that do not depend on other pods: answers that never become stale."""
        row_of, judged = mover.table.row_of, dict[PodKey, bool]()
        for pod in mover.pods():
            key = pod.pod_class, pod.spec
            is_judged = judged.get(key)
            if is_judged is None:
                has_profile = pod.scheduler_name in mover.scheduler.profiles
                is_judged = judged[key] = has_profile and not is_daemon(pod)
            if is_judged and is_there(pod) and not is_static(pod):
                self._kinds.setdefault(key, {})[pod.key] = row_of[pod.node_name]

    def find(self) -> dict[str, tuple[Pod, str]]:
        """The misplaced pods by key, in node order, with reasons."""
        return {
            pod.key: (pod, status.message)
            for pod in self._suspects()
            if not (status := _status_at_home(self._mover, pod)).is_success
        }

    def move(self, pod: Pod, row: int) -> None:
        """Note that the pod is at another row now."""
        self._kinds[pod.pod_class, pod.spec][pod.key] = row

    def _suspects(self) -> list[Pod]:
        """Candidates, found per kind: a pod whose node would accept a copy is not one.

        Requests for resources and ports are ignored, since the pod itself holds them; all pods of an
        overcommitted node are candidates.
        """
        overfull = _overfull_rows(self._mover.table)
        found: list[tuple[int, str]] = []
        for kind, rows in self._kinds.items():
            is_suspect = overfull | self._rows_refusing(kind, next(iter(rows)))
            if is_suspect.any():
                found += [(row, key) for key, row in rows.items() if is_suspect[row]]
        return [self._mover.stored(key) for _, key in sorted(found)]

    def _rows_refusing(self, kind: PodKey, key: str) -> Bools:
        known = self._refusing.get(kind)
        if known is not None:
            return known
        mover = self._mover
        probe = mover.stored(key).replace(uid="rebalance/probe", name="probe", node_name="")
        inquiry = Inquiry(mover.scheduler, probe.with_spec(_light(probe.spec)))
        refusing = mover.table.live.copy()
        refusing[inquiry.rows] = False
        if (
            inquiry.copies() is not None
        ):  # amounts are the pod's own, or a matter of `_overfull_rows`
            self._refusing[kind] = refusing
        return refusing


def repairing_moves(
    mover: Mover, most: int, misplacing: Misplaced, misplaced: dict[str, tuple[Pod, str]]
) -> Iterator[Move]:
    """Moves that reduce the number of `misplaced` pods, one after the other."""
    given_up: set[str] = set()
    left, row_of = most, mover.table.row_of
    while left:
        candidates = (
            (pod, why)
            for key, (pod, why) in misplaced.items()
            if key not in given_up and mover.is_movable(pod)
        )
        pod, why = next(candidates, (None, ""))
        if pod is None:
            return
        target = _move(mover, pod)
        if target is None:
            given_up.add(pod.key)
            continue
        misplacing.move(pod, row_of[target])
        now = misplacing.find()
        if len(now) >= len(misplaced):
            given_up.add(pod.key)
            mover.put_back([(pod, pod.node_name)])
            misplacing.move(pod, row_of[pod.node_name])
            continue
        before, after = float(len(misplaced)), float(len(now))
        yield Move(pod.key, pod.node_name, target, before, after, target, why)
        misplaced, left = now, left - 1


def _move(mover: Mover, pod: Pod) -> str | None:
    """Place the pod where the scheduler would, excluding its own node; None when no other node
    accepts it."""
    source = mover.table.row_of[pod.node_name]
    with mover.lifted(pod) as waiting:
        rows = mover.landing_rows(waiting, source)
        if not len(rows):
            return None
        best = [row for row in sorted(mover.best_rows(waiting)) if row != source]
        row = best[0] if best else int(rows[0])
        mover.put(waiting, row)
    return mover.table.names[row]


def _overfull_rows(table: NodeTable) -> Bools:
    """bool per row: more is requested than there is."""
    found: Bools = table.pod_count > table.max_pods
    for name in table.requested:
        found = found | (table.requested[name] > table.allocatable[name])
    return found


def _status_at_home(mover: Mover, pod: Pod) -> Status:
    """The rejections of the pod by its own node, as if it were new."""
    row = mover.table.row_of[pod.node_name]
    with mover.lifted(pod) as waiting:
        probe = waiting.with_spec(_uncordoned(waiting.spec))
        return Inquiry(mover.scheduler, probe).status_at(row)


def _light(spec: PodSpec) -> PodSpec:
    """The spec without requests and ports, tolerating a cordon."""
    containers = tuple(replace(c, resources=None, ports=None) for c in spec.containers or ())
    changes = {
        "containers": containers,
        "init_containers": None,
        "overhead": None,
        "resources": None,
    }
    return replace(_uncordoned(spec), **changes)


def _uncordoned(spec: PodSpec) -> PodSpec:
    return replace(spec, tolerations=(*(spec.tolerations or ()), CORDON))
