"""Filtering: PreFilter, Filter and PostFilter of one profile.

Mirrors RunPreFilterPlugins and RunPostFilterPlugins of pkg/scheduler/framework/runtime/framework.go; what is said about
one node is in `judging.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..api.pod import EMPTY_STATUS, Pod, PodClass, PodSpec
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
    PreFilterPlugin,
    PreFilterResult,
    Status,
    Verdict,
    unresolvable,
)
from ..table import ALL, Bools, Ints, NodeInfo, NodeTable, Rows
from .failing import failed
from .judging import NodeJudge
from .kept import FILTERING, Kept, KeptFeasible, judge_rows
from .plans import Plans, by_scope_and_key
from .refusals import MOST_SPECS, Question, RefusalBook, Refusals
from .scene import Scene
from .timing import timed

KEEP_NOMINATION = PostFilterResult()
FEW_ROWS = 4
"""Up to here asking about one node after the other is quicker than asking about all at once."""
PRE_FILTERING = "running PreFilter plugin {}"


@dataclass(slots=True)
class PreFiltered:
    """What PreFilter came to: a status, the nodes to look at (None: all) and who narrowed them."""

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
        self._anywhere = [p for p in self.filters if p.scope is CLUSTER]
        self._beyond_rows = frozenset(plugin.name for plugin in self._anywhere)
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
        self._book = RefusalBook(self, nominator)
        self._hopeless: dict[PodSpec, tuple[int, PostFilterResult, Status]] = {}
        """What PostFilter came to for pods that every node refuses for good, in a cluster of so many nodes."""
        self._scene = Scene({*self.pre_filters, *self.filters})
        self._beyond: Hashable = ()
        """What the answers of filters depend on beyond the rows, when they were last asked."""
        self._unconcerned: dict[PodClass, tuple[Hashable, frozenset[str] | None]] = {}

    def run_pre_filters(self, state: CycleState, pod: Pod, table: NodeTable) -> PreFiltered:
        """Run PreFilter in order; Unschedulable goes on, since preemption needs the others' state."""
        names: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        refused = SUCCESS
        self._look_beyond(table)
        plan = self._plans.get(pod, len(table))
        state.skip_filter.update(plan.skip)
        for plugin in plan.ask:
            try:
                ask = plugin.pre_filter
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "PreFilter", plugin, ask)
                answer = ask(state, pod, table)
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

    def known_skips(self, pod: Pod, table: NodeTable) -> frozenset[str] | None:
        """What PreFilter would come to, when it is known that it would only have filters skipped: their names.

        None: PreFilter has to be run.
        """
        if pod.spec.pin or _counts_for_itself(pod):
            return None  # more than the class counts
        stamp = self._look_beyond(table)
        known = self._unconcerned.get(pod.pod_class)
        if known is not None and known[0] == stamp:
            return known[1]
        plan = self._plans.get(pod, len(table))
        skips: frozenset[str] | None = None
        if not any(plugin.concerns(pod, table) for plugin in plan.ask):
            skips = plan.skip | {plugin.name for plugin in plan.ask}
        if len(self._unconcerned) >= MOST_SPECS:
            self._unconcerned.clear()
        self._unconcerned[pod.pod_class] = (stamp, skips)
        return skips

    def _look_beyond(self, table: NodeTable) -> Hashable:
        """Forget what was kept of filters when something changed that they look at beyond the rows.

        Returns what decides who is concerned with which pods.
        """
        concerns, beyond = self._scene.keys(table)
        if beyond != self._beyond:
            self._beyond = beyond
            self._book.clear()
            for demands in self._additive.values():
                demands.clear()
        return concerns

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
        """Say of each of `rows`, in the order of the plugins, who refuses it and why, its nominated pods included."""
        asked = Question(state, pod, table, self._book.reserved(pod, table))
        kept = self._refusals(asked) if isinstance(rows, slice) else None
        if kept is not None:
            kept.follow(asked)
            self._book.note(pod, kept, table)
            diagnosis.kept = kept.all
            self._judge_own_row(asked, diagnosis)
            return
        numbers = table.numbers(table.live_rows if isinstance(rows, slice) else rows)
        for row in numbers[asked.reserved.is_reserved(numbers)].tolist():
            if row not in diagnosis.alone:
                self._judge_alone(asked, row, diagnosis)
        diagnosis.every_reason = self._check_all
        for judged, verdict, plugin in self.judge_in_order(state, pod, table, numbers):
            diagnosis.judgements.append(Judgement(plugin, verdict, judged))

    def was_refused(self, pod: Pod) -> bool:
        """Whether the last pod of the spec was refused by every node, so that asking `refuse_again` first is best."""
        return pod.spec in self._book.refused

    def refuse_again(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, diagnosis: Diagnosis
    ) -> bool:
        """Whether the last pod of its class was refused everywhere, and this one is, too; `diagnosis` says why then.

        False: who knows.
        """
        if not isinstance(rows, slice) or not self.was_refused(pod):
            return False
        known = self._book.refused[pod.spec]
        if known is not None and known.is_up_to_date and self._is_for_all(state, pod):
            diagnosis.kept = known.all
            return True
        asked = Question(state, pod, table, self._book.reserved(pod, table))
        kept = self._refusals(asked)
        if kept is None:
            return False
        kept.follow(asked)
        if not self._book.note(pod, kept, table):
            return False
        self._judge_own_row(asked, diagnosis)
        if any(status.is_success for status in diagnosis.alone.values()):
            diagnosis.alone.clear()
            return False
        diagnosis.kept = kept.all
        return True

    def _is_for_all(self, state: CycleState, pod: Pod) -> bool:
        """Whether what is kept for the spec of the pod holds for it as it stands."""
        return (
            self._beyond_rows <= state.skip_filter
            and not self._nominator.node_of(pod)
            and not _counts_for_itself(pod)
        )

    def judge_in_order(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Ints
    ) -> list[tuple[Ints, Verdict, str]]:
        """Ask about `rows`, each plugin about those that the plugins before it left, or all of them about all."""
        judged = []
        for plugin in self.filters:
            if plugin.name in state.skip_filter:
                continue
            whole = len(rows) == len(table)  # columns need not be copied then
            verdict = judge_rows(plugin, state, pod, table, ALL if whole else rows)
            judged.append((rows, verdict, plugin.name))
            if self._check_all:
                continue
            rows = rows[verdict.feasible]
            if not len(rows):
                break
        return judged

    def filter_nominated(
        self, state: CycleState, pod: Pod, table: NodeTable, found: Rows, diagnosis: Diagnosis
    ) -> Rows:
        """Those of the rows `found` that can run the pod also when the pods nominated to them are there."""
        reserved = self._book.reserved(pod, table)
        if not reserved:
            return found
        asked = Question(state, pod, table, reserved)
        numbers = table.numbers(found)
        kept = self._refusals(asked)
        if kept is None:
            for row in numbers[reserved.is_reserved(numbers)].tolist():
                self._judge_alone(asked, row, diagnosis)
            refused = np.isin(numbers, list(diagnosis.alone))
        else:
            kept.follow_crowded(asked)
            refused = kept.crowded.said[numbers] != 0
            own = self._own_row(asked)
            if own is not None:
                node = table.node_at(own)
                rivals = self._rivals(pod, node)
                crowded = bool(rivals) and not self.judge_with(state, pod, node, rivals).is_success
                refused[numbers == own] = crowded
        return numbers[~refused] if refused.any() else found

    def _refusals(self, asked: Question) -> Refusals | None:
        """What is kept about the class of the pod; None when a filter looks beyond the row it judges."""
        state, pod, table, _ = asked
        skip = state.skip_filter
        if self._check_all or not self._beyond_rows <= skip:
            return None
        plan = self._plans.get(pod, len(table))
        key: Hashable = pod.spec
        if not all(plan.is_settled):
            parts = [p.pod_key(pod) for p in self.filters if p.name not in skip]
            key = (tuple(parts), tuple(pod.requests.items()), pod.priority, frozenset(skip))
        kept = self._book.get(key)
        if kept is None:
            kept = self._book.make(key, table, self.demands(state, pod))
        return kept

    def _own_row(self, asked: Question) -> int | None:
        """The row that the pod itself is nominated to."""
        name = self._nominator.node_of(asked.pod) if asked.reserved else ""
        row = asked.table.row_of.get(name) if name else None
        return row if row is not None and asked.table.live[row] else None

    def _judge_own_row(self, asked: Question, diagnosis: Diagnosis) -> None:
        """A pod makes no room for itself: what is kept for its class does not hold for the node it is nominated to."""
        own = self._own_row(asked)
        if own is not None:
            status = self.filter_with_nominated(asked.state, asked.pod, asked.table.node_at(own))
            diagnosis.alone[own] = status

    def _judge_alone(self, asked: Question, row: int, diagnosis: Diagnosis) -> None:
        """Judge a node with its nominated pods, and note when it refuses the pod because of them."""
        state, pod, table, _ = asked
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
        is_hopeless = diagnosis.is_hopeless and not pod.status.nominated_node_name
        if is_hopeless:
            known = self._hopeless.get(pod.spec)
            if known is not None and known[0] == diagnosis.node_count:
                return known[1], known[2]
        result, status = self._run_post_filters(state, pod, diagnosis)
        if is_hopeless and all(plugin.settles_hopeless(pod.spec) for plugin in self.post_filters):
            if len(self._hopeless) >= MOST_SPECS:
                self._hopeless.clear()
            self._hopeless[pod.spec] = (diagnosis.node_count, result, status)
        return result, status

    def _run_post_filters(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        result, first = KEEP_NOMINATION, ""
        reasons: list[str] = []
        for plugin in self.post_filters:
            try:
                ask = plugin.post_filter
                if state.sampled_by is not None:
                    ask = timed(state.sampled_by, "PostFilter", plugin, ask)
                wish, status = ask(state, pod, diagnosis)
            except Exception as error:
                raise failed("running PostFilter plugin {}", plugin, error) from error
            code = status.code
            if code is Code.Success or code is Code.UnschedulableAndUnresolvable:
                return wish, status.by(plugin.name)
            if not status.is_rejected:
                broken = Status(Code.Error, status.reasons, plugin.name, status.error)
                return KEEP_NOMINATION, broken
            if wish.nominated_node_name is not None:
                result = wish
            reasons.extend(status.reasons)
            first = first or plugin.name
        return result, Status(Code.Unschedulable, tuple(reasons), first)


def _counts_for_itself(pod: Pod) -> bool:
    """Whether more than the class of the pod counts."""
    status = pod.status
    return bool(pod.node_name) or (status is not EMPTY_STATUS and status.has_resources)


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
