"""PodTopologySpread: lay the pods that belong together evenly over zones, nodes or other domains.

Mirrors pkg/scheduler/framework/plugins/podtopologyspread/{plugin,filtering,scoring}.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...amounts.domain_rules import NO_DOMAIN_RULES, DomainRules
from ...api.node import HOSTNAME, Node
from ...api.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, PodSpec, TopologySpreadConstraint
from ...config.plugin_args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from ...errors import InputError
from ...framework import (
    GROUPS,
    MAX_SCORE,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from ...framework.events import NODE, POD, ActionType, EventWithHint, required, wait_for
from ...framework.handle import release_of
from ...table import ABSENT, DomainCounts, Ints, LabelColumn, NodeTable, PodTerm, Rows, RowValues
from ...table.labels import DomainTally
from .constraints import SYSTEM_CONSTRAINTS, Constraint, ConstraintsCache
from .eligibility import Domains, EligibilityCache
from .spread_rules import (
    NO_PLAN,
    SpreadPlan,
    SpreadPlans,
    is_enough,
    is_per_node,
    limits_of,
    nodes_key_of,
    score_of,
)

REASON = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON} (missing required label)"

FILTER_STATE = "PreFilterPodTopologySpread"
SCORE_STATE = "PreScorePodTopologySpread"

IGNORED = -1
"""The raw score of a node that lacks a topology key; `normalize` gives it 0."""

Floats = NDArray[np.float64]
POD_CHANGES = (
    ActionType.Add | ActionType.Delete | ActionType.UpdatePodLabel | ActionType.UpdatePodToleration
)
NODE_CHANGES = (
    ActionType.Add | ActionType.Delete | ActionType.UpdateNodeLabel | ActionType.UpdateNodeTaint
)

ConstraintsOf = Callable[[Pod], tuple[Constraint, ...]]
"""The DoNotSchedule constraints of a pod; raises if they are invalid."""


class SpreadState(msgspec.Struct):
    """Facts of the cluster for Filter: pods per domain, for each constraint."""

    plan: SpreadPlan
    tallies: list[DomainTally]

    def clone(self) -> SpreadState:
        """A copy for a what-if."""
        return SpreadState(self.plan, [tally.clone() for tally in self.tallies])

    def __iter__(self) -> Iterator[tuple[Constraint, Domains, DomainTally]]:
        return zip(self.plan.constraints, self.plan.domains, self.tallies, strict=True)


class ScoreState(msgspec.Struct):
    """Facts of the cluster for Score: the constraints, and the weight of a pod for each of them."""

    table: NodeTable
    plan: SpreadPlan
    weights: list[float]


class PodTopologySpread(
    PreFilterPlugin, PreFilterExtensions, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Filters on the skew of DoNotSchedule constraints, scores by that of ScheduleAnyway ones.

    The table counts matching pods per domain; judging a node is looking up its domains.
    """

    name = "PodTopologySpread"
    scope = GROUPS

    def __init__(
        self,
        default_constraints: tuple[TopologySpreadConstraint, ...] = (),
        defaulting_type: str = SYSTEM_DEFAULTING,
        comparison_operators: bool = False,
    ) -> None:
        self._is_system_defaulted = defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_CONSTRAINTS if self._is_system_defaulted else default_constraints
        self._constraints = ConstraintsCache(defaults)
        self._eligibility = EligibilityCache(comparison_operators)
        self._plans = SpreadPlans(
            self._eligibility,
            self._constraints_of,
            self._requires_all,
            self._selecting_version,
        )

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        given: PodTopologySpreadArgs = PodTopologySpreadArgs() if args is None else args
        comparison_operators = handle.feature_gates.enabled("TaintTolerationComparisonOperators")
        plugin = cls(given.default_constraints, given.defaulting_type, comparison_operators)
        plugin.handle = handle
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        counts_nominated = release_of(self).spread_hints_nominated
        return spread_events(
            lambda pod: self._constraints_of(pod, DO_NOT_SCHEDULE), counts_nominated
        )

    def spec_key(self, spec: PodSpec) -> Hashable:
        selector = frozenset(spec.node_selector.items()) if spec.node_selector else None
        return spec.topology_spread_constraints, selector, spec.affinity, spec.tolerations

    def cluster_key(self, table: NodeTable) -> Hashable:
        return self._selecting_version()

    def _selecting_version(self) -> int:
        """The version of the objects that default constraints depend on."""
        return self._constraints.version_of_defaults(self.handle.lister)

    def row_groups(self, pod: Pod, table: NodeTable) -> DomainRules:
        hard = self._plans.get(pod, table, DO_NOT_SCHEDULE)
        soft = self._plans.get(pod, table, SCHEDULE_ANYWAY)
        if hard is NO_PLAN and soft is NO_PLAN:
            return NO_DOMAIN_RULES
        columns: list[RowValues] = []
        for plan in (hard, soft):
            for domains, counts in zip(plan.domains, plan.counts, strict=True):
                columns += domains.marks(counts, table)
                if plan is soft and domains.label.key == HOSTNAME:
                    columns.append(counts.column)
        return DomainRules(
            columns,
            limits_of(hard, pod),
            score_of(soft, table),
            nodes_key_of(hard, soft, pod.spec, table),
        )

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        try:
            plan = self._plans.get(pod, table, DO_NOT_SCHEDULE)
        except InputError as error:
            return failure(error)
        if not plan.constraints:
            return SKIP
        tallies = [
            DomainTally(found.label, found.count(counts))
            for found, counts in zip(plan.domains, plan.counts, strict=True)
        ]
        state.write(FILTER_STATE, SpreadState(plan, tallies))
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        self._update(state.read(FILTER_STATE), pod, added, node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        self._update(state.read(FILTER_STATE), pod, removed, node, -1)
        return SUCCESS

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        kept: SpreadState = state.read(FILTER_STATE)
        return other.namespace == pod.namespace and any(
            constraint.selects(other) for constraint in kept.plan.constraints
        )

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        kept: SpreadState = state.read(FILTER_STATE)
        verdict = Verdict.accept(table, rows)
        # A node is refused by the first constraint that it breaks.
        for constraint, domains, tally in kept:
            if kept.plan.has_all_keys is not None:
                lacking = ~table.labels.has(constraint.topology_key, rows) & verdict.feasible
                verdict.reject(lacking, REASON_MISSING_LABEL, unresolvable=True)
            counts = tally.counts
            full = counts > _most_allowed(constraint, domains, counts, pod)
            full[ABSENT] = False
            if np.count_nonzero(full):
                crowded = full.take(table.labels.codes(constraint.topology_key)[rows])
                verdict.reject(crowded & verdict.feasible, REASON)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        kept: SpreadState = state.read(FILTER_STATE)
        for constraint, domains, tally in kept:
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return unresolvable(REASON_MISSING_LABEL)
            if tally.at(value) > _most_allowed(constraint, domains, tally.counts, pod):
                return unschedulable(REASON)
        return SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        sizes = state.row_counts
        if table.node_count == 0:
            return SKIP
        try:
            plan = self._plans.get(pod, table, SCHEDULE_ANYWAY)
        except InputError as error:
            return failure(error)
        if not plan.constraints:
            return SKIP
        if plan.require_all and plan.has_all_keys is not None:
            is_scored = plan.has_all_keys[rows]
            rows = table.numbers(rows)[is_scored]
            sizes = sizes if sizes is None else sizes[is_scored]
        number = table.count(rows) if sizes is None else int(sizes.sum())
        weights = [
            math.log(_topology_size(table, rows, number, domains.label) + 2)
            for domains in plan.domains
        ]
        state.write(SCORE_STATE, ScoreState(table, plan, weights))
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        kept: ScoreState = state.read(SCORE_STATE)
        plan = kept.plan
        total = np.zeros(table.count(rows), dtype=np.float64)
        for constraint, domains, counts, weight in zip(
            plan.constraints, plan.domains, plan.counts, kept.weights, strict=True
        ):
            key = constraint.topology_key
            if key == HOSTNAME:
                pods = _count_per_row(constraint.pods, counts, table, kept.table)[rows]
            else:
                pods = domains.count(counts).take(table.labels.codes(key)[rows])
            points = pods * weight
            if constraint.max_skew != 1:
                points += constraint.max_skew - 1
            if plan.has_all_keys is not None:
                points[table.labels.codes(key)[rows] == ABSENT] = 0.0
            total += points
        scores = _round(total)
        if plan.require_all and plan.has_all_keys is not None:
            for constraint in plan.constraints:
                scores[table.labels.codes(constraint.topology_key)[rows] == ABSENT] = IGNORED
        return scores

    def normalize(self, scores: Ints) -> Ints:
        """Invert the counts: the fewest pods get the most points; ignored nodes get none."""
        highest = int(scores.max(initial=0))
        lowest = int(scores.min(initial=highest))
        if lowest != IGNORED:
            return _turned_round(scores, lowest, highest)
        ignored = scores == IGNORED
        lowest = int(scores.min(initial=highest, where=~ignored))
        return np.where(ignored, 0, _turned_round(scores, lowest, highest))

    def _requires_all(self, pod: Pod) -> bool:
        """Whether only nodes with every topology key count in scores.

        Under the system defaults a node without a zone is still spread over by hostname.
        """
        return bool(pod.spec.topology_spread_constraints) or not self._is_system_defaulted

    def _constraints_of(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        if pod.spec.topology_spread_constraints:
            return self._constraints.own(pod, action)
        return self._constraints.defaults(pod, action, self.handle.lister)

    def _update(
        self, kept: SpreadState, pod: Pod, changed: Pod, node: NodeInfo, change: int
    ) -> None:
        """Count `changed` on `node` once more (`change` 1) or once less (-1).

        Unlike the counts of the cluster, this takes in pods that are being deleted, and every pod for an empty
        selector: upstream ignores both here.
        """
        labels = node.labels
        if changed.namespace != pod.namespace:
            return
        if any(constraint.topology_key not in labels for constraint in kept.plan.constraints):
            return
        for constraint, _, tally in kept:
            if constraint.selects(changed) and self._eligibility.includes(
                constraint, pod.spec, node.node
            ):
                tally.add(labels[constraint.topology_key], change)


def _most_allowed(constraint: Constraint, domains: Domains, counts: Ints, pod: Pod) -> int:
    """Limit on the matching pods of a domain that `pod` can join."""
    # Upstream tracks the two smallest domains, not just the smallest. A what-if changes the domain of one node only;
    # both methods are equal then.
    lowest = domains.lowest(counts) if is_enough(constraint, domains) else 0
    return constraint.max_skew + lowest - constraint.selects(pod)


def _topology_size(table: NodeTable, rows: Rows, number: int, label: LabelColumn) -> int:
    """Number of domains of the nodes that `rows` stand for, a `number` of them."""
    if is_per_node(label, table):
        return number
    seen = np.zeros(label.slots, dtype=np.bool_)
    seen[label.codes[rows]] = True
    blank = label.code_of("")
    # A missing label and an empty one are the same domain.
    is_twice = blank != ABSENT and seen[blank] and seen[ABSENT]
    return int(np.count_nonzero(seen)) - int(is_twice)


def _count_per_row(
    pods: PodTerm, counts: DomainCounts, table: NodeTable, counted: NodeTable
) -> Ints:
    """int64 per row of `table`: its pods that match, with any inclusion policies."""
    if table is counted:
        return counts.per_row
    # A copy of one row has its pods, but not the counts of the cluster.
    found = [sum(map(pods.matches, on_row.values())) for on_row in table.pods]
    return np.array(found, dtype=np.int64)


def _round(values: Floats) -> Ints:
    """Round half away from zero, as Go does.

    `values` are 0 or more than a half: the largest value below a half would be rounded up.
    """
    return (values + 0.5).astype(np.int64)


def _turned_round(scores: Ints, lowest: int, highest: int) -> Ints:
    """The fewest pods get the most points; `lowest` and `highest` are the bounds of `scores`."""
    if highest == 0:
        return np.full(len(scores), MAX_SCORE, dtype=np.int64)
    return (MAX_SCORE * (highest + lowest) - MAX_SCORE * scores) // highest


def spread_events(
    constraints_of: ConstraintsOf, counts_nominated: bool = True
) -> Sequence[EventWithHint]:
    """Events that the plugin waits for; pods that are only nominated count with `counts_nominated`."""

    def is_counted(other: Pod | None, pod: Pod) -> bool:
        return other is None or _is_counted(other, pod, counts_nominated)

    def after_pod_change(pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        if not (is_counted(before, pod) and is_counted(after, pod)):
            return False
        return _pod_helps(pod, before, after, constraints_of(pod))

    def after_node_change(pod: Pod, before: Node | None, after: Node | None) -> bool:
        constraints = constraints_of(pod)
        if before is None or after is None:
            node = required(Node, after if before is None else before)
            return _has_all_keys(node, constraints)
        counts = _has_all_keys(after, constraints)
        if _has_all_keys(before, constraints) != counts:
            return True
        if not counts:
            return False
        keys = (constraint.topology_key for constraint in constraints)
        moved = any(before.labels[key] != after.labels[key] for key in keys)
        return moved or before.taints != after.taints

    return (
        wait_for(POD, POD_CHANGES, helps=after_pod_change),
        wait_for(NODE, NODE_CHANGES, helps=after_node_change),
    )


def _is_counted(other: Pod, pod: Pod, counts_nominated: bool) -> bool:
    """Whether `other` is the pod itself, or may be counted for it."""
    if other.uid == pod.uid:
        return True
    has_node = other.is_assigned_or_nominated if counts_nominated else bool(other.node_name)
    return has_node and other.namespace == pod.namespace


def _pod_helps(
    pod: Pod, before: Pod | None, after: Pod | None, constraints: tuple[Constraint, ...]
) -> bool:
    if before is None or after is None:
        other = required(Pod, after if before is None else before)
        return any(constraint.selects(other) for constraint in constraints)
    tolerates_more = after.uid == pod.uid and after.tolerations != before.tolerations
    if tolerates_more and any(constraint.honors_taints for constraint in constraints):
        return True
    return any(c.selects(before) != c.selects(after) for c in constraints)


def _has_all_keys(node: Node, constraints: tuple[Constraint, ...]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)
