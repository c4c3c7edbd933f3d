"""Steps: the log of a pod's path through the scheduler, a line per step, with kube-scheduler's keys and levels.

Level 2 has the result of each attempt and the victims of preemption, 3 the begin of each attempt, 4 the chosen node and
what the pod waits for then, 5 which plugins refused how many nodes, 10 the scores of the best nodes. The queue logs its
moves itself, at 3 and 4.

Mirrors the calls of the logger, and the trace of slow attempts, in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from ..api.pod import Pod
from ..framework import CycleState, Status
from ..framework.diagnosis import Diagnosis
from ..observe.logs import step, v
from ..observe.times import STEPS, Times
from ..queue.queued_pod import QueuedPodInfo
from ..runtime import PluginRunError, ProfileRuntime
from ..table import NodeTable
from .attempt import Attempt, Explanation, Outcome
from .attempt_account import explain_all_scores
from .find_nodes import judge_all

log = logging.getLogger(__name__)

SLOW_S = 0.1
"""Attempts that take longer are logged with their steps, at level 0."""
BEST_NODES = 3
"""Number of nodes whose scores are logged."""
RESULTS, ATTEMPTS, CHOICES, REFUSALS, SCORES = 2, 3, 4, 5, 10


LEAST = v(RESULTS)
"""If `log` is not enabled for this level, no step is logged."""


def is_logged() -> bool:
    """Whether some step is logged."""
    return log.isEnabledFor(LEAST)


def log_begin(queued: QueuedPodInfo) -> None:
    """Log the begin of an attempt."""
    step(log, ATTEMPTS, "Trying to schedule the pod", pod=queued.pod.key, attempt=queued.attempts)


def log_deleted(pod: Pod) -> None:
    """Log that the pod is not scheduled, because it is being deleted."""
    step(log, ATTEMPTS, "The pod is being deleted and gets no node", pod=pod.key)


def log_choice(profile: ProfileRuntime, table: NodeTable, attempt: Attempt) -> None:
    """Log the chosen node. Call it before the pod is assumed there: the scores are computed now."""
    if log.isEnabledFor(v(SCORES)) and attempt.score is not None:
        _log_scores(profile, table, attempt)
    keys = {} if attempt.score is None else {"score": attempt.score}
    step(
        log,
        CHOICES,
        "Chose a node for the pod",
        pod=attempt.pod.key,
        node=attempt.node_name,
        **keys,
        evaluatedNodes=attempt.evaluated_nodes,
        feasibleNodes=attempt.feasible_nodes,
    )


def log_wait(pod: Pod, plugins: Iterable[str]) -> None:
    """Log that Permit plugins hold the pod."""
    names = ", ".join(plugins)
    step(log, CHOICES, "Permit holds the pod", pod=pod.key, node=pod.node_name, plugin=names)


def log_pre_bind(pod: Pod) -> None:
    """Log the begin of PreBind."""
    if not log.isEnabledFor(LEAST):
        return
    step(log, CHOICES, "PreBind began for the pod", pod=pod.key, node=pod.node_name)


def log_refusals(pod: Pod, diagnosis: Diagnosis) -> None:
    """Log the distinct refusals of a pod that fits nowhere, with the number of nodes of each."""
    if not log.isEnabledFor(v(REFUSALS)):
        return
    for status, rows in diagnosis.by_status():
        refused = {"plugin": status.plugin, "status": status.message, "nodes": len(rows)}
        text, code = "Nodes were refused for the pod", status.code.name
        step(log, REFUSALS, text, code=code, pod=pod.key, **refused)


def log_post_filter(pod: Pod, status: Status) -> None:
    """Log the result of PostFilter."""
    keys = {"pod": pod.key, "plugin": status.plugin, "status": status.message}
    step(log, REFUSALS, "PostFilter ran for the pod", code=status.code.name, **keys)


def log_victim(preemptor: Pod, victim: Pod) -> None:
    """Log a pod that preemption evicts."""
    keys = {"preemptor": preemptor.key, "victim": victim.key, "node": victim.node_name}
    step(log, RESULTS, "Preempting a pod", **keys)


def log_bound(attempt: Attempt) -> None:
    """Log that the pod is bound."""
    step(
        log,
        RESULTS,
        "Bound the pod",
        pod=attempt.pod.key,
        node=attempt.node_name,
        evaluatedNodes=attempt.evaluated_nodes,
        feasibleNodes=attempt.feasible_nodes,
    )


def log_failure(attempt: Attempt) -> None:
    """Log a refusal of the pod, or the error of the attempt."""
    is_refused = attempt.outcome is Outcome.UNSCHEDULABLE
    message = (
        "Found no node for the pod" if is_refused else "The attempt failed, the pod is retried"
    )
    keys = {"nominatedNode": attempt.nominated_node_name} if attempt.nominated_node_name else {}
    step(log, RESULTS, message, pod=attempt.pod.key, **keys, err=attempt.message)


def log_slow(attempt: Attempt, times: Times, seconds: float) -> None:
    """Log the duration of each step, in milliseconds, of an attempt that took longer than SLOW_S."""
    step(
        log,
        0,
        "The attempt was slow",
        pod=attempt.pod.key,
        node=attempt.node_name,
        durationMs=round(seconds * 1000, 1),
        steps=durations_ms(times),
    )


def durations_ms(times: Times) -> dict[str, float]:
    """Milliseconds from the end of the previous step to the end of each step that was taken."""
    found, before = {}, times[0]
    for name, end in STEPS.items():
        if not math.isnan(times[end]):
            found[name] = round((times[end] - before) * 1000, 1)
            before = times[end]
    return found


def _log_scores(profile: ProfileRuntime, table: NodeTable, attempt: Attempt) -> None:
    """Log the scores of the best nodes: by plugin with its weight, and in total.

    The reference computes them for all nodes. Extenders are called only once per attempt, so their points are known
    where the attempt itself is explained, and missing otherwise.
    """
    key = attempt.pod.key
    try:
        scores = attempt.explanation or _scores(profile, table, attempt.pod)
    except PluginRunError as error:  # a plugin can fail on a node that the attempt did not try
        step(log, SCORES, "Cannot show the scores of the nodes", pod=key, err=error.status.message)
        return
    best = best_nodes(scores, attempt.node_name)
    for node in best:
        for given in scores.scores:
            if node in given.normalized:
                points = given.normalized[node] * given.weight
                keys = {"pod": key, "plugin": given.plugin, "node": node, "score": points}
                step(log, SCORES, "A plugin scored a node for the pod", **keys)
    for node in best:
        keys = {"pod": key, "node": node, "score": scores.totals[node]}
        step(log, SCORES, "The final score of a node for the pod", **keys)


def _scores(profile: ProfileRuntime, table: NodeTable, pod: Pod) -> Explanation:
    state = CycleState()
    pre = profile.filtering.run_pre_filters(state, pod, table)
    search = judge_all(profile, state, pod, table, pre)
    return explain_all_scores(search, profile, state, pod, table)


def best_nodes(scores: Explanation, chosen: str) -> list[str]:
    """The names of the best nodes; the chosen one first among equals."""
    totals = scores.totals
    return sorted(totals, key=lambda node: (-totals[node], node != chosen, node))[:BEST_NODES]
