"""Conformance: checks that every plugin must pass, regardless of its policy.

A plugin may judge many nodes at once and one node, and it declares what its results depend on; the
scheduler relies on both. A failed check raises AssertionError with the plugin, the node and both
results. A wrong declaration is found when the pods and the nodes of a check differ in what the plugin
reads: give it pods of several specs, and nodes with and without pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...amounts import rule_points, shortages
from ...amounts.domain_rules import DomainRules
from ...api.pod import Pod
from ...errors import PluginError
from ...framework import (
    GROUPS,
    MAX_SCORE,
    NODE_OBJECT,
    NODE_ROW,
    Code,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from ...framework.fit_status import fit_verdict
from ...framework.registration import check_events, declared_resources
from ...framework.scores import MIN_SCORE
from ...runtime.plugin_calls import ignores_repetition
from ...runtime.plugin_registry import check_plugin
from ...table import Ints, NodeTable, Rows, RowValues
from ..builders import make_handle, make_table
from .declarations import (
    FAILED,
    check_looks_at,
    check_settled,
    fail,
    give_handle,
    moved,
    pre_filtered,
    status_text,
    without_objects,
)

Answer: TypeAlias = str | int
"""The compared value: a status as text, its reasons sorted; or a raw score."""

KEPT = (NODE_ROW, NODE_OBJECT)
"""The scopes whose results are cached, by `spec_key`."""
NO_COLUMN = ("row_groups", "no column")


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
    handle = make_handle(table, objects)
    handle.custom_resources = declared_resources([plugin_class])
    plugin, listed = plugin_class.from_args(args, handle), list(pods)
    check_registered_events(plugin)
    for pod in listed:
        check_rows_agree(plugin, pod, table)
        check_scope(plugin, pod, table)
        check_score_range(plugin, pod, table)
        check_settled(plugin, pod, table)
        check_looks_at(plugin, pod, table, listed)
        check_row_groups(plugin, pod, table)
        check_repetition(plugin, pod, table)
        check_rules(plugin, pod, table)
    check_spec_key(plugin, listed, table)


def check_registered_events(plugin: Plugin) -> None:
    """Each event of `events_to_register` is about a resource that there is, or one of `custom_resources`."""
    try:
        check_events(plugin)
    except PluginError as error:
        raise AssertionError(str(error)) from None


def check_rows_agree(
    plugin: Plugin, pod: Pod, table: NodeTable, state: CycleState | None = None
) -> None:
    """The plugin's result for a node is the same for all nodes, some of them, or the node alone.

    Without a `state` the plugin's own PreFilter and PreScore run first; when they skip the plugin
    or reject the pod there is nothing to compare.
    """
    give_handle(plugin, table)
    for point in _points(plugin):
        prepared = CycleState() if state is None else state
        if state is not None or point.prepare(plugin, prepared, pod, table):
            _check_point(point, plugin, pod, table, prepared)


def check_scope(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """The result of a NODE_ROW or NODE_OBJECT plugin for a node is the same without other nodes.

    The pods on the node stay for NODE_ROW, and are removed for NODE_OBJECT. It is also the same without the objects of
    the lister. A plugin whose `cluster_key` changes with the cluster is called again then, and so may give another
    result. The Score of a pod with `scores_by_more` in its `amount_rules` may depend on anything.
    """
    if plugin.scope not in KEPT:
        return
    give_handle(plugin, table)
    for point in _points(plugin):
        if point is SCORE and plugin.amount_rules(pod).scores_by_more:
            continue
        answers = _answers(point, plugin, pod, table)
        for node in table.nodes_at(table.live_rows):
            alone = make_table(
                node.node,
                pods=() if plugin.scope is NODE_OBJECT else node.pods,
                namespaces=table.namespaces,
            )
            key = plugin.cluster_key(table)
            with moved(plugin, alone):
                by_itself = _answers(point, plugin, pod, alone)
                if answers is None or by_itself is None or plugin.cluster_key(alone) != key:
                    continue
            if by_itself[node.name] != answers[node.name]:
                _fail_scope(
                    plugin, pod, node.name, answers, "with no other node", by_itself[node.name]
                )
        key = plugin.cluster_key(table)
        with without_objects(plugin):
            if answers is None or plugin.cluster_key(table) != key:
                continue
            for name, answer in (_answers(point, plugin, pod, table) or {}).items():
                if answer != answers[name]:
                    _fail_scope(plugin, pod, name, answers, "with no object", answer)


def _fail_scope(
    plugin: Plugin, pod: Pod, name: str, answers: dict[str, Answer], what: str, answer: Answer
) -> None:
    scope = f"for scope {plugin.scope.name}, {what}"
    fail(
        plugin, f"node {name} for pod {pod.key}", ("in the cluster", answers[name]), (scope, answer)
    )


def check_spec_key(plugin: Plugin, pods: Sequence[Pod], table: NodeTable) -> None:
    """Pods with the same `spec_key` of a NODE_ROW or NODE_OBJECT plugin get the same results.

    So do pods of one spec with other labels, annotations and another namespace. None if there are no such pods. For a
    GROUPS plugin, pods with the same key, labels, namespace and owners have the same `row_groups`.
    """
    give_handle(plugin, table)
    if plugin.scope is GROUPS:
        _check_group_key(plugin, pods, table)
    if plugin.scope not in KEPT:
        return
    # A pod that names its node is judged by itself.
    free = [pod for pod in pods if not pod.node_name and not pod.spec.pin]
    keyed = [(pod, plugin.spec_key(pod.pod_class.spec)) for pod in free]
    keyed = [(pod, key) for pod, key in keyed if key is not None]
    keyed += [
        (pod.replace(name="another", namespace="elsewhere", labels={}, annotations={}), key)
        for pod, key in keyed
    ]
    for point in _points(plugin):
        known: dict[Any, tuple[Pod, dict[str, Answer]]] = {}
        for pod, key in keyed:
            answers = _answers(point, plugin, pod, table)
            if answers is None:
                continue
            first, expected = known.setdefault(key, (pod, answers))
            for name, answer in answers.items():
                if answer != expected[name]:
                    fail(
                        plugin,
                        f"node {name}, with one spec_key for both pods",
                        (f"{point.rows_method} for pod {first.key}", expected[name]),
                        (f"for pod {pod.key}", answer),
                    )


def _check_group_key(plugin: Plugin, pods: Sequence[Pod], table: NodeTable) -> None:
    known: dict[Any, tuple[Pod, Any]] = {}
    rows = table.numbers(table.live_rows)
    for pod in pods:
        key = plugin.spec_key(pod.pod_class.spec)
        if key is None:
            continue
        columns = _columns(plugin, pod, table)
        found = None if columns is None else [column.view[rows].tolist() for column in columns]
        of_pod = (key, pod.namespace, tuple(pod.labels.items()), pod.owner_references)
        first, expected = known.setdefault(of_pod, (pod, found))
        if found != expected:
            fail(
                plugin,
                "with one spec_key for both pods",
                (f"row_groups for pod {first.key}", expected),
                (f"for pod {pod.key}", found),
            )


def _columns(plugin: Plugin, pod: Pod, table: NodeTable) -> Sequence[RowValues] | None:
    """The columns of `row_groups`, which may come with rules."""
    given = plugin.row_groups(pod, table)
    return given.columns if isinstance(given, DomainRules) else given


def check_row_groups(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """Nodes that `row_groups` of a GROUPS plugin does not tell apart get the same results.

    The normalised scores of one node of each group are those that it gets among all feasible nodes. Without a column
    the plugin accepts every node, and gives it 0 points.
    """
    if plugin.scope is not GROUPS:
        return
    give_handle(plugin, table)
    columns = _columns(plugin, pod, table)
    if columns is None:
        return
    rows = table.numbers(table.live_rows)
    keys = list(zip(*[column.view[rows].tolist() for column in columns], strict=True))
    keys = keys or [()] * len(rows)
    for point in _points(plugin):
        answers = _answers(point, plugin, pod, table)
        first: dict[Any, str] = {}
        for (name, answer), key in zip((answers or {}).items(), keys, strict=bool(answers)):
            other = first.setdefault(key, name)
            if answers is not None and answers[other] != answer:
                fail(
                    plugin,
                    f"pod {pod.key}, with equal row_groups {key} of both nodes",
                    (f"{point.rows_method} for node {other}", answers[other]),
                    (f"for node {name}", answer),
                )
            if not columns and point is FILTER and answer != "Success":
                fail(plugin, f"node {name} for pod {pod.key}", NO_COLUMN, ("filter_rows", answer))
    if isinstance(plugin, ScorePlugin):
        _check_group_scores(plugin, pod, table, dict(zip(rows.tolist(), keys, strict=True)))


def _check_group_scores(
    plugin: ScorePlugin, pod: Pod, table: NodeTable, keys: dict[int, tuple[int, ...]]
) -> None:
    state, rows = CycleState(), table.numbers(table.live_rows)
    if isinstance(plugin, FilterPlugin) and pre_filtered(plugin, state, pod, table):
        rows = rows[plugin.filter_rows(state, pod, table, rows).feasible]
    of_key: dict[tuple[int, ...], list[int]] = {}
    for row in rows.tolist():
        of_key.setdefault(keys[row], []).append(row)
    samples = np.array([members[0] for members in of_key.values()], dtype=np.int64)
    sizes = np.array([len(members) for members in of_key.values()], dtype=np.int64)
    among_all = _normalized(plugin, pod, table, rows, None)
    of_samples = _normalized(plugin, pod, table, samples, sizes)
    for row in samples.tolist():
        where = f"node {table.names[row]} for pod {pod.key}"
        if of_samples[row] != among_all[row]:
            fail(
                plugin,
                where,
                ("normalize among all feasible nodes", among_all[row]),
                ("among one node of each of its row_groups", of_samples[row]),
            )
        if () in of_key and among_all[row]:
            fail(plugin, where, NO_COLUMN, ("normalize", among_all[row]))


def _normalized(
    plugin: ScorePlugin, pod: Pod, table: NodeTable, rows: Ints, counts: Ints | None
) -> dict[int, int]:
    """By row: the normalised score among `rows`, 0 where PreScore skips the plugin."""
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin):
        plugin.pre_filter(state, pod, table)
    state.row_counts = counts
    scores = np.zeros(len(rows), dtype=np.int64)
    is_skipped = len(rows) == 0
    if isinstance(plugin, PreScorePlugin) and not is_skipped:
        is_skipped = not plugin.pre_score(state, pod, table, rows).is_success
    if not is_skipped:
        raw = plugin.score_rows(state, pod, table, rows)
        scores = plugin.normalize_rows(state, pod, table, rows, raw)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def check_repetition(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """A `normalize` that ignores repetition in sample scores ignores it in the scores of these nodes, too."""
    if not isinstance(plugin, ScorePlugin) or not ignores_repetition(plugin):
        return
    give_handle(plugin, table)
    state, rows = CycleState(), table.numbers(table.live_rows)
    if not len(rows) or not _pre_scored(plugin, state, pod, table):
        return
    raw = plugin.score_rows(state, pod, table, rows)
    expected = plugin.normalize_rows(state, pod, table, rows, raw.copy())
    once = np.unique(raw, return_index=True)[1]
    for position in range(len(rows)):
        some = np.array(sorted({position, *once.tolist()}), dtype=np.int64)
        scores = plugin.normalize_rows(state, pod, table, rows[some], raw[some])
        found = int(scores[some.tolist().index(position)])
        if found != expected[position]:
            fail(
                plugin,
                f"node {table.names[int(rows[position])]} for pod {pod.key}",
                ("normalize among all nodes", int(expected[position])),
                ("among one node with each score", found),
            )


def check_rules(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """The rules of `amount_rules` agree with Filter and Score."""
    give_handle(plugin, table)
    rows = table.live_rows
    fit, score, _ = plugin.amount_rules(pod)
    by_rule: dict[str, list[Answer]] = {}
    if fit is not None and isinstance(plugin, FilterPlugin):
        verdict = fit_verdict(fit, shortages(table, rows, fit))
        by_rule["fit"] = [status_text(verdict.status(place)) for place in range(len(verdict))]
    if score is not None and isinstance(plugin, ScorePlugin):
        by_rule["score"] = list(rule_points(table, rows, score).tolist())
    for rule, of_rule in by_rule.items():
        point = FILTER if rule == "fit" else SCORE
        answers = _answers(point, plugin, pod, table)
        if answers is None:
            continue
        for (name, answer), expected in zip(answers.items(), of_rule, strict=True):
            if answer != expected:
                where = f"node {name} for pod {pod.key}"
                given = (f"amount_rules().{rule}", expected)
                fail(plugin, where, given, (point.rows_method, answer))


def check_score_range(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """The normalised scores of a Score plugin are between MIN_SCORE and MAX_SCORE."""
    if not isinstance(plugin, ScorePlugin):
        return
    give_handle(plugin, table)
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
                fail(plugin, where, whole, (f"on {what}", answer))
    for node, answer in zip(nodes, expected, strict=True):
        copy = table.fork_row(node.row).node_at(0)
        for what, asked in ((point.node_method, node), (f"{point.node_method} on a copy", copy)):
            alone = point.judge_node(plugin, state, pod, asked)
            if alone != answer:
                where = f"node {node.name} for pod {pod.key}"
                fail(plugin, where, (point.rows_method, answer), (what, alone))


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
    return [status_text(verdict.status(position)) for position in range(len(verdict))]


def _filter_node(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Answer:
    return status_text(plugin.filter_node(state, pod, node))


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


FILTER = Point("filter_rows", "filter_node", pre_filtered, _filter_rows, _filter_node)
SCORE = Point("score_rows", "score_node", _pre_scored, _score_rows, _score_node)


def _check_length(point: Point, plugin: Plugin, found: int, expected: int) -> None:
    assert found == expected, (
        f"{plugin.name}: {point.rows_method}: expected an answer for each of {expected} rows; got {found}"
    )
