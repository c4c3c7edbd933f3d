"""Filtering: PreFilter, Filter and PostFilter of one profile.

Mirrors RunPreFilterPlugins, RunFilterPlugins, RunFilterPluginsWithNominatedPods and RunPostFilterPlugins of
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..api.pod import Pod
from ..framework import (
    CLUSTER,
    NODE_OBJECT,
    SUCCESS,
    AdditiveFilter,
    Code,
    CycleState,
    Demands,
    Diagnosis,
    FilterPlugin,
    Judgement,
    Nominator,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    Status,
    unresolvable,
)
from ..table import Bools, NodeInfo, NodeTable, Rows
from ..table.what_if import WhatIf
from .failing import failed
from .kept import FILTERING, Kept, KeptFeasible, judge_rows
from .plans import Plans, by_scope_and_key

POD_COUNT = "pods"
FEW_ROWS = 4
"""Up to here asking about one node after the other is quicker than asking about all at once."""
PRE_FILTERING = "running PreFilter plugin {}"


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
        check_all: bool = False,
    ) -> None:
        self.pre_filters = tuple(pre_filters)
        self.filters = tuple(filters)
        self.post_filters = tuple(post_filters)
        self._nominator = nominator
        self._check_all = check_all
        self._anywhere = [p for p in self.filters if p.scope is CLUSTER]
        self._kept: list[Kept[KeptFeasible]] = []
        for positions in by_scope_and_key(self.filters):
            group = [self.filters[position] for position in positions]
            self._kept.append(Kept(group, partial(_make_feasible, group)))
        self._plans: Plans[PreFilterPlugin, KeptFeasible] = Plans(
            self.pre_filters,
            [plugin.pre_filter_spec for plugin in self.pre_filters],
            self._kept,
            lambda state: state.skip_filter,
        )

    def run_pre_filters(self, state: CycleState, pod: Pod, table: NodeTable) -> PreFiltered:
        """Run PreFilter in order; Unschedulable goes on, since preemption needs the others' state."""
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        refused = SUCCESS
        plan = self._plans.get(pod, len(table))
        state.skip_filter.update(plan.skip)
        for plugin in plan.ask:
            try:
                answer = plugin.pre_filter(state, pod, table)
            except Exception as error:
                raise failed(PRE_FILTERING, plugin, error) from error
            if isinstance(answer, PreFilterResult):
                narrowed_by.add(plugin.name)
                names = answer.node_names if names is None else names & answer.node_names
                if not names:
                    state.unreached = self._after(plugin)
                    return PreFiltered(_no_node_left(narrowed_by), names, narrowed_by)
            elif answer.code is Code.Skip:
                state.skip_filter.add(plugin.name)
            elif answer.code is Code.UnschedulableAndUnresolvable:
                state.unreached = self._after(plugin)
                return PreFiltered(answer.by(plugin.name), None, set())
            elif answer.code is Code.Unschedulable:
                refused = answer.by(plugin.name)
            elif answer.code is not Code.Success:
                raise failed(PRE_FILTERING, plugin, answer)
        return PreFiltered(refused, names, narrowed_by)

    def run_filters(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Rows:
        """The feasible ones of `rows` (ALL, or a few), without saying who refused the others.

        Which plugin is asked first makes no difference to the outcome: those with kept answers are.
        """
        plugins: Sequence[FilterPlugin] = self.filters
        if not isinstance(rows, slice) and len(rows) <= FEW_ROWS:
            nodes = [table.node_at(row) for row in rows.tolist()]
            fitting = [node.row for node in nodes if self._fits(state, pod, node)]
            return rows if len(fitting) == len(rows) else np.array(fitting, dtype=np.int64)
        if isinstance(rows, slice):
            plugins = self._anywhere
            feasible: Bools | None = None if isinstance(table.live_rows, slice) else table.live
            plan = self._plans.get(pod, len(table))
            for position in range(len(self._kept)):
                answer = self._plans.answer(plan, position, state, pod, table)
                if answer.refused:
                    feasible = answer.feasible if feasible is None else feasible & answer.feasible
            if feasible is not None:
                rows = np.flatnonzero(feasible)
        for plugin in plugins:
            if plugin.name not in state.skip_filter and (isinstance(rows, slice) or len(rows)):
                rows = _among(rows, judge_rows(plugin, state, pod, table, rows).feasible)
        return rows

    def _fits(self, state: CycleState, pod: Pod, node: NodeInfo) -> bool:
        """Whether every filter accepts one node."""
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            try:
                status = plugin.filter_node(state, pod, node)
            except Exception as error:
                raise failed(FILTERING, plugin, error) from error
            if status.code is not Code.Success:
                if not status.is_rejected:
                    raise failed(FILTERING, plugin, status)
                return False
        return True

    def _after(self, plugin: PreFilterPlugin) -> frozenset[str]:
        """The plugins whose turn in PreFilter comes after `plugin`."""
        names = [p.name for p in self.pre_filters]
        return frozenset(names[names.index(plugin.name) + 1 :])

    def diagnose(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, diagnosis: Diagnosis
    ) -> None:
        """Judge `rows` once more in the order of the plugins, and note who refused which."""
        rows = table.live_rows if isinstance(rows, slice) else rows
        diagnosis.every_reason = self._check_all
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            verdict = judge_rows(plugin, state, pod, table, rows)
            diagnosis.judgements.append(Judgement(plugin.name, verdict, rows))
            if self._check_all:
                continue
            rows = _among(rows, verdict.feasible)
            if table.count(rows) == 0:
                break

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if; the first refusal counts, or all of them when all are asked for."""
        merged = SUCCESS
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            try:
                status = plugin.filter_node(state, pod, node)
            except Exception as error:
                raise failed(FILTERING, plugin, error) from error
            if status.is_rejected:
                merged = merged.merged(status.by(plugin.name))
                if not self._check_all:
                    break
            elif not status.is_success:
                raise failed(FILTERING, plugin, status)
        return merged

    def filter_nominated(
        self, state: CycleState, pod: Pod, table: NodeTable, diagnosis: Diagnosis
    ) -> None:
        """Judge the nodes that other pods are nominated to once more, with those pods on them."""
        node_names = self._nominator.node_names()
        if not node_names:
            return
        demands = self.demands(state, pod)
        accepted = self._accepted_objects(state, pod, table) if demands is not None else None
        for node_name in node_names:
            row = table.row_of.get(node_name)
            if row is None or not table.live[row] or diagnosis.is_outside(row):
                continue
            if demands is None:
                status = self._judge_with_nominated(state, pod, table.node_at(row))
            elif accepted is None or accepted[row]:
                status = self._crowded(pod, table.node_at(row), demands)
            else:
                continue  # refused for what the node is, whoever is on it
            if not status.is_success:
                diagnosis.alone[row] = status

    def demands(self, state: CycleState, pod: Pod) -> Demands | None:
        """What `pod` needs free on a node, when no filter looks at the pods of a node in another way."""
        amounts: dict[str, int] = {}
        reasons: dict[str, str] = {}
        for plugin in self.filters:
            if plugin.name in state.skip_filter or plugin.scope is NODE_OBJECT:
                continue
            if not isinstance(plugin, AdditiveFilter) or amounts:
                return None  # one that adds up is enough to know; two might count the same thing
            wanted = plugin.demands(pod)
            amounts, reasons = wanted.amounts, wanted.reasons
        return Demands(amounts, reasons)

    def _accepted_objects(self, state: CycleState, pod: Pod, table: NodeTable) -> Bools | None:
        """bool per row: no filter refuses the node for what it is; None when there is no such filter."""
        accepted: Bools | None = None
        plan = self._plans.get(pod, len(table))
        for position, kept in enumerate(self._kept):
            if kept.scope is NODE_OBJECT:
                feasible = self._plans.answer(plan, position, state, pod, table).feasible
                accepted = feasible if accepted is None else accepted & feasible
        return accepted

    def _crowded(self, pod: Pod, node: NodeInfo, demands: Demands) -> Status:
        """Whether the nominated pods leave room on the node, by adding up."""
        rivals = self._rivals(pod, node)
        reasons, code = [], Code.Unschedulable
        for resource, wanted in demands.amounts.items() if rivals else ():
            used = [rival.usage.get(resource, 0) for rival in rivals]
            taken = node.requested.get(resource, 0) + sum(used)
            if resource == POD_COUNT:
                taken = len(node.table.pods[node.row]) + len(rivals)
            capacity = node.allocatable.get(resource, 0)
            if wanted > capacity - taken:
                reasons.append(demands.reasons[resource])
                if wanted > capacity and resource != POD_COUNT:
                    code = Code.UnschedulableAndUnresolvable
        adding = next((p.name for p in self.filters if isinstance(p, AdditiveFilter)), "")
        return Status(code, tuple(reasons), adding) if reasons else SUCCESS

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, possibly a what-if, with and without the pods nominated to it."""
        status = self._judge_with_nominated(state, pod, node)
        return self.filter_node(state, pod, node) if status.is_success else status

    def _judge_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """A node must do with the nominated pods, too: they may come before this pod, or never."""
        rivals = self._rivals(pod, node)
        if not rivals:
            return SUCCESS
        state, what_if = state.clone(), WhatIf(node.table, node.row)
        for rival in rivals:
            self.add_pod(state, pod, rival, what_if)
        return self.filter_node(state, pod, what_if.node)

    def _rivals(self, pod: Pod, node: NodeInfo) -> list[Pod]:
        """The pods nominated to the node that `pod` must leave room for."""
        return [
            rival
            for rival in self._nominator.nominated_pods(node.name)
            if rival.priority >= pod.priority and rival.uid != pod.uid
        ]

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Put `added` on the node and tell the PreFilter plugins."""
        what_if.add_pod(added)
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                self._tell(plugin, "AddPod", plugin.add_pod, state, pod, added, what_if)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Take `removed` off the node and tell the PreFilter plugins."""
        what_if.remove_pod(removed)
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skip_filter:
                self._tell(plugin, "RemovePod", plugin.remove_pod, state, pod, removed, what_if)

    @staticmethod
    def _tell(
        plugin: Plugin,
        what: str,
        method: Callable[[CycleState, Pod, Pod, NodeInfo], Status],
        *told: Any,
    ) -> None:
        state, pod, other, what_if = told
        doing = f"running {what} on PreFilter plugin {{}}"
        try:
            status = method(state, pod, other, what_if.node)
        except Exception as error:
            raise failed(doing, plugin, error) from error
        if not status.is_success:
            raise failed(doing, plugin, status)

    def run_post_filters(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        """Run PostFilter until one succeeds; the reasons of those that do not are gathered."""
        result, first = PostFilterResult(), ""
        reasons: list[str] = []
        for plugin in self.post_filters:
            try:
                wish, status = plugin.post_filter(state, pod, diagnosis)
            except Exception as error:
                raise failed("running PostFilter plugin {}", plugin, error) from error
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


def _make_feasible(group: Sequence[FilterPlugin], active: Sequence[int]) -> KeptFeasible:
    return KeptFeasible([group[i] for i in active])


def _among(rows: Rows, feasible: Bools) -> Rows:
    """The feasible ones of `rows`; the very same object when all are."""
    if feasible.all():
        return rows
    return np.flatnonzero(feasible) if isinstance(rows, slice) else rows[feasible]


def _no_node_left(narrowed_by: set[str]) -> Status:
    names = sorted(narrowed_by)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")
