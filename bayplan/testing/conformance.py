"""Conformance: checks that every plugin must pass, regardless of its policy.

A plugin may judge many nodes at once and one node, and its `scope` states what its results depend
on; the scheduler relies on both. A failed check raises AssertionError with the plugin, the node and
both results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..api.pod import Pod
from ..framework import (
    CLUSTER,
    MAX_SCORE,
    MIN_SCORE,
    NODE_OBJECT,
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
)
from ..runtime.registry import check_plugin
from ..table import Ints, NodeTable, Rows
from .builders import make_handle, make_table

Answer: TypeAlias = str | int
"""The compared value: a status as text, its reasons sorted; or a raw score."""

FAILED = "failed with"


@dataclass(frozen=True, slots=True)
class Point:
    """One of the two extension points that judge nodes, in both forms."""

    rows_method: str
    node_method: str
    prepare: Callable[[Plugin, CycleState, Pod, NodeTable], bool]
    judge_rows: Callable[[Any, CycleState, Pod, NodeTable, Rows], list[Answer]]
    judge_node: Callable[[Any, CycleState, Pod, NodeInfo], Answer]


def check_conformance(
    plugin_class: type[Plugin],
    pods: Iterable[Pod],
    table: NodeTable,
    args: Any = None,
    objects: Iterable[Any] = (),
) -> None:
    """Run every check that applies to the plugin, for each of `pods` on the nodes of `table`.

    `args` are the plugin's arguments, `objects` the contents of its lister.
    """
    check_plugin(plugin_class)
    plugin, listed = plugin_class.from_args(args, make_handle(table, objects)), list(pods)
    for pod in listed:
        check_rows_agree(plugin, pod, table)
        check_scope(plugin, pod, table)
        check_score_range(plugin, pod, table)
        check_spec_answers(plugin, pod, table)
    check_pod_key(plugin, listed, table)


def check_rows_agree(
    plugin: Plugin, pod: Pod, table: NodeTable, state: CycleState | None = None
) -> None:
    """The plugin's result for a node is the same for all nodes, some of them, or the node alone.

    Without a `state` the plugin's own PreFilter and PreScore run first; when they skip the plugin
    or reject the pod there is nothing to compare.
    """
    _give_handle(plugin, table)
    for point in _points(plugin):
        prepared = CycleState() if state is None else state
        if state is not None or point.prepare(plugin, prepared, pod, table):
            _check_point(point, plugin, pod, table, prepared)


def check_scope(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """The result of a NODE_ROW or NODE_OBJECT plugin for a node is the same without other nodes.

    The pods on the node stay for NODE_ROW, and are removed for NODE_OBJECT. A plugin whose
    `pod_key` or `cluster_key` changes with the cluster is called again then, and so may give
    another result.
    """
    if plugin.scope is CLUSTER:
        return
    _give_handle(plugin, table)
    for point in _points(plugin):
        answers = _answers(point, plugin, pod, table)
        for node in table.nodes_at(table.live_rows):
            alone = make_table(
                node.node,
                pods=() if plugin.scope is NODE_OBJECT else node.pods,
                namespaces=table.namespaces,
            )
            key = (plugin.pod_key(pod), plugin.cluster_key(table))
            with _moved(plugin, alone):
                by_itself = _answers(point, plugin, pod, alone)
                key_alone = (plugin.pod_key(pod), plugin.cluster_key(alone))
                if answers is None or by_itself is None or key_alone != key:
                    continue
            if by_itself[node.name] != answers[node.name]:
                _fail(
                    plugin,
                    f"node {node.name} for pod {pod.key}",
                    (point.rows_method, answers[node.name]),
                    (f"for scope {plugin.scope.name}, with no other node", by_itself[node.name]),
                )


def check_pod_key(plugin: Plugin, pods: Sequence[Pod], table: NodeTable) -> None:
    """Pods with the same `pod_key` of a NODE_ROW or NODE_OBJECT plugin get the same results."""
    if plugin.scope is CLUSTER:
        return
    _give_handle(plugin, table)
    for point in _points(plugin):
        known: dict[Any, tuple[Pod, dict[str, Answer]]] = {}
        for pod in pods:
            answers = _answers(point, plugin, pod, table)
            if answers is None:
                continue
            first, expected = known.setdefault(plugin.pod_key(pod), (pod, answers))
            for name, answer in answers.items():
                if answer != expected[name]:
                    _fail(
                        plugin,
                        f"node {name}, with one pod_key for both pods",
                        (f"{point.rows_method} for pod {first.key}", expected[name]),
                        (f"for pod {pod.key}", answer),
                    )


def check_spec_answers(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """Results for all pods of a spec (`pre_filter_spec`, `pre_score_spec`, `key_is_spec`) hold for `pod`."""
    _give_handle(plugin, table)
    said: list[tuple[str, Status | None, Any]] = []
    if isinstance(plugin, PreFilterPlugin):
        asked: Any = plugin.pre_filter(CycleState(), pod, table)
        said.append(("pre_filter", plugin.pre_filter_spec(pod.spec), asked))
    if isinstance(plugin, PreScorePlugin):
        asked = plugin.pre_score(CycleState(), pod, table, table.live_rows)
        said.append(("pre_score", plugin.pre_score_spec(pod.spec), asked))
    for method, of_spec, of_pod in said:
        if of_spec is not None and of_spec != of_pod:
            _fail(plugin, f"pod {pod.key}", (f"{method}_spec", of_spec), (method, of_pod))
    if plugin.key_is_spec and plugin.scope is not CLUSTER:
        other = pod.replace(
            name="another", namespace="elsewhere", labels={}, annotations={}, node_name=""
        )
        if plugin.pod_key(other) != plugin.pod_key(pod.with_node("")):
            keys = (plugin.pod_key(pod.with_node("")), plugin.pod_key(other))
            _fail(
                plugin, f"pods of one spec as {pod.key}", ("pod_key", keys[0]), ("pod_key", keys[1])
            )


def check_score_range(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """The normalised scores of a Score plugin are between MIN_SCORE and MAX_SCORE."""
    if not isinstance(plugin, ScorePlugin):
        return
    _give_handle(plugin, table)
    state, rows = CycleState(), table.live_rows
    if not _pre_scored(plugin, state, pod, table):
        return
    raw = plugin.score_rows(state, pod, table, rows)
    scores = plugin.normalize_rows(state, pod, table, rows, raw)
    for node, score in zip(table.nodes_at(rows), scores.tolist(), strict=True):
        assert MIN_SCORE <= score <= MAX_SCORE, (
            f"{plugin.name}: node {node.name} for pod {pod.key}: expected a normalised score from "
            f"{MIN_SCORE} to {MAX_SCORE}; got {score}"
        )


def _check_point(
    point: Point, plugin: Plugin, pod: Pod, table: NodeTable, state: CycleState
) -> None:
    numbers = table.numbers(table.live_rows)
    nodes = [table.node_at(int(row)) for row in numbers]
    expected = point.judge_rows(plugin, state, pod, table, table.live_rows)
    _check_length(point, plugin, len(expected), len(numbers))
    if any(str(answer).startswith(FAILED) for answer in expected):
        _check_fails(point, plugin, pod, nodes, state)
        return
    for what, positions in _subsets(len(numbers)):
        some = point.judge_rows(plugin, state, pod, table, numbers[positions])
        _check_length(point, plugin, len(some), len(positions))
        for position, answer in zip(positions.tolist(), some, strict=True):
            if answer != expected[position]:
                where = f"node {nodes[position].name} for pod {pod.key}"
                whole = (f"{point.rows_method} on all rows", expected[position])
                _fail(plugin, where, whole, (f"on {what}", answer))
    for node, answer in zip(nodes, expected, strict=True):
        copy = table.fork_row(node.row).node_at(0)
        for what, asked in ((point.node_method, node), (f"{point.node_method} on a copy", copy)):
            alone = point.judge_node(plugin, state, pod, asked)
            if alone != answer:
                where = f"node {node.name} for pod {pod.key}"
                _fail(plugin, where, (point.rows_method, answer), (what, alone))


def _check_fails(
    point: Point, plugin: Plugin, pod: Pod, nodes: Sequence[NodeInfo], state: CycleState
) -> None:
    """A failure on one node fails the attempt, so the rows form reports it for all nodes; one node
    must have it."""
    answers = [point.judge_node(plugin, state, pod, node) for node in nodes]
    assert any(str(answer).startswith(FAILED) for answer in answers), (
        f"{plugin.name}: {point.rows_method} fails for pod {pod.key}, {point.node_method} on no node"
    )


def _subsets(count: int) -> Iterator[tuple[str, Ints]]:
    """Positions to judge, including none: every changed row may have lost its node."""
    everything = np.arange(count, dtype=np.int64)
    yield "every row by number", everything
    yield "every second row", everything[::2]
    yield "the other rows", everything[1::2]
    yield "no row", everything[:0]


def _points(plugin: Plugin) -> Iterator[Point]:
    if isinstance(plugin, FilterPlugin):
        yield FILTER
    if isinstance(plugin, ScorePlugin):
        yield SCORE


def _answers(point: Point, plugin: Plugin, pod: Pod, table: NodeTable) -> dict[str, Answer] | None:
    """The plugin's result for each node; None when it is skipped, or rejects the pod in PreFilter."""
    state, rows = CycleState(), table.live_rows
    if not point.prepare(plugin, state, pod, table):
        return None
    answers = point.judge_rows(plugin, state, pod, table, rows)
    return {node.name: a for node, a in zip(table.nodes_at(rows), answers, strict=True)}


