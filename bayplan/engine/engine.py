"""Engine: the decision about a pod. A total is `values[row] + points[group of the row]`; the best total wins.

`decide` is the way of a pod: `prepare` gives the values (the view of its class, up to date) or the `Reason` for which
the reference has to decide (`scheduler/deciding.py`), and `_rank` gives the totals. The other questions,
`nominated_row` and `filling`, begin in the same way.

A pod that is to be spread over zones, after one node changed:

1. `prepare`: the pod has no pin or nomination; `_follow_cluster` finds another version of the nodes, but the same
   stamps. The plan of the spec and the marks of the class are cached. `Marks.hold` compares the facts about nodes that
   the rules depend on (the zones in use): the same. PodTopologySpread has rules, so PreFilter is not called.
2. `_view_of` returns the cached view. `ClassView.refresh`: `NodePart.refresh` calls the plugins on node objects about
   the row in the log of node changes; the kernel applies the rules on amounts to the rows in the log of row changes.
3. `_rank`: `track_groups` moves the changed row to its group; in `apply_rules` the kernel reads the pods per zone that
   the table counts, and gives each group its points or refuses it. `best` of the groups is the decision.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set

import msgspec

from ..amounts.filling import Filling
from ..amounts.kernel import REFUSED, Best, Peaks, RowGroups
from ..api.pod import EMPTY_STATUS, Pod
from ..framework import GROUPS, Code, CycleState, FilterPlugin, Plugin, PreFilterResult
from ..framework.reserved import Reserved
from ..framework.row_statuses import RowStatuses
from ..runtime import ProfileRuntime
from ..runtime.plugin_calls import PodCalls, ask_hook, ask_keys, has_own
from ..stamped_cache import Budget, BudgetedCache, StampedCache
from ..table import Ints, NodeTable
from .class_plan import ClassPlan, PlacedFilter, Planner
from .class_view import ClassView
from .marks import NO_MARKS, GroupRules, Marks, MarksOfClasses
from .node_part import NodePart
from .reasons import Reason
from .row_groups import (
    LivePlugins,
    Trackers,
    apply_rules,
    call_plugins,
    find_groups,
    narrow,
    restricted,
    track_groups,
)


class Decision(msgspec.Struct):
    """The result for one pod, to be read before the table changes."""

    best: Best
    ranked: Peaks
    """The total of each row, negative where the pod does not fit. For a pod that names its node, the values of its
    class.
    """
    refusals: RowStatuses | None = None
    """When no node fits: the status of each row."""


class Prepared(msgspec.Struct, frozen=True, eq=False):
    """The parts from which a pod's decision is computed."""

    calls: PodCalls
    view: ClassView
    """Up to date. PreFilter has run, except for plugins with rules."""
    marks: Marks
    rules: GroupRules | None
    """The rules by which the points of groups are found without calling plugins; None if these have to be called."""
    nominated: Reserved | None
    """The nominated pods that count, if other filters than the fit rule may depend on them."""
    is_plain: bool
    """Whether no live plugin has an effect."""


