"""Attempt account: the whole account of an attempt, by node name. Made on request only."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..api.pod import Pod
from ..framework import SUCCESS, CycleState, Status
from ..framework.diagnosis import Diagnosis
from ..framework.events import EXTENDER, default_events
from ..framework.registration import registered_events
from ..runtime import ProfileRuntime
from ..table import Ints, NodeTable
from .attempt import Explanation, PluginScore
from .extenders import SCALE, ExtenderScores
from .find_nodes import Search


def explain_search(search: Search, state: CycleState, table: NodeTable) -> Explanation:
    """Results of PreFilter and Filter."""
    pre = search.pre_filtered
    feasible = set(table.numbers(search.rows).tolist())
    verdicts = {}
    if pre.status.is_success:
        for row in table.numbers(table.live_rows).tolist():
            fits = row in feasible
            verdicts[table.names[row]] = SUCCESS if fits else _status_of(search.diagnosis, row)
    return Explanation(pre.status, pre.node_names, sorted(state.skip_filter), verdicts)


def _status_of(diagnosis: Diagnosis, row: int) -> Status:
    """The status of a row, with the plugin or the extender that gave it."""
    status, address = diagnosis.status_of(row), diagnosis.extenders.get(row)
    return status if address is None else status.by(f"{EXTENDER} {address}")


def explain_scores(
    explanation: Explanation,
    search: Search,
    profile: ProfileRuntime,
    state: CycleState,
    pod: Pod,
    table: NodeTable,
) -> None:
    """Add the scores of every Score plugin for every feasible node; PreScore has run."""
    names = [table.names[row] for row in table.numbers(search.rows)]
    nodes, total = search.bare_nodes(table), np.zeros(len(names), dtype=np.int64)
    for scored in profile.scoring.each_score(state, pod, table, search.rows, nodes):
        total += scored.normalized * scored.weight
        raw = dict(zip(names, scored.raw.tolist(), strict=True))
        normalized = dict(zip(names, scored.normalized.tolist(), strict=True))
        explanation.scores.append(PluginScore(scored.plugin.name, scored.weight, raw, normalized))
    explanation.skipped_score = sorted(state.skip_score)
    if not profile.scoring.scores:
        total += 1
    explanation.totals = dict(zip(names, total.tolist(), strict=True))


def explain_all_scores(
    search: Search, profile: ProfileRuntime, state: CycleState, pod: Pod, table: NodeTable
) -> Explanation:
    """Results of PreFilter and Score, without the statuses of filters."""
    pre = search.pre_filtered
    explanation = Explanation(pre.status, pre.node_names, sorted(state.skip_filter), {})
    if table.count(search.rows):
        profile.scoring.run_pre_scores(state, pod, table, search.rows)
        explain_scores(explanation, search, profile, state, pod, table)
    return explanation


def explain_extenders(
    explanation: Explanation,
    given: ExtenderScores,
    search: Search,
    totals: Ints,
    table: NodeTable,
) -> None:
    """Add the scores of the extenders, each under its address, and the totals with them."""
    for address, weight, scores in given.each:
        scaled = {name: score * SCALE for name, score in scores.items()}
        explanation.scores.append(PluginScore(address, weight, scores, scaled))
    names = [table.names[row] for row in table.numbers(search.rows)]
    explanation.totals = dict(zip(names, totals.tolist(), strict=True))


def explain_refusal(
    explanation: Explanation, profile: ProfileRuntime, plugins: Iterable[str]
) -> None:
    """Add the events that the plugins that refused the pod wait for."""
    for name in sorted(plugins):
        plugin = profile.plugins.get(name)
        if plugin is not None:
            waited_for = registered_events(plugin)
        elif name == EXTENDER:
            waited_for = default_events(profile.handle.feature_gates)
        else:
            continue
        explanation.waits_for[name] = sorted({str(wanted.event) for wanted in waited_for})
