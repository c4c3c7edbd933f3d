"""Asking: one call to one plugin; what goes wrong in it is raised with the plugin's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..api.pod import Pod
from ..framework import (
    Code,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Verdict,
)
from ..table import Ints, NodeTable, Rows
from .failing import failed
from .timing import timed

T = TypeVar("T")

PRE_FILTER_CODES = (
    Code.Success,
    Code.Skip,
    Code.Unschedulable,
    Code.UnschedulableAndUnresolvable,
)
PRE_FILTERING = "running PreFilter plugin {}"
FILTERING = "running {} filter plugin"
PRE_SCORING = "running PreScore plugin {}"
SCORING = "running Score plugins: plugin {} failed with"
NORMALIZING = "running Normalize on Score plugins: plugin {} failed with"


def ask_hook(plugin: Plugin, hook: Callable[..., T], *args: Any) -> T:
    """Call a method by which a plugin declares something."""
    try:
        return hook(*args)
    except Exception as error:
        raise failed(f"asking plugin {{}} for {hook.__name__}", plugin, error) from error


def ask_hooks(hooks: Iterable[tuple[Plugin, Callable[..., T]]], *args: Any) -> list[T]:
    """Call the same method of several plugins, given as bound methods."""
    said: list[T] = []
    for plugin, hook in hooks:
        try:
            said.append(hook(*args))
        except Exception as error:
            raise failed(f"asking plugin {{}} for {hook.__name__}", plugin, error) from error
    return said


def ask_pre_filter(
    plugin: PreFilterPlugin, state: CycleState, pod: Pod, table: NodeTable
) -> Status | PreFilterResult:
    """Run PreFilter of one plugin; what is neither a success nor a refusal is raised."""
    try:
        ask = plugin.pre_filter
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "PreFilter", plugin, ask)
        answer = ask(state, pod, table)
    except Exception as error:
        raise failed(PRE_FILTERING, plugin, error) from error
    if isinstance(answer, Status) and answer.code not in PRE_FILTER_CODES:
        raise failed(PRE_FILTERING, plugin, answer)
    return answer


def judge_rows(
    plugin: FilterPlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Verdict:
    """Run Filter of one plugin on `rows`."""
    try:
        ask = plugin.filter_rows
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "Filter", plugin, ask)
        verdict = ask(state, pod, table, rows)
    except Exception as error:
        raise failed(FILTERING, plugin, error) from error
    if verdict.error is not None:
        raise failed(FILTERING, plugin, verdict.error)
    return verdict


def ask_filter(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
    """Run Filter of one plugin on one node, possibly a what-if; SUCCESS or a refusal."""
    try:
        status = plugin.filter_node(state, pod, node)
    except Exception as error:
        raise failed(FILTERING, plugin, error) from error
    if status.code is not Code.Success and not status.is_rejected:
        raise failed(FILTERING, plugin, status)
    return status


def ask_pre_score(
    plugin: PreScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Status:
    """Run PreScore of one plugin: SUCCESS or SKIP."""
    try:
        ask = plugin.pre_score
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "PreScore", plugin, ask)
        status = ask(state, pod, table, rows)
    except Exception as error:
        raise failed(PRE_SCORING, plugin, error) from error
    if status.code is not Code.Success and status.code is not Code.Skip:
        raise failed(PRE_SCORING, plugin, status)
    return status


def score_rows(
    plugin: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Ints:
    """Run Score of one plugin on `rows`."""
    try:
        ask = plugin.score_rows
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "Score", plugin, ask)
        return ask(state, pod, table, rows)
    except Exception as error:
        raise failed(SCORING, plugin, error) from error


def score_nodes(
    plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> Ints:
    """Run Score of one plugin on one node after the other."""
    try:
        scores = [plugin.score_node(state, pod, node) for node in nodes]
    except Exception as error:
        raise failed(SCORING, plugin, error) from error
    return np.array(scores, dtype=np.int64)


def normalize(
    plugin: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, raw: Ints
) -> Ints:
    """Run NormalizeScore of one plugin; the scores are in range."""
    try:
        ask = plugin.normalize_rows
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "ScoreExtensionNormalize", plugin, ask)
        scores = ask(state, pod, table, rows, raw)
    except Exception as error:
        raise failed(NORMALIZING, plugin, error) from error
    check_range(plugin, scores)
    return scores


def check_range(plugin: ScorePlugin, scores: Ints) -> None:
    """Raise when a normalised score is below 0 or above 100."""
    # Read as unsigned, a negative number is a very large one: one look finds both.
    if scores.size and scores.view(np.uint64).max() > 100:
        score = int(scores.min() if scores.min() < 0 else scores.max())
        text = f'plugin "{plugin.name}" returns an invalid score {score}, it should in the range of'
        doing = "applying score defaultWeights on Score plugins"
        raise failed(doing, plugin, f"{text} [0, 100] after normalizing")


def has_own(plugin: Plugin, base: type[Plugin], method: str) -> bool:
    """Whether the plugin brings its own version of `method`."""
    return getattr(type(plugin), method) is not getattr(base, method)


def is_normalized(plugin: ScorePlugin) -> bool:
    """Whether the raw scores are not yet the scores."""
    return has_own(plugin, ScorePlugin, "normalize") or has_own(
        plugin, ScorePlugin, "normalize_rows"
    )