class Engine:
    """Decides for the pods of one profile."""

    def __init__(self, profile: ProfileRuntime, table: NodeTable) -> None:
        self._table = table
        self._nominator = profile.handle.nominator
        self._filtering = profile.filtering
        self._planner = Planner(profile)
        scoring = profile.scoring
        judging = (*self._filtering.filters, *(plugin for plugin, _ in scoring.scores))
        every: dict[Plugin, None] = dict.fromkeys(judging)
        clustered = [(p, p.cluster_key) for p in every if has_own(p, Plugin, "cluster_key")]
        self._stamp_hooks = [hook for hook in clustered if hook[0].scope is not GROUPS]
        self._marks_stamp_hooks = [hook for hook in clustered if hook[0].scope is GROUPS]
        grouped = {p for p in (*every, *scoring.pre_scores) if p.scope is GROUPS}
        self._reads_any_object = len(self._marks_stamp_hooks) < len(grouped)
        """Whether some GROUPS plugin does not declare the objects that its columns depend on."""
        self._lister = profile.handle.lister
        self._version: Hashable = None
        self._stamp: Hashable = None
        self._marks_stamp: Hashable = None
        self._budget = Budget(table=table)
        self._views: BudgetedCache[Hashable, ClassView] = BudgetedCache("views", self._budget)
        self._parts: BudgetedCache[Hashable, NodePart] = BudgetedCache("node parts", self._budget)
        self._trackers: Trackers = BudgetedCache("row groups", self._budget)
        self._marks = MarksOfClasses(table)
        self._readers_of_pin: StampedCache[ClassPlan, list[FilterPlugin]] = StampedCache(
            "filters of pinned pods"
        )
        self.applies = profile.percentage is None and not profile.filtering.check_all
        """Whether every node is judged, and only the first refusal of a node is reported."""

    def decide(self, state: CycleState, pod: Pod, within: Ints | None = None) -> Decision | Reason:
        """The best row for `pod` or the refusal of each row; or the reason why the reference has to decide.

        `within` are the only rows that count; None if all do.
        """
        ready = self.prepare(state, pod)
        if not isinstance(ready, Prepared):
            return ready
        if within is not None and (pod.spec.pin or not ready.is_plain):
            return Reason.PLACEMENT
        if pod.spec.pin:
            return self._decide_pinned(ready)
        totals = self._rank(ready, within)
        if totals is None:
            return Reason.PRE_FILTER
        best = Best(*totals.best())
        if best.feasible:
            return Decision(best, totals)
        view = ready.view
        live = () if ready.is_plain else view.plan.filters.live
        if within is not None or ready.nominated is not None or _any_runs(live, state):
            return Reason.NO_NODE  # the view does not have every refusal
        return Decision(best, view.peaks, view.statuses())

    def prepare(self, state: CycleState, pod: Pod, comes_again: bool = False) -> Prepared | Reason:
        """The view of the class of `pod`, up to date, after PreFilter; or the reason why the reference has to decide.

        The view of a new class is not cached, unless it is certain that it `comes_again`.
        """
        class_pod = pod.with_class_spec() if pod.spec.pin else pod
        found = self._find_class(state, class_pod)
        if not isinstance(found, tuple):
            return found
        plan, marks, is_new = found
        are_nominated = bool(self._nominator)
        if pod.status.nominated_node_name or (are_nominated and self._nominator.node_of(pod)):
            return Reason.NOMINATED
        reserved = (self._filtering.reserved(pod, self._table) or None) if are_nominated else None
        if pod.spec.pin and (
            reserved is not None or pod.spec.claims or not plan.pre_filters.keys() <= marks.quiet
        ):
            return Reason.PINNED
        calls = PodCalls(state, pod, self._table)
        class_calls = calls if class_pod is pod else PodCalls(state, class_pod, self._table)
        rules = marks.rules if plan.is_grouped and reserved is None else None
        uncalled = marks.quiet if rules is None else marks.quiet | rules.plugins
        if not _run_pre_filters(class_calls, plan, uncalled):
            return Reason.PRE_FILTER
        if rules is not None and not rules.may_refuse:
            state.skip_filter.update(rules.plugins)
        is_cached = comes_again or not is_new or marks.columns != ()
        view = self._view_of(plan, state, None if reserved is None else pod.priority, is_cached)
        view.refresh(class_calls, reserved)
        if reserved is not None and not _any_runs(plan.filters.on_row + plan.filters.live, state):
            reserved = None  # the fit rule alone reads pods, and the view has their amounts
        is_plain = plan.is_grouped and marks.columns == ()
        return Prepared(calls, view, marks, rules, reserved, is_plain)

    def _find_class(self, state: CycleState, pod: Pod) -> tuple[ClassPlan, Marks, bool] | Reason:
        """The plan and the marks for the class of `pod`, and whether the plan is new; or the reason why the pod is not
        like its class. `state` gets the results of PreFilter that are settled.
        """
        if not self.applies:
            return Reason.PROFILE
        if pod.node_name:
            return Reason.ASSIGNED
        if pod.status is not EMPTY_STATUS and pod.status.has_resources:
            return Reason.RESIZED
        self._follow_cluster()
        found = self._planner.plan(pod, self._stamp)
        if found is None:
            return Reason.REFUSED
        plan, is_new = found
        marks = self._marks.get(plan, pod, self._marks_stamp) if plan.grouped else NO_MARKS
        state.skip_filter.update(plan.skip_filter, marks.quiet)
        state.fit_rule = plan.rules.fit
        return plan, marks, is_new

    def _follow_cluster(self) -> None:
        """Drop the answers that depend on more than the rows of the table, if those facts changed."""
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
        self._version = None  # if a plugin raises, everything is compared again
        objects = version[0] if self._reads_any_object else 0
        self._marks_stamp = (objects, version[2:], ask_keys(self._marks_stamp_hooks, table))
        stamp = ask_keys(self._stamp_hooks, table)
        if stamp != self._stamp:
            self._stamp = stamp
            self._budget.drop()  # the views of former plans are not used again
        self._version = version

    def _view_of(
        self, plan: ClassPlan, state: CycleState, priority: int | None, is_cached: bool
    ) -> ClassView:
        """The view for a plan, of which PreFilter may have skipped some plugins with cached answers.

        With a `priority`, room for pods nominated with at least this priority counts as used.
        """
        skipped = plan.skippable & state.skip_filter if plan.skippable else frozenset()
        key: Hashable = plan if not skipped and priority is None else (plan, skipped, priority)
        view = self._views.get(key) if is_cached else None
        if view is not None:
            return view
        size, of_part = len(self._table), (plan.object_key, skipped)
        part = self._parts.get(of_part)
        if part is None:
            part = NodePart(plan)
            self._parts.put(of_part, part, size * (2 + len(part.raws)))
        view = ClassView(plan, part)
        if is_cached:
            self._views.put(key, view, size * (1 + len(view.raws)))
        return view

    def _rank(self, ready: Prepared, within: Ints | None) -> Peaks | None:
        """The total of each row: its value, and the points of its group, by rules if they are enough, else by plugins.

        None if PreFilter of a plugin that has to be called refuses the pod.
        """
        calls, view, nominated = ready.calls, ready.view, ready.nominated
        values = view.values if within is None else restricted(view.values, within)
        if ready.is_plain and view.has_raw_points and nominated is None:
            return view.peaks if within is None else Peaks(values)  # one group, without points
        table, marks, rules = self._table, ready.marks, ready.rules
        if rules is not None:
            groups: RowGroups | None = None
            if view.has_raw_points:
                groups = track_groups(view, marks.columns or (), table, self._trackers)
            if groups is not None:
                apply_rules(calls, view, rules, groups)
                return groups
            if not _run_pre_filters(calls, view.plan, view.plan.pre_filters.keys() - rules.plugins):
                return None
        live = LivePlugins.of(view, marks, calls.state)
        if nominated is not None:
            values = self._refused_with(nominated, calls, values)
        if live.columns is None:
            values = narrow(calls, view, values, live)
        groups = find_groups(view, values, live, table, self._trackers)
        if groups is None:
            return view.peaks if values is view.values else Peaks(values)
        call_plugins(calls, view, live, groups)
        return groups

    def _refused_with(self, nominated: Reserved, calls: PodCalls, values: Ints) -> Ints:
        """A copy of the values, in which rows are refused that do not fit the pod and their nominated pods."""
        values, rows, run = values.copy(), nominated.rows, self._filtering.filter_with_nominated
        for row in rows[values[rows] >= 0].tolist():
            if not run(calls.state, calls.pod, self._table.node_at(row)).is_success:
                values[row] = REFUSED
        return values

    # Other questions

    def nominated_row(self, state: CycleState, pod: Pod) -> int | None:
        """The row of the node that the status of `pod` nominates, if it fits there; else None."""
        table, row = self._table, self._table.row_of.get(pod.nominated_node_name)
        if row is None or not table.live[row] or pod.spec.pin:
            return None
        found = self._find_class(state, pod)
        if not isinstance(found, tuple):
            return None
        plan, marks, _ = found
        if not _run_pre_filters(PodCalls(state, pod, table), plan, marks.quiet):
            return None
        status = self._filtering.filter_with_nominated(state, pod, table.node_at(row))
        return row if status.is_success else None

    def filling(self, pod: Pod) -> Filling | None:
        """Data for the kernel to put pods like `pod` on rows; None if filters besides the fit rule read pods."""
        state = CycleState()
        if self._nominator or pod.spec.pin:
            return None
        ready = self.prepare(state, pod, comes_again=True)
        if isinstance(ready, Reason):
            return None
        view, plan = ready.view, ready.view.plan
        if _any_runs(plan.filters.on_row + plan.filters.live, state):
            return None
        counts_pods = pod.spec.has_pod_terms or pod.spec.topology_spread_constraints
        is_quiet = plan.pre_filters.keys() <= ready.marks.quiet
        is_ranked = ready.is_plain and is_quiet and not counts_pods
        return view.filling(pod, is_ranked)

    # Pods that name their node, as those of a DaemonSet do

    def _decide_pinned(self, ready: Prepared) -> Decision | Reason:
        """Read one value of the view; call live filters, and filters that may read the name, about that node."""
        calls, view, quiet = ready.calls, ready.view, ready.marks.quiet
        row = self._table.row_of.get(calls.pod.spec.pin)
        if row is None or view.values[row] < 0:
            return Reason.PINNED
        readers = self._find_readers_of_pin(view.plan, calls.pod)
        if readers is None:
            return Reason.PINNED
        live = [p.plugin for p in view.plan.filters.live if p.plugin.name not in quiet]
        for plugin in (*readers, *live):
            if not calls.filter_row(plugin, row).is_success:
                return Reason.PINNED
        return Decision(Best(view.values.item(row), 1, 1, row), view.peaks)

    def _find_readers_of_pin(self, plan: ClassPlan, pod: Pod) -> list[FilterPlugin] | None:
        """The filters with cached answers that may depend on the node's name, except the one whose PreFilter narrows to
        that node; None if PreFilter leaves other nodes. Scores are not needed for a single node.
        """
        found = self._readers_of_pin.get(plan, self._stamp)
        if found is not None:
            return found
        pre = self._filtering.run_pre_filters(CycleState(), pod, self._table)
        if pre.node_names != frozenset((pod.spec.pin,)) or len(pre.narrowed_by) > 1:
            return None
        placed = [*plan.filters.on_node, *plan.filters.on_row, *plan.filters.by_rule]
        filters = [p.plugin for p in placed if p.plugin.name not in pre.narrowed_by]
        return self._readers_of_pin.put(plan, [p for p in filters if _may_read_pin(p, pod)])


def _run_pre_filters(calls: PodCalls, plan: ClassPlan, uncalled: Set[str]) -> bool:
    """Run PreFilter of all plugins but the `uncalled`; False if one refuses the pod or narrows the nodes."""
    for name, plugin in plan.pre_filters.items():
        if name in uncalled:
            continue
        answer = calls.pre_filter(plugin)
        if isinstance(answer, PreFilterResult):
            return False
        if answer.code is Code.Skip:
            calls.state.skip_filter.add(name)
        elif answer.code is not Code.Success:
            return False
    return True


def _may_read_pin(plugin: FilterPlugin, pod: Pod) -> bool:
    """Whether a filter may depend on the name of the node in the spec of the pod."""
    key = ask_hook(plugin, plugin.spec_key, pod.spec)
    return key is None or key != ask_hook(plugin, plugin.spec_key, pod.pod_class.spec)


def _any_runs(filters: Iterable[PlacedFilter], state: CycleState) -> bool:
    """Whether PreFilter does not skip all of these filters."""
    return any(placed.plugin.name not in state.skip_filter for placed in filters)
