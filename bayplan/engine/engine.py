"""Engine: where a pod goes. A total is `values[row] + points[group of the row]`; the best total is the decision.

`prepare` gives the values (the view of the class, up to date) or the `Reason` for which the reference has to decide
(`scheduler/deciding.py`). `decide` finds the points of groups and the best row. Other questions (rows within a
placement, copies, fillings) begin with `prepare`, too.

A pod that is to be spread over zones, after one node changed:

1. `prepare`: the pod is like its class; `_follow_cluster` compares versions, of which that of the nodes is another one,
   and finds the same stamps. The plan of the spec and the marks of the class are cached. `Marks.hold` compares
   what the rules depend on of the nodes, the zones that there are: they are the same. PodTopologySpread goes by rules,
   so its PreFilter is not called.
2. `_view_of` has the view. `ClassView.refresh`: `NodePart.refresh` reads the row in the log of node changes and calls
   the plugins on node objects about it; the kernel applies the rules on amounts to the rows in the log of row changes.
3. `_decide_by_rules`, `best_by_rules`: `ClassView.tracked` moves the changed row to its group; the kernel reads the
   pods per zone that the table counts, gives each group its points or refuses it, and has the best row.
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
from ..runtime.plugin_calls import ask_filter, ask_hook, ask_keys, ask_pre_filter, has_own
from ..stamped_cache import Budget, BudgetedCache, StampedCache
from ..table import Ints, NodeTable
from .class_plan import ClassPlan, Planner, Points
from .class_view import ClassView, Trackers
from .marks import NO_MARKS, GroupRules, Marks, MarksOfClasses
from .node_part import NodePart
from .reasons import Reason
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


class Prepared(NamedTuple):
    """All that the answers about a pod are taken from."""

    view: ClassView
    """Up to date; PreFilter has run."""
    marks: Marks
    rules: GroupRules | None
    """The rules by which the points of groups are found without calling plugins; None if these have to be called."""
    reserved: Reserved | None
    """What is nominated and counts for the pod."""


NOT_NARROWED: Sequence[FilterPlugin] = ()
"""Stands for filters of pods that name a node and may go elsewhere."""


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
        self._of_pinned: StampedCache[ClassPlan, Sequence[FilterPlugin]] = StampedCache(
            "filters of pinned pods"
        )
        self.applies = profile.percentage is None and not filtering.check_all
        """Whether every node is judged, and only the first refusal of a node is reported."""

    def prepare(self, state: CycleState, pod: Pod) -> Prepared | Reason:
        """The view of the class of `pod`, up to date, after PreFilter; or why the reference has to decide."""
        reason = self._why_unlike_its_class(pod)
        if reason is not None:
            return reason
        planned = self._planned(pod)
        if planned is None:
            return Reason.REFUSED
        plan, marks = planned
        reserved = self._filtering.reserved(pod, self._table) if self._nominator else None
        if pod.spec.pin:
            if reserved or not plan.asked_names <= marks.quiet or not self._fits_pin(plan, pod):
                return Reason.PINNED
            pod = pod.replace(spec=pod.pod_class.spec)
        rules = marks.rules if plan.is_plain and not reserved else None
        settled = marks.quiet if rules is None else rules.settled
        if not self._run_pre_filters(plan, state, pod, settled):
            return Reason.PRE_FILTER
        view = self._view_of(plan, state, pod.priority if reserved else None)
        view.refresh(state, pod, self._table, reserved)
        return Prepared(view, marks, rules, reserved)

    def decide(self, state: CycleState, pod: Pod) -> Decision | Reason:
        """The decision for `pod`: its view, its groups of rows, the points of each group, the best row."""
        ready = self.prepare(state, pod)
        if isinstance(ready, Reason):
            return ready
        view, marks = ready.view, ready.marks
        if pod.spec.pin:
            return self._decide_pinned(state, pod, view, marks)
        if ready.rules is not None:
            decision = self._decide_by_rules(state, pod, ready, ready.rules)
            if decision is not None:
                return decision
            state.clear()  # the plugins have to be called, with their PreFilter
            if not self._run_pre_filters(view.plan, state, pod, marks.quiet):
                return Reason.PRE_FILTER
        values = self._beside_nominated(state, pod, view, ready.reserved)
        if marks.columns == () and view.plan.is_plain and view.has_raws(values):
            return self._best_of_one_group(state, pod, view, values)
        ranking = Ranking(state, pod, self._table, view, marks, self._trackers)
        if ranking.accepts_all(values):
            return self._best_of_one_group(state, pod, view, values)
        ranked = ranking.rank(values)
        if ranked is not None:
            return Decision(*combine(values, *ranked))
        if ranking.has_filters:
            return Reason.NO_NODE
        return self._none_feasible(state, pod, view, values)

    def _best_of_one_group(
        self, state: CycleState, pod: Pod, view: ClassView, values: Ints
    ) -> Decision | Reason:
        """The decision where all rows get the same points."""
        total, ties, feasible, row = view.best() if values is view.values else summarize(values)
        if not feasible:
            return self._none_feasible(state, pod, view, values)
        return Decision(values, Best(total + view.constant, ties, feasible, row))

    def _none_feasible(
        self, state: CycleState, pod: Pod, view: ClassView, values: Ints
    ) -> Decision | Reason:
        """The refusals, where those in the view are all there are."""
        if values is not view.values:
            return Reason.NO_NODE
        refusals = view.statuses(state, pod, self._table, self._points.filters)
        return Decision(values, NONE_FEASIBLE, refusals)

    def nominated_row(self, state: CycleState, pod: Pod) -> int | None:
        """The row of the node that the status of `pod` nominates, if it fits there; else None."""
        table, row = self._table, self._table.row_of.get(pod.nominated_node_name)
        if not self.applies or row is None or not table.live[row]:
            return None
        if pod.node_name or pod.spec.pin or pod.status.has_resources:
            return None
        planned = self._planned(pod)
        if planned is None or not self._run_pre_filters(planned[0], state, pod, planned[1].quiet):
            return None
        status = self._filtering.filter_with_nominated(state, pod, table.node_at(row))
        return row if status.is_success else None

    def decide_within(self, state: CycleState, pod: Pod, within: Ints) -> Decision | Reason:
        """The decision for `pod` on the rows `within`, where only the values of its view count."""
        view = self._plain_view(state, pod)
        if view is None:
            return Reason.PLACEMENT
        values = np.full(len(self._table), REFUSED)
        values[within] = view.values[within]
        total, ties, feasible, row = summarize(values)
        if not feasible:
            return Reason.PLACEMENT
        return Decision(values, Best(total + view.constant, ties, feasible, row))

    def fillings(self, pods: Sequence[Pod]) -> Fillings | None:
        """What the kernel needs to put `pods` on rows one after another; None if more than rules on amounts decide."""
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
        """int64 per row: how many pods like `pod` fit beside each other; None if filters other than on node objects
        and amounts take part. Scores do not matter: in the end every row is full.
        """
        state = CycleState()
        ready = None if self._nominator or pod.spec.pin else self.prepare(state, pod)
        if not isinstance(ready, Prepared) or (ready.rules is not None and ready.rules.limits):
            return None
        view, fit = ready.view, ready.view.plan.fit
        if fit is None or view.plan.row_filters or _reads_pods(view.plan, state):
            return None
        used = {**pod.usage, POD_COUNT: 1}
        if fit.left_to_devices or any(used.get(name) != n for name, n in fit.amounts.items()):
            return None
        found, rows = np.zeros(len(self._table), dtype=np.int64), np.flatnonzero(view.values >= 0)
        found[rows] = copies_that_fit(self._table, fit, rows)
        return found

    def _plain_view(self, state: CycleState, pod: Pod) -> ClassView | None:
        """The view of the class of `pod`, up to date, if its values are all that decides; else None."""
        ready = None if self._nominator or pod.spec.pin else self.prepare(state, pod)
        if not isinstance(ready, Prepared):
            return None
        view, plan, marks = ready.view, ready.view.plan, ready.marks
        is_plain = plan.is_plain and marks.columns == () and plan.asked_names <= marks.quiet
        return view if is_plain and view.part.raw_ids is None else None

    def _decide_by_rules(
        self, state: CycleState, pod: Pod, ready: Prepared, rules: GroupRules
    ) -> Decision | Reason | None:
        """The decision for a pod whose live plugins go by rules on counts; None if they have to be called."""
        view = ready.view
        if not rules.limits and not view.best()[2]:
            return self._none_feasible(state, pod, view, view.values)
        found = best_by_rules(state, pod, self._table, view, ready.marks, self._trackers)
        if found is None:
            return None
        best, groups = found
        return Decision(view.values, best, groups=groups) if best.feasible else Reason.NO_NODE

    def _why_unlike_its_class(self, pod: Pod) -> Reason | None:
        """Why the pod is not judged as any other of its class, on all nodes; None if it is."""
        if not self.applies:
            return Reason.PROFILE
        if pod.node_name:
            return Reason.ASSIGNED
        status = pod.status
        if status is not EMPTY_STATUS and status.has_resources:
            return Reason.RESIZED
        is_nominated = status.nominated_node_name or self._nominator.node_of(pod)
        return Reason.NOMINATED if is_nominated else None

    # Pods that name their node, as those of a DaemonSet do

    def _decide_pinned(
        self, state: CycleState, pod: Pod, view: ClassView, marks: Marks
    ) -> Decision | Reason:
        """One value of the view is read; filters that may read the name, and live ones, are called about that node."""
        row = self._table.row_of[pod.spec.pin]
        if view.values[row] < 0:
            return Reason.PINNED
        live = [p.plugin for p in view.plan.live_filters if p.plugin.name not in marks.quiet]
        filters = (*self._pinned_filters(view.plan, pod), *live)
        node = self._table.node_at(row) if filters else None
        for plugin in filters:
            if node is None or not ask_filter(plugin, state, pod, node).is_success:
                return Reason.PINNED
        return Decision(view.values, Best(view.values.item(row), 1, 1, row))

    def _fits_pin(self, plan: ClassPlan, pod: Pod) -> bool:
        """Whether the node is there, and PreFilter leaves only it. A profile may be without NodeAffinity."""
        if pod.spec.pin not in self._table.row_of or pod.spec.claims:
            return False
        return self._pinned_filters(plan, pod) is not NOT_NARROWED

    def _pinned_filters(self, plan: ClassPlan, pod: Pod) -> Sequence[FilterPlugin]:
        """The filters with cached answers that may depend on the name; NOT_NARROWED if other nodes are left.

        No score is needed where one node is left.
        """
        known = self._of_pinned.get(plan, self._stamp)
        if known is not None:
            return known
        narrowing = {
            plugin.name
            for plugin in self._points.pre_filters
            if ask_hook(plugin, plugin.settled, pod.spec).pre_filter is None
            and self._narrows_to_pin(plugin, pod)
        }
        if not narrowing:
            return self._of_pinned.put(plan, NOT_NARROWED)
        placed = (*plan.object_filters, *plan.row_filters, *plan.rule_filters)
        filters = [p.plugin for p in placed if p.plugin.name not in narrowing]
        return self._of_pinned.put(plan, [p for p in filters if self._may_read_pin(p, pod)])

    @staticmethod
    def _may_read_pin(plugin: FilterPlugin, pod: Pod) -> bool:
        key = ask_hook(plugin, plugin.spec_key, pod.spec)
        return key is None or key != ask_hook(plugin, plugin.spec_key, pod.pod_class.spec)

    def _narrows_to_pin(self, plugin: PreFilterPlugin, pod: Pod) -> bool:
        answer = ask_pre_filter(plugin, CycleState(), pod, self._table)
        return isinstance(answer, PreFilterResult) and answer.node_names == {pod.spec.pin}

    # The view of a class

    def _planned(self, pod: Pod) -> tuple[ClassPlan, Marks] | None:
        """The plan and the marks for the class of `pod`; None if settled plugins refuse such pods."""
        self._follow_cluster()
        plan = self._planner.plan(pod, self._stamp)
        if plan is None:
            return None
        return plan, self._marks.get(plan, pod, self._columns_stamp) if plan.grouped else NO_MARKS

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
                return False
            if answer.code is Code.Skip:
                state.skip_filter.add(plugin.name)
            elif answer.code is not Code.Success:
                return False
        return True

    def _beside_nominated(
        self, state: CycleState, pod: Pod, view: ClassView, reserved: Reserved | None
    ) -> Ints:
        """The values; if filters besides the fit rule depend on pods, a copy without the rows that one of them refuses
        once the nominated pods are there.
        """
        if not reserved or not _reads_pods(view.plan, state):
            return view.values
        values, rows = view.values.copy(), reserved.rows
        for row in rows[values[rows] >= 0].tolist():
            status = self._filtering.filter_with_nominated(state, pod, self._table.node_at(row))
            if not status.is_success:
                values[row] = REFUSED
        return values


def _reads_pods(plan: ClassPlan, state: CycleState) -> bool:
    """Whether filters besides the fit rule depend on the pods of a node."""
    others = (*plan.row_filters, *plan.live_filters)
    return any(placed.plugin.name not in state.skip_filter for placed in others)


def _counts_pods(spec: PodSpec) -> bool:
    """Whether where such a pod goes depends on which other pods are where."""
    return bool(spec.has_pod_terms or spec.topology_spread_constraints)
