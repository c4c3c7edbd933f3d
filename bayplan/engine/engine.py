"""Engine: where a pod goes, decided from the view of its class.

One pod, top to bottom (`decide`): PreFilter of plugins that the spec does not settle; the view of the class, brought
up to date on the rows that changed; room for nominated pods; the live plugins, called on one row of each group; the
totals. Where `decide` returns None the reference decides (`scheduler/find_nodes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..amounts import POD_COUNT, copies_that_fit
from ..amounts.kernel import (
    NONE_FEASIBLE,
    REFUSED,
    Best,
    Filling,
    combine,
    nth_best,
    summarize,
)
from ..api.pod import EMPTY_STATUS, Pod, PodSpec
from ..framework import (
    GROUPS,
    Code,
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
)
from ..framework.reserved import Reserved
from ..framework.row_statuses import RowStatuses
from ..runtime import ProfileRuntime
from ..runtime.asking import ask_filter, ask_hook, ask_keys, ask_pre_filter, has_own
from ..stamped_cache import Budget, BudgetedCache
from ..table import Ints, NodeTable
from .class_plan import ClassPlan, Planner, Points
from .class_view import ClassView, Trackers
from .marks import NO_MARKS, GroupRules, Marks, MarksOfClasses
from .node_part import NodePart
from .row_groups import Ranking, best_by_rules


class Decision(msgspec.Struct):
    """The result for one pod, to be read before the table changes. `values` is int64 per row, negative where the pod
    does not fit.
    """

    values: Ints
    best: Best
    refusals: RowStatuses | None = None
    """When no node fits: the status of each row."""
    groups: Any = None
    """Tracked groups of rows whose points come on top of the values."""

    @property
    def totals(self) -> Ints:
        """int64 per row, negative where the pod does not fit."""
        if self.groups is None:
            return self.values
        return combine(self.values, self.groups.ids, self.groups.points)[0]

    @property
    def total_at(self) -> Callable[[int], int]:
        """Gives the total of one row."""
        at: Callable[[int], int] = self.values.item if self.groups is None else self.groups.total_at
        return at

    def nth_best(self, n: int) -> int:
        """The n-th row, from 0, with the best total."""
        best = self.total_at(self.best.row)
        if self.groups is None:
            return nth_best(self.values, best, n)
        row: int = self.groups.nth_best(best, n)
        return row


class Fillings(NamedTuple):
    """The classes of some pods, and the number of the class of each pod."""

    kinds: Sequence[Filling]
    classes: Ints


class Engine:
    """Decides for the pods of one profile."""

    def __init__(self, profile: ProfileRuntime, table: NodeTable) -> None:
        filtering, scoring = profile.filtering, profile.scoring
        self._table = table
        self._nominator = profile.handle.nominator
        self._filtering = filtering
        self._points = Points(
            filtering.pre_filters, filtering.filters, scoring.pre_scores, scoring.scores
        )
        self._planner = Planner(self._points)
        every: dict[Plugin, None] = dict.fromkeys(
            (*filtering.filters, *(plugin for plugin, _ in scoring.scores))
        )
        clustered = [plugin for plugin in every if has_own(plugin, Plugin, "cluster_key")]
        self._clustered = [(p, p.cluster_key) for p in clustered if p.scope is not GROUPS]
        grouped = {p for p in (*every, *scoring.pre_scores) if p.scope is GROUPS}
        self._grouped = [(p, p.cluster_key) for p in clustered if p in grouped]
        self._reads_any_object = len(self._grouped) < len(grouped)
        """Whether some GROUPS plugin does not say which objects its columns depend on."""
        self._lister = profile.handle.lister
        self._version: Hashable = None
        self._stamp: Hashable = None
        self._columns_stamp: Hashable = None
        self._budget = Budget()
        self._views: BudgetedCache[Hashable, ClassView] = BudgetedCache("views", self._budget)
        self._parts: BudgetedCache[Hashable, NodePart] = BudgetedCache("node parts", self._budget)
        self._trackers: Trackers = BudgetedCache("row groups", self._budget)
        self._marks = MarksOfClasses(table)
        self.applies = profile.percentage is None and not filtering.check_all
        """Whether every node is judged, and only the first refusal of a node is reported."""

    def decide(self, state: CycleState, pod: Pod) -> Decision | None:
        """The decision for `pod`; None: the reference decides."""
        if not self.applies or not self._is_like_its_class(pod):
            return None
        self._follow_cluster()
        if pod.spec.pin:
            return self._decide_pinned(state, pod)
        plan = self._planner.plan(pod, self._stamp)
        if plan is None:
            return None
        marks = self._marks.get(plan, pod, self._columns_stamp) if plan.grouped else NO_MARKS
        if marks.rules is not None and plan.is_plain and not self._is_beside_nominated(pod):
            decision = self._decide_by_rules(state, pod, plan, marks, marks.rules)
            if decision is not None:
                is_explained = decision.best.feasible or decision.refusals is not None
                return decision if is_explained else None
        if not self._run_pre_filters(plan, state, pod, marks.quiet):
            return None
        reserved = self._filtering.reserved(pod, self._table) if self._nominator else None
        view = self._view_of(plan, state, pod.priority if reserved else None)
        view.refresh(state, pod, self._table, reserved)
        values, is_explained = view.values, True
        if reserved and self._depends_on_pods(plan, state):
            values, is_explained = self._beside_nominated(state, pod, view, reserved), False
        is_whole = values is view.values
        has_raws = view.part.raw_ids is None or (is_whole and view.includes_raws)
        ranking: Ranking | None = None
        if marks.columns != () or not plan.is_plain or not has_raws:
            ranking = Ranking(state, pod, self._table, view, marks, self._trackers)
        if ranking is None or (has_raws and ranking.accepts_all(values)):
            total, ties, feasible, row = view.best() if is_whole else summarize(values)
            if feasible:
                if view.part.raw_ids is None:
                    total += plan.constant
                return Decision(values, Best(total, ties, feasible, row))
        else:
            ranked = ranking.rank(values)
            if ranked is not None:
                return Decision(*combine(values, *ranked))
            is_explained = is_explained and not ranking.has_filters
        if not is_explained:
            state.clear()
            return None  # the reference finds which filter refused which node
        refusals = view.statuses(state, pod, self._table, self._points.filters)
        return Decision(values, NONE_FEASIBLE, refusals)

    def nominated_row(self, state: CycleState, pod: Pod) -> int | None:
        """The row of the node that the status of `pod` nominates, if it fits there; None: the reference decides."""
        table, row = self._table, self._table.row_of.get(pod.nominated_node_name)
        if not self.applies or row is None or not table.live[row]:
            return None
        if pod.node_name or pod.spec.pin or pod.status.has_resources:
            return None
        self._follow_cluster()
        plan = self._planner.plan(pod, self._stamp)
        if plan is None:
            return None
        marks = self._marks.get(plan, pod, self._columns_stamp) if plan.grouped else NO_MARKS
        if not self._run_pre_filters(plan, state, pod, marks.quiet):
            return None
        status = self._filtering.filter_with_nominated(state, pod, table.node_at(row))
        if not status.is_success:
            state.clear()  # the reference starts anew
            return None
        return row

    def decide_within(self, state: CycleState, pod: Pod, within: Ints) -> Decision | None:
        """The decision for `pod` on the rows `within`, where only the values of its view count; None: the reference."""
        view = self._plain_view(state, pod)
        if view is None:
            return None
        values = np.full(len(self._table), REFUSED)
        values[within] = view.values[within]
        total, ties, feasible, row = summarize(values)
        if not feasible:
            state.clear()
            return None  # the reference finds which filter refused which node
        return Decision(values, Best(total + view.plan.constant, ties, feasible, row))

    def fillings(self, pods: Sequence[Pod]) -> Fillings | None:
        """What the kernel needs to put `pods` on rows one after another; None: more than rules on amounts decide."""
        kinds: dict[ClassView, int] = {}
        fillings: list[Filling] = []
        classes: list[int] = []
        for pod in pods:
            view = None if _counts_pods(pod.spec) else self._plain_view(CycleState(), pod)
            filling = None if view is None else view.filling(pod, self._table)
            if view is None or filling is None:
                return None
            if view not in kinds:
                kinds[view] = len(fillings)
                fillings.append(filling)
            elif fillings[kinds[view]].uses != filling.uses:
                return None  # pods that are judged alike and use different amounts
            classes.append(kinds[view])
        return Fillings(fillings, np.array(classes, dtype=np.int64))

    def copies(self, pod: Pod) -> Ints | None:
        """int64 per row: how many pods like `pod` fit beside each other; None: filters other than on node objects and
        amounts take part. Scores do not matter: in the end every row is full.
        """
        if not self.applies or self._nominator or pod.spec.pin or not self._is_like_its_class(pod):
            return None
        self._follow_cluster()
        plan = self._planner.plan(pod, self._stamp)
        if plan is None or plan.fit is None or plan.row_filters:
            return None
        marks, state = (
            self._marks.get(plan, pod, self._columns_stamp) if plan.grouped else NO_MARKS,
            CycleState(),
        )
        if not self._run_pre_filters(plan, state, pod, marks.quiet):
            return None
        if any(placed.plugin.name not in state.skip_filter for placed in plan.live_filters):
            return None
        used = {**pod.usage, POD_COUNT: 1}
        if plan.fit.left_to_devices or any(used.get(n) != w for n, w in plan.fit.amounts.items()):
            return None
        view = self._view_of(plan, state)
        view.refresh(state, pod, self._table)
        found, rows = np.zeros(len(self._table), dtype=np.int64), np.flatnonzero(view.values >= 0)
        found[rows] = copies_that_fit(self._table, plan.fit, rows)
        return found

    def _plain_view(self, state: CycleState, pod: Pod) -> ClassView | None:
        """The view of the class of `pod`, up to date, if its values are all that decides; else None."""
        if not self.applies or self._nominator or pod.spec.pin or not self._is_like_its_class(pod):
            return None
        self._follow_cluster()
        plan = self._planner.plan(pod, self._stamp)
        if plan is None or not plan.is_plain:
            return None
        marks = self._marks.get(plan, pod, self._columns_stamp) if plan.grouped else NO_MARKS
        if marks.columns != () or not plan.asked_names <= marks.quiet:
            return None
        state.skip_filter.update(plan.skip_filter, marks.quiet)
        view = self._view_of(plan, state)
        view.refresh(state, pod, self._table)
        return view if view.part.raw_ids is None else None

    def _decide_by_rules(
        self, state: CycleState, pod: Pod, plan: ClassPlan, marks: Marks, rules: GroupRules
    ) -> Decision | None:
        """The decision for a pod whose live plugins go by rules on counts; None: they have to be called.

        No node is feasible: the reference decides, unless nothing but the view refuses nodes.
        """
        if self._run_pre_filters(plan, state, pod, rules.settled):
            view = self._view_of(plan, state)
            view.refresh(state, pod, self._table)
            if not rules.limits and not view.best()[2]:
                refusals = view.statuses(state, pod, self._table, self._points.filters)
                return Decision(view.values, NONE_FEASIBLE, refusals)
            found = best_by_rules(state, pod, self._table, view, marks, self._trackers)
            if found is not None:
                best, groups = found
                if best.feasible:
                    return Decision(view.values, best, groups=groups)
                state.clear()
                return Decision(view.values, best)
        state.clear()
        return None

    def _is_beside_nominated(self, pod: Pod) -> bool:
        """Whether pods are nominated to nodes that may not be displaced by `pod`."""
        return bool(self._nominator) and bool(self._filtering.reserved(pod, self._table))

    def _is_like_its_class(self, pod: Pod) -> bool:
        """Whether the pod is judged as any other of its class, on all nodes."""
        status = pod.status
        if pod.node_name:
            return False
        if status is not EMPTY_STATUS and (status.has_resources or status.nominated_node_name):
            return False
        return not self._nominator.node_of(pod)

    def _decide_pinned(self, state: CycleState, pod: Pod) -> Decision | None:
        """The decision for a pod that names its node, as those of a DaemonSet do: one value of a view is read.

        The view is that of pods which are equal but for the name; filters that may read the name are called about
        that node. None: the pod does not fit there, or it has claims, or PreFilter has to run for it.
        """
        row = self._table.row_of.get(pod.spec.pin)
        if row is None or pod.spec.claims:
            return None
        spec = pod.pod_class.spec
        plan = self._planner.plan(pod, self._stamp)
        if plan is None or not self._is_narrowed(plan, pod):
            return None
        quiet = (
            self._marks.get(plan, pod, self._columns_stamp).quiet if plan.grouped else frozenset()
        )
        if any(plugin.name not in quiet for plugin in plan.pre_filters):
            return None
        if self._is_beside_nominated(pod):
            return None
        view = self._view_of(plan, state)
        if view.is_stale(self._table):
            view.refresh(state, pod.replace(spec=spec), self._table)
        if view.values[row] < 0:
            return None
        live = [p.plugin for p in plan.live_filters if p.plugin.name not in quiet]
        if live or plan.pinned_filters:
            node = self._table.node_at(row)
            for plugin in (*plan.pinned_filters, *live):
                if not ask_filter(plugin, state, pod, node).is_success:
                    state.clear()
                    return None
        return Decision(view.values, Best(view.values.item(row), 1, 1, row))

    def _is_narrowed(self, plan: ClassPlan, pod: Pod) -> bool:
        """Whether PreFilter leaves only the node that the pod names. A profile may be without NodeAffinity.

        No score is needed then; `plan.pinned_filters` are the filters whose answer may depend on the name.
        """
        known = plan.narrows_to_pin
        if known is None:
            narrowing = {
                plugin.name
                for plugin in self._points.pre_filters
                if ask_hook(plugin, plugin.settled, pod.spec).pre_filter is None
                and self._narrows_to_pin(plugin, pod)
            }
            known = plan.narrows_to_pin = bool(narrowing)
            placed = (*plan.object_filters, *plan.row_filters, *plan.rule_filters)
            filters = [p.plugin for p in placed if p.plugin.name not in narrowing]
            plan.pinned_filters = [p for p in filters if self._may_read_pin(p, pod)]
        return known

    @staticmethod
    def _may_read_pin(plugin: FilterPlugin, pod: Pod) -> bool:
        key = ask_hook(plugin, plugin.spec_key, pod.spec)
        return key is None or key != ask_hook(plugin, plugin.spec_key, pod.pod_class.spec)

    def _narrows_to_pin(self, plugin: PreFilterPlugin, pod: Pod) -> bool:
        answer = ask_pre_filter(plugin, CycleState(), pod, self._table)
        return isinstance(answer, PreFilterResult) and answer.node_names == {pod.spec.pin}

    # The view of a class

    def _follow_cluster(self) -> None:
        """Drop what depends on more than the rows of the table, when that changed."""
        table = self._table
        version = (
            self._lister.version,
            table.node_changes.version,
            table.carried.version,
            table.namespaces_version,
            table.images.version,
            table.terms.dropped,
        )
        if version == self._version:
            return
        self._version = None  # should a plugin raise, all of this is due again
        objects = version[0] if self._reads_any_object else 0
        columns_stamp = (objects, version[2:], ask_keys(self._grouped, table))
        self._columns_stamp = columns_stamp
        stamp = ask_keys(self._clustered, table)
        if stamp != self._stamp:
            self._stamp = stamp
            self._budget.drop()  # nothing asks for the views of former plans again
        self._version = version

    def _view_of(
        self, plan: ClassPlan, state: CycleState, priority: int | None = None
    ) -> ClassView:
        """The view for a plan, of which PreFilter may have skipped some plugins with cached answers.

        With a `priority`, room for pods nominated with at least this priority counts as used.
        """
        skipped = plan.unsettled & state.skip_filter if plan.unsettled else frozenset()
        key: Hashable = plan if not skipped and priority is None else (plan, skipped, priority)
        view = self._views.get(key)
        if view is None:
            cells = len(self._table) * (1 + len(plan.row_raws))
            view = self._views.put(key, ClassView(plan, self._part_of(plan, skipped)), cells)
        return view

    def _part_of(self, plan: ClassPlan, skipped: frozenset[str]) -> NodePart:
        """The node part for a plan; views keep references to theirs, also when it leaves the budget."""
        key = (plan.object_key, skipped)
        part = self._parts.get(key)
        if part is None:
            cells = len(self._table) * (2 + len(plan.object_raws))
            part = self._parts.put(key, NodePart(plan), cells)
        return part

    def _run_pre_filters(
        self, plan: ClassPlan, state: CycleState, pod: Pod, quiet: frozenset[str]
    ) -> bool:
        """Whether PreFilter neither refuses the pod nor narrows the nodes; the `quiet` plugins are not called."""
        state.skip_filter.update(plan.skip_filter, quiet)
        state.fit_rule = plan.fit
        if plan.asked_names <= quiet:
            return True
        for plugin in plan.pre_filters:
            if plugin.name in quiet:
                continue
            answer = ask_pre_filter(plugin, state, pod, self._table)
            if isinstance(answer, PreFilterResult):
                break
            if answer.code is Code.Skip:
                state.skip_filter.add(plugin.name)
            elif answer.code is not Code.Success:
                break
        else:
            return True
        state.clear()  # the reference runs PreFilter again
        return False

    # Nominated pods

    @staticmethod
    def _depends_on_pods(plan: ClassPlan, state: CycleState) -> bool:
        """Whether filters besides the fit rule depend on the pods of a node."""
        others = (*plan.row_filters, *plan.live_filters)
        return any(placed.plugin.name not in state.skip_filter for placed in others)

    def _beside_nominated(
        self, state: CycleState, pod: Pod, view: ClassView, reserved: Reserved
    ) -> Ints:
        """The values, without the rows that a filter besides the fit rule refuses once the nominated pods are there."""
        values, rows = view.values.copy(), reserved.rows
        for row in rows[values[rows] >= 0].tolist():
            status = self._filtering.filter_with_nominated(state, pod, self._table.node_at(row))
            if not status.is_success:
                values[row] = REFUSED
        return values


def _counts_pods(spec: PodSpec) -> bool:
    """Whether where such a pod goes depends on which other pods are where."""
    return bool(spec.has_pod_terms or spec.topology_spread_constraints)
