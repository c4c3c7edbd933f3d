"""Filter plugins: PreFilter, Filter and PostFilter of one profile, plugin by plugin: the reference for `engine`.

Mirrors RunPreFilterPlugins and RunPostFilterPlugins of pkg/scheduler/framework/runtime/framework.go; the filters of
one node are in `node_check.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ..api.pod import Pod
from ..framework import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Status,
    unresolvable,
)
from ..framework.answer_checks import check_pair
from ..framework.diagnosis import Diagnosis, Judgement
from ..framework.handle import Nominator
from ..framework.reserved import Reserved
from ..stamped_cache import StampedCache
from ..table import ALL, Bools, Ints, NodeTable, Rows
from .node_check import NodeJudge
from .plugin_calls import PodCalls, ask_filter, ask_hook
from .plugin_failures import failed
from .plugin_times import timed

POST_FILTERING = "running PostFilter plugin {}"
KEEP_NOMINATION = PostFilterResult()
FEW_ROWS = 4
"""Number of rows up to which judging one node after the other is quicker than judging all at once."""


class PreFiltered(msgspec.Struct):
    """The result of PreFilter: a status, the nodes to judge (None means all) and the plugins that narrowed them."""

    status: Status
    node_names: frozenset[str] | None
    narrowed_by: set[str]


class Filtering(NodeJudge):
    """The filtering half of a profile."""

    def __init__(
        self,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        post_filters: Sequence[PostFilterPlugin],
        nominator: Nominator,
        check_all: bool = False,
    ) -> None:
        super().__init__(pre_filters, filters, nominator, check_all)
        self.post_filters = tuple(post_filters)
        self._reserved: StampedCache[int, Reserved] = StampedCache("reservations", 64)
        """Use of nominated pods, by the lowest priority that counts."""

    def run_pre_filters(self, state: CycleState, pod: Pod, table: NodeTable) -> PreFiltered:
        """Run PreFilter in order; Unschedulable goes on, since preemption needs the others' state."""
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        refused, calls = SUCCESS, PodCalls(state, pod, table)
        for plugin in self.pre_filters:
            settled = ask_hook(plugin, plugin.settled, pod.spec)
            answer: Status | PreFilterResult | None = settled.pre_filter
            if answer is None or pod.node_name:  # `settled` does not depend on nodeName
                answer = calls.pre_filter(plugin)
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
            elif answer.code is not Code.Success:
                refused = answer.by(plugin.name)
        return PreFiltered(refused, names, narrowed_by)

    def run_filters(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Rows:
        """The feasible rows of `rows` (ALL, or some); refusals are not recorded."""
        if isinstance(rows, slice):
            rows = table.live_rows
        elif len(rows) <= FEW_ROWS:
            fitting = [row for row in rows.tolist() if self._fits(state, pod, table, row)]
            return rows if len(fitting) == len(rows) else np.array(fitting, dtype=np.int64)
        calls = PodCalls(state, pod, table)
        for plugin in self.filters:
            if plugin.name not in state.skip_filter and (isinstance(rows, slice) or len(rows)):
                rows = _among(rows, calls.filter(plugin, rows).feasible)
        return rows

    def _fits(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> bool:
        """Whether every filter accepts one node."""
        node = table.node_at(row)
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            if ask_filter(plugin, state, pod, node).code is not Code.Success:
                return False
        return True

    def _after(self, plugin: PreFilterPlugin) -> frozenset[str]:
        """The plugins whose turn in PreFilter comes after `plugin`."""
        names = [p.name for p in self.pre_filters]
        return frozenset(names[names.index(plugin.name) + 1 :])

    def diagnose(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, diagnosis: Diagnosis
    ) -> None:
        """Record which plugin refuses each of `rows`, and why, in plugin order; with the pods nominated there."""
        reserved = self.reserved(pod, table)
        numbers = table.numbers(table.live_rows if isinstance(rows, slice) else rows)
        for row in numbers[reserved.is_reserved(numbers)].tolist():
            if row not in diagnosis.alone:
                self._judge_alone(state, pod, table, row, diagnosis)
        judgements = self.judge_in_order(state, pod, table, numbers)
        diagnosis.add_judgements(judgements, every_reason=self.check_all)

    def reserved(self, pod: Pod, table: NodeTable) -> Reserved:
        """Use of pods nominated with at least the priority of `pod`, up to date."""
        least = pod.priority
        reserved = self._reserved.get(least)
        if reserved is None:
            reserved = self._reserved.put(least, Reserved(table, self._nominator, least))
        reserved.follow()
        return reserved

    def judge_in_order(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Ints
    ) -> list[Judgement]:
        """Run the filters on `rows`: each on the rows that earlier filters accept or, with `check_all`, on all rows."""
        judged, calls = list[Judgement](), PodCalls(state, pod, table)
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            whole = len(rows) == len(table)  # columns need not be copied then
            verdict = calls.filter(plugin, ALL if whole else rows)
            judged.append((rows, verdict, plugin.name))
            if self.check_all:
                continue
            rows = rows[verdict.feasible]
            if not len(rows):
                break
        return judged

    def filter_nominated(
        self, state: CycleState, pod: Pod, table: NodeTable, found: Rows, diagnosis: Diagnosis
    ) -> Rows:
        """The rows of `found` that can run the pod together with the pods nominated to them."""
        reserved = self.reserved(pod, table)
        if not reserved:
            return found
        numbers = table.numbers(found)
        for row in numbers[reserved.is_reserved(numbers)].tolist():
            self._judge_alone(state, pod, table, row, diagnosis)
        refused = np.isin(numbers, list(diagnosis.alone))
        return numbers[~refused] if refused.any() else found

    def _judge_alone(
        self, state: CycleState, pod: Pod, table: NodeTable, row: int, diagnosis: Diagnosis
    ) -> None:
        """Judge a node with its nominated pods, and note when it refuses the pod because of them."""
        node = table.node_at(row)
        rivals = self._rivals(pod, node)
        status = self.judge_with(state, pod, node, rivals) if rivals else SUCCESS
        if not status.is_success:
            if self._only_adds_up(state, pod):
                status = self.first_of(status, self.filter_node(state, pod, node))
            diagnosis.alone[row] = status

    def run_post_filters(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        """Run PostFilter until one succeeds; the reasons of those that do not are gathered."""
        result, first = KEEP_NOMINATION, ""
        reasons: list[str] = []
        for plugin in self.post_filters:
            try:
                ask = plugin.post_filter
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "PostFilter", plugin, ask)
                expected = "a tuple of a PostFilterResult and a Status"
                answer = ask(state, pod, diagnosis)
                wish, status = check_pair(answer, PostFilterResult, Status, expected)
            except Exception as error:  # a plugin may raise anything
                raise failed(POST_FILTERING, plugin, error, "post_filter") from error
            code = status.code
            if code is Code.Success or code is Code.UnschedulableAndUnresolvable:
                return wish, status.by(plugin.name)
            if not status.is_rejected:
                broken = Status(Code.Error, status.reasons, plugin.name, status.error)
                return PostFilterResult(None, wish.preemption), broken
            if wish.nominated_node_name is not None:
                result = wish
            reasons.extend(status.reasons)
            first = first or plugin.name
        return result, Status(Code.Unschedulable, tuple(reasons), first)


def _among(rows: Rows, feasible: Bools) -> Rows:
    """The feasible rows of `rows`; the same object if all are feasible."""
    if feasible.all():
        return rows
    return np.flatnonzero(feasible) if isinstance(rows, slice) else rows[feasible]


def _no_node_left(narrowed_by: set[str]) -> Status:
    names = sorted(narrowed_by)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")
