"""Declarations: checks of what a plugin declares about other steps than Filter and Score of one node.

`conformance.py` has those on Filter and Score, and runs all of them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from ...api.pod import Pod
from ...framework import (
    CycleState,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
)
from ...table import NodeTable
from ...table.what_if import WhatIf
from ..builders import ObjectLister, make_handle

FAILED = "failed with"


def check_settled(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """`settled`, which is for all pods of a spec, agrees with the plugin's behaviour for `pod`.

    PreFilter, for pods that name no node, and PreScore return that, and Filter and Score give the same results without
    them. Without `commits`, Reserve, Permit and PreBind succeed at once and change neither the plugin nor the
    cluster.
    """
    give_handle(plugin, table)
    settled = plugin.settled(pod.pod_class.spec if not pod.spec.pin else pod.spec)
    passed = settled.pre_filter if not pod.node_name else None
    if isinstance(plugin, PreFilterPlugin) and passed is not None:
        state = CycleState()
        asked: Any = plugin.pre_filter(state, pod, table)
        _compare(plugin, pod, "pre_filter", passed, asked)
        if isinstance(plugin, FilterPlugin) and passed.is_success:
            _check_without(plugin, pod, table, "pre_filter", state)
    if isinstance(plugin, PreScorePlugin) and settled.pre_score is not None:
        state = CycleState()
        if pre_filtered(plugin, state, pod, table):
            before = state.clone()
            asked = plugin.pre_score(state, pod, table, table.live_rows)
            _compare(plugin, pod, "pre_score", settled.pre_score, asked)
            if isinstance(plugin, ScorePlugin) and settled.pre_score.is_success:
                _check_without(plugin, pod, table, "pre_score", state, before)
    if not settled.commits:
        _check_commits_nothing(plugin, pod, table)


def check_looks_at(plugin: Plugin, pod: Pod, table: NodeTable, others: Iterable[Pod] = ()) -> None:
    """Pods for which `looks_at` is False make no difference to Filter.

    They are taken off the nodes they are on, and each of `others` is put on every node, one at a time.
    """
    if not isinstance(plugin, FilterPlugin):
        return
    give_handle(plugin, table)
    state = CycleState()
    if not pre_filtered(plugin, state, pod, table):
        return
    added = [other.replace(name=f"{other.name}-more", uid=f"{other.uid}-more") for other in others]
    for node in table.nodes_at(table.live_rows):
        expected = status_text(plugin.filter_node(state, pod, node))
        for what, other in (*(("without", p) for p in node.pods), *(("with", p) for p in added)):
            if plugin.looks_at(state, pod, other):
                continue
            what_if, copied = WhatIf(table, node.row), state.clone()
            (what_if.remove_pod if what == "without" else what_if.add_pod)(other)
            if isinstance(plugin, PreFilterExtensions):
                tell = plugin.remove_pod if what == "without" else plugin.add_pod
                tell(copied, pod, other, what_if.node)
            found = status_text(plugin.filter_node(copied, pod, what_if.node))
            if found != expected:
                fail(
                    plugin,
                    f"node {node.name} for pod {pod.key}",
                    ("filter_node", expected),
                    (f"{what} pod {other.key}, at which it does not look,", found),
                )


def pre_filtered(plugin: Plugin, state: CycleState, pod: Pod, table: NodeTable) -> bool:
    """Run PreFilter; return whether Filter would run."""
    if not isinstance(plugin, PreFilterPlugin):
        return True
    answer = plugin.pre_filter(state, pod, table)
    return isinstance(answer, PreFilterResult) or answer.is_success


def _compare(plugin: Plugin, pod: Pod, method: str, of_spec: Status, of_pod: Any) -> None:
    if of_spec != of_pod:
        fail(plugin, f"pod {pod.key}", (f"settled().{method}", of_spec), (method, of_pod))


def _check_without(
    plugin: Plugin,
    pod: Pod,
    table: NodeTable,
    method: str,
    state: CycleState,
    before: CycleState | None = None,
) -> None:
    """Filter or Score has the same results when `method`, which is settled, was not called."""
    rows = table.live_rows
    found: list[Any] = []
    for asked in (state, before or CycleState()):
        try:
            if method == "pre_filter" and isinstance(plugin, FilterPlugin):
                verdict = plugin.filter_rows(asked, pod, table, rows)
                found.append([status_text(verdict.status(i)) for i in range(len(verdict))])
            elif isinstance(plugin, ScorePlugin):
                found.append(plugin.score_rows(asked, pod, table, rows).tolist())
        except Exception as error:  # a plugin may raise anything
            found.append(f"{FAILED} {type(error).__name__}: {error}")
    if found[0] != found[1]:
        point = "filter_rows" if method == "pre_filter" else "score_rows"
        first = (f"{point} after {method}", found[0])
        fail(plugin, f"pod {pod.key}", first, (f"after settled().{method}", found[1]))


def _check_commits_nothing(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    for node in table.nodes_at(table.live_rows):
        before = _contents(plugin)
        for method, status in _committed(plugin, pod, node.name):
            where = f"node {node.name} for pod {pod.key}"
            if not status.is_success:
                fail(plugin, where, ("settled().commits", False), (method, status))
            changed = [name for name, value in _contents(plugin).items() if value != before[name]]
            if changed:
                what = f"changes {', '.join(changed)}"
                fail(
                    plugin,
                    where,
                    ("settled().commits", False),
                    (f"{method}, which {what},", status),
                )


def _committed(plugin: Plugin, pod: Pod, node_name: str) -> Iterator[tuple[str, Status]]:
    """The results of the methods that are called once the pod has a node."""
    state = CycleState()
    if isinstance(plugin, ReservePlugin):
        yield "reserve", plugin.reserve(state, pod, node_name)
    if isinstance(plugin, PermitPlugin):
        yield "permit", plugin.permit(state, pod, node_name)[0]
    if isinstance(plugin, PreBindPlugin):
        flight = plugin.pre_bind_pre_flight(state, pod, node_name)
        if flight.is_success and not inspect.iscoroutinefunction(plugin.pre_bind):
            status: Any = plugin.pre_bind(state, pod, node_name)
            yield "pre_bind", status
    if isinstance(plugin, ReservePlugin):
        plugin.unreserve(state, pod, node_name)


def _contents(plugin: Plugin) -> dict[str, Any]:
    """Copies of the plugin's attributes that are plain containers or values, and of its client's records."""
    plain = (int, str, tuple, list, dict, set, frozenset)
    held = {**vars(plugin), **{f"client.{k}": v for k, v in vars(plugin.handle.client).items()}}
    return {name: copy.copy(value) for name, value in held.items() if isinstance(value, plain)}


@contextmanager
def moved(plugin: Plugin, table: NodeTable) -> Iterator[None]:
    """Run the plugin in a cluster of only `table` inside the block."""
    before = plugin.handle
    plugin.handle = replace(before, table=table)
    try:
        yield
    finally:
        plugin.handle = before


@contextmanager
def without_objects(plugin: Plugin) -> Iterator[None]:
    """Remove all objects inside the block, if the lister is that of `make_handle`; others cannot be emptied."""
    lister = plugin.handle.lister
    if not isinstance(lister, ObjectLister):
        yield
        return
    held = lister.objects()
    for obj in held:
        lister.remove(obj)
    try:
        yield
    finally:
        for obj in held:
            lister.add(obj)


def status_text(status: Status) -> str:
    """The code and the sorted reasons."""
    if not status.is_success and not status.is_rejected:
        return f"{FAILED} {status.code.name}: {status.message}"
    return ": ".join(filter(None, (status.code.name, ", ".join(sorted(set(status.reasons))))))


def give_handle(plugin: Plugin, table: NodeTable) -> None:
    """A plugin made by hand has no handle yet."""
    if not hasattr(plugin, "handle"):
        plugin.handle = make_handle(table)


def fail(
    plugin: Plugin, where: str, first: tuple[str, object], second: tuple[str, object]
) -> NoReturn:
    """Report two results that should be equal."""
    raise AssertionError(
        f"{plugin.name}: {where}: {first[0]} says {first[1]!r}, {second[0]} says {second[1]!r}"
    )
