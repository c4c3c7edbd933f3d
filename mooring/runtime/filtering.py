"""Filtering: PreFilter, Filter and PostFilter of one profile.

Mirrors RunPreFilterPlugins, RunFilterPlugins, RunFilterPluginsWithNominatedPods and RunPostFilterPlugins of
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..api.pod import Pod
from ..framework import (
    CLUSTER,
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    FilterPlugin,
    Judgement,
    Nominator,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    Status,
    unresolvable,
)
from ..table import ALL, Bools, NodeInfo, NodeTable, Rows
from ..table.what_if import WhatIf
from .failing import failed, guard
from .kept import Kept, KeptVerdict, check_verdict


@dataclass(slots=True)
class PreFiltered:
    """What PreFilter came to: a status, the nodes to look at (None: all) and who narrowed them."""

    status: Status
    node_names: frozenset[str] | None
    narrowed_by: set[str]


class Filtering:
    """The filtering half of a profile."""

    def __init__(
        self,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        post_filters: Sequence[PostFilterPlugin],
        nominator: Nominator,
    ) -> None:
        self.pre_filters = tuple(pre_filters)
        self.filters = tuple(filters)
        self.post_filters = tuple(post_filters)
        self._nominator = nominator
        self._kept = {
            plugin.name: Kept(plugin, KeptVerdict)
            for plugin in filters
            if plugin.scope is not CLUSTER
        }

    def run_pre_filters(self, state: CycleState, pod: Pod, table: NodeTable) -> PreFiltered:
        """Run PreFilter in order; Unschedulable goes on, since preemption needs the others' state."""
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        refused = SUCCESS
        for plugin in self.pre_filters:
            with guard("running PreFilter plugin {}", plugin):
                answer = plugin.pre_filter(state, pod, table)
            if isinstance(answer, PreFilterResult):
                narrowed_by.add(plugin.name)
                names = answer.node_names if names is None else names & answer.node_names
                if not names:
                    return PreFiltered(_no_node_left(narrowed_by), names, narrowed_by)
            elif answer.code is Code.Skip:
                state.skip_filter.add(plugin.name)
            elif answer.code is Code.UnschedulableAndUnresolvable:
                return PreFiltered(answer.by(plugin.name), None, set())
            elif answer.code is Code.Unschedulable:
                refused = answer.by(plugin.name)
            elif answer.code is not Code.Success:
                raise failed("running PreFilter plugin {}", plugin, answer)
        return PreFiltered(refused, names, narrowed_by)

    def run_filters(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, diagnosis: Diagnosis
    ) -> Rows:
        """Judge `rows` (ALL, or a few) by every Filter plugin; returns the feasible ones."""
        if isinstance(rows, slice):
            return self._filter_all(state, pod, table, diagnosis)
        for plugin in self.filters:
            if plugin.name not in state.skip_filter and table.count(rows):
                rows = self._filter_some(plugin, state, pod, table, rows, diagnosis)
        return rows

    def _filter_all(
        self, state: CycleState, pod: Pod, table: NodeTable, diagnosis: Diagnosis
    ) -> Rows:
        feasible: Bools | None = None  # None: every row
        if not isinstance(table.live_rows, slice):
            feasible = table.live
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            if plugin.scope is not CLUSTER:
                kept = self._kept[plugin.name].get(state, pod, table)
                diagnosis.judgements.append(Judgement(plugin.name, kept.verdict, ALL))
                if kept.refuses:
                    feasible = kept.feasible if feasible is None else feasible & kept.feasible
                continue
            rows: Rows = ALL if feasible is None else np.flatnonzero(feasible)
            left = self._filter_some(plugin, state, pod, table, rows, diagnosis)
            if left is not rows:
                feasible = np.zeros(len(table), dtype=np.bool_)
                feasible[left] = True
        return ALL if feasible is None else np.flatnonzero(feasible)

    def _filter_some(
        self,
        plugin: FilterPlugin,
        state: CycleState,
        pod: Pod,
        table: NodeTable,
        rows: Rows,
        diagnosis: Diagnosis,
    ) -> Rows:
        """Ask one plugin about `rows`; returns the very same object when it refuses none."""
        with guard("running {} filter plugin", plugin):
            verdict = plugin.filter_rows(state, pod, table, rows)
        check_verdict(verdict, plugin)
        diagnosis.judgements.append(Judgement(plugin.name, verdict, rows))
        feasible = verdict.feasible
        if feasible.all():
            return rows
        return np.flatnonzero(feasible) if isinstance(rows, slice) else rows[feasible]

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if; the first refusal counts."""
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            with guard("running {} filter plugin", plugin):
                status = plugin.filter_node(state, pod, node)
            if status.is_rejected:
                return status.by(plugin.name)
            if not status.is_success:
                raise failed("running {} filter plugin", plugin, status)
        return SUCCESS

    def filter_nominated(
        self, state: CycleState, pod: Pod, table: NodeTable, diagnosis: Diagnosis
    ) -> None:
        """Judge the nodes that other pods are nominated to once more, with those pods on them."""
        for node_name in self._nominator.nominated():
            row = table.row_of.get(node_name)
            if row is None or not table.live[row] or diagnosis.is_outside(row):
                continue
            status = self._judge_with_nominated(state, pod, table.node_at(row))
            if not status.is_success:
                diagnosis.alone[row] = status

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if, with and without the pods nominated to it."""
        status = self._judge_with_nominated(state, pod, node)
        return self.filter_node(state, pod, node) if status.is_success else status

    def _judge_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """A node must do with the nominated pods, too: they may come before this pod, or never."""
        rivals = [
            rival
            for rival in self._nominator.nominated_pods(node.name)
            if rival.priority >= pod.priority and rival.uid != pod.uid
        ]
        if not rivals:
            return SUCCESS
        state, what_if = state.clone(), WhatIf(node.table, node.row)
        for rival in rivals:
            self.add_pod(state, pod, rival, what_if)
        return self.filter_node(state, pod, what_if.node)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Put `added` on the node and tell the PreFilter plugins."""
        what_if.add_pod(added)
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                with guard("running AddPod on PreFilter plugin {}", plugin):
                    status = plugin.add_pod(state, pod, added, what_if.node)
                if not status.is_success:
                    raise failed("running AddPod on PreFilter plugin {}", plugin, status)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Take `removed` off the node and tell the PreFilter plugins."""
        what_if.remove_pod(removed)
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                with guard("running RemovePod on PreFilter plugin {}", plugin):
                    status = plugin.remove_pod(state, pod, removed, what_if.node)
                if not status.is_success:
                    raise failed("running RemovePod on PreFilter plugin {}", plugin, status)

    def run_post_filters(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        """Run PostFilter until one succeeds; the reasons of those that do not are gathered."""
        result, first = PostFilterResult(), ""
        reasons: list[str] = []
        for plugin in self.post_filters:
            with guard("running PostFilter plugin {}", plugin):
                wish, status = plugin.post_filter(state, pod, diagnosis)
            status = status.by(plugin.name)
            if status.is_success or status.code is Code.UnschedulableAndUnresolvable:
                return wish, status
            if not status.is_rejected:
                return PostFilterResult(), Status(
                    Code.Error, status.reasons, plugin.name, status.error
                )
            if wish.nominated_node_name is not None:
                result = wish
            reasons.extend(status.reasons)
            first = first or plugin.name
        return result, Status(Code.Unschedulable, tuple(reasons), first)


def _no_node_left(narrowed_by: set[str]) -> Status:
    names = sorted(narrowed_by)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")
