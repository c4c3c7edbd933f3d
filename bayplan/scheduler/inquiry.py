"""Judge: what the scheduler would say about a pod now. It is only asked; nothing comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.pod import Pod
from ..cache import Cache
from ..framework import CycleState, Diagnosis, Status
from ..runtime import ProfileRuntime
from .attempt import Explanation
from .cycle import Scheduler
from .explain import explain_scores
from .find_nodes import NO_ROWS, Search, rows_to_look_at


@dataclass(slots=True)
class Judged:
    """What Filter and Score say of a pod; `refusals` has each distinct status with the names of its nodes."""

    evaluated_nodes: int
    feasible_nodes: int
    refusals: list[tuple[Status, list[str]]]
    scores: Explanation
    """Only what concerns PreFilter and Score is in it."""
    has_extenders: bool = False
    """There are extenders, and they were not asked."""


def judge_pod(scheduler: Scheduler, pod: Pod) -> Judged:
    """Ask all plugins about all nodes, as for a pod that came now.

    KeyError when no profile is in charge of it; PluginRunError when a plugin fails. Extenders are not asked: they are
    somewhere else, and may remember.
    """
    profile, cache = scheduler.profiles[pod.scheduler_name], scheduler.cache
    cache.snapshot.update()
    state, table = CycleState(), cache.table
    search = _search(profile, state, pod, cache)
    pre = search.pre_filtered
    explanation = Explanation(pre.status, pre.node_names, sorted(state.skip_filter), {})
    feasible = table.count(search.rows)
    if feasible:
        profile.scoring.run_pre_scores(state, pod, table, search.rows)
        explain_scores(explanation, search, profile, state, pod, table)
    refusals = [
        (status, [table.names[row] for row in rows.tolist()])
        for status, rows in search.diagnosis.by_status()
    ]
    return Judged(table.node_count, feasible, refusals, explanation, bool(scheduler.has_extenders))


def _search(profile: ProfileRuntime, state: CycleState, pod: Pod, cache: Cache) -> Search:
    """PreFilter and Filter on every node; neither counts nor remembers where it stopped, as a real search does."""
    table, filtering = cache.table, profile.filtering
    diagnosis = Diagnosis(table, node_count=table.node_count)
    pre = filtering.run_pre_filters(state, pod, table)
    search = Search(NO_ROWS, diagnosis, pre)
    if not pre.status.is_success:
        diagnosis.refuse_all(pre.status)
        return search
    rows = rows_to_look_at(pre, diagnosis, table)
    found = filtering.run_filters(state, pod, table, rows)
    search.rows = filtering.filter_nominated(state, pod, table, found, diagnosis)
    filtering.diagnose(state, pod, table, rows, diagnosis)
    return search
