"""Judging: run a scheduler's plugins on a pod without placing it."""

from __future__ import annotations

from ..api.pod import Pod
from ..framework import CycleState
from ..scheduler import Scheduler
from ..scheduler.find_nodes import NodeFinder, Search
from ..scheduler.select_host import best_positions


def judge(scheduler: Scheduler, pod: Pod) -> Search:
    """PreFilter and Filter on every node: `rows` are the feasible ones, `diagnosis` has the reasons
    of the others."""
    return _find(scheduler, pod, CycleState())


def favourites(scheduler: Scheduler, pod: Pod) -> set[int]:
    """The rows from which the scheduler would choose: feasible, with the highest score."""
    state, table = CycleState(), scheduler.cache.table
    search = _find(scheduler, pod, state)
    rows = table.numbers(search.rows)
    if len(rows) < 2:
        return set(rows.tolist())
    scoring = scheduler.profiles[pod.scheduler_name].scoring
    scoring.run_pre_scores(state, pod, table, search.rows)
    totals = scoring.run_scores(state, pod, table, search.rows)
    return set(rows[best_positions(totals)].tolist())


def _find(scheduler: Scheduler, pod: Pod, state: CycleState) -> Search:
    scheduler.cache.snapshot.update()
    finder = NodeFinder(scheduler.cache.table, scheduler.cache.snapshot)
    return finder.find(scheduler.profiles[pod.scheduler_name], state, pod, everything=True)