def _pre_filtered(plugin: Plugin, state: CycleState, pod: Pod, table: NodeTable) -> bool:
    """Run PreFilter; return whether Filter would run."""
    if not isinstance(plugin, PreFilterPlugin):
        return True
    answer = plugin.pre_filter(state, pod, table)
    return isinstance(answer, PreFilterResult) or answer.is_success


def _pre_scored(plugin: Plugin, state: CycleState, pod: Pod, table: NodeTable) -> bool:
    """Run PreFilter and PreScore, with every node feasible; return whether Score would run."""
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(state, pod, table)
        if isinstance(answer, Status) and answer.code not in (Code.Success, Code.Skip):
            return False
    if not isinstance(plugin, PreScorePlugin):
        return True
    return plugin.pre_score(state, pod, table, table.live_rows).is_success


def _filter_rows(
    plugin: FilterPlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> list[Answer]:
    verdict = plugin.filter_rows(state, pod, table, rows)
    return [_text(verdict.status(position)) for position in range(len(verdict))]


def _filter_node(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Answer:
    return _text(plugin.filter_node(state, pod, node))


def _score_rows(
    plugin: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> list[Answer]:
    scores = plugin.score_rows(state, pod, table, rows)
    assert scores.dtype == np.int64, (
        f"{plugin.name}: score_rows: expected an array of int64; got {scores.dtype}"
    )
    return list(scores.tolist())


def _score_node(plugin: ScorePlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Answer:
    return plugin.score_node(state, pod, node)


FILTER = Point("filter_rows", "filter_node", _pre_filtered, _filter_rows, _filter_node)
SCORE = Point("score_rows", "score_node", _pre_scored, _score_rows, _score_node)


def _text(status: Status) -> str:
    """The code and the sorted reasons."""
    if not status.is_success and not status.is_rejected:
        return f"{FAILED} {status.code.name}: {status.message}"
    return ": ".join(filter(None, (status.code.name, ", ".join(sorted(set(status.reasons))))))


def _give_handle(plugin: Plugin, table: NodeTable) -> None:
    """A plugin made by hand has no handle yet."""
    if not hasattr(plugin, "handle"):
        plugin.handle = make_handle(table)


@contextmanager
def _moved(plugin: Plugin, table: NodeTable) -> Iterator[None]:
    """Run the plugin in a cluster of only `table` inside the block."""
    before = plugin.handle
    plugin.handle = replace(before, table=table)
    try:
        yield
    finally:
        plugin.handle = before


def _check_length(point: Point, plugin: Plugin, found: int, expected: int) -> None:
    assert found == expected, (
        f"{plugin.name}: {point.rows_method}: expected an answer for each of {expected} rows; got {found}"
    )


def _fail(
    plugin: Plugin, where: str, first: tuple[str, object], second: tuple[str, object]
) -> None:
    raise AssertionError(
        f"{plugin.name}: {where}: {first[0]} says {first[1]!r}, {second[0]} says {second[1]!r}"
    )
