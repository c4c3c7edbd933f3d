"""PodTopologySpread: lay the pods that belong together evenly over zones, nodes or other domains.

Mirrors pkg/scheduler/framework/plugins/podtopologyspread/{plugin,filtering,scoring}.go.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...api.node import HOSTNAME
from ...api.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, TopologySpreadConstraint
from ...config.plugin_args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from ...errors import InputError
from ...framework import (
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
from ...framework.events import EventWithHint
from ...table import ABSENT, Bools, Ints, LabelColumn, NodeTable, PodTerm, Rows, RowValues
from ...table.tally import DomainTally
from .constraints import SYSTEM_CONSTRAINTS, Constraint, ConstraintsCache
from .eligibility import Domains, EligibilityCache
from .hints import spread_events

REASON = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON} (missing required label)"

FILTER_STATE = "PreFilterPodTopologySpread"
SCORE_STATE = "PreScorePodTopologySpread"

IGNORED = -1
"""The raw score of a node that lacks a topology key; `normalize` gives it 0."""

Floats = NDArray[np.float64]


@dataclass(slots=True)
class SpreadState:
    """What Filter needs to know of the cluster: pods per domain, for each constraint."""

    constraints: tuple[Constraint, ...]
    domains: tuple[Domains, ...]
    tallies: tuple[DomainTally, ...]

    def clone(self) -> SpreadState:
        """A copy for a what-if."""
        return replace(self, tallies=tuple(tally.clone() for tally in self.tallies))


@dataclass(slots=True)
class ScoreState:
    """What Score needs: per constraint the weight of a pod and the points of each domain.

    `points` is a float64 per domain, 0 for ABSENT; None for the hostname: it is counted per node.
    """

    table: NodeTable
    constraints: tuple[Constraint, ...]
    weights: tuple[float, ...]
    points: tuple[Floats | None, ...]
    require_all: bool


class PodTopologySpread(
    PreFilterPlugin, PreFilterExtensions, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Filters on the skew of DoNotSchedule constraints, scores by that of ScheduleAnyway ones.

    The table counts matching pods per domain; judging a node is looking up its domains.
    """

    name = "PodTopologySpread"
    reads_pin = False

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

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        given: PodTopologySpreadArgs = PodTopologySpreadArgs() if args is None else args
        comparison_operators = handle.feature_gates.get("TaintTolerationComparisonOperators", False)
        plugin = cls(given.default_constraints, given.defaulting_type, comparison_operators)
        plugin.handle = handle
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        return spread_events(lambda pod: self._constraints_of(pod, DO_NOT_SCHEDULE))

    def concerns(self, pod: Pod, table: NodeTable) -> bool:
        if pod.spec.topology_spread_constraints:
            return True
        actions = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        return any(self._constraints_of(pod, action) for action in actions)

    def concern_key(self, table: NodeTable) -> Hashable:
        return self.handle.lister.version, table.terms.dropped

    def row_marks(self, pod: Pod, table: NodeTable) -> Sequence[RowValues]:
        marks: list[RowValues] = []
        for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
            constraints = self._constraints_of(pod, action)
            if not constraints:
                continue
            require_all = action == DO_NOT_SCHEDULE or self._requires_all(pod)
            domains = self._eligibility.get(
                table, pod.spec, action, constraints, require_all
            ).domains
            for constraint, found in zip(constraints, domains, strict=True):
                counts = table.terms.count(constraint.pods)
                marks += found.marks(counts, table)
                if action == SCHEDULE_ANYWAY and constraint.topology_key == HOSTNAME:
                    marks.append(counts.column)
        return marks

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        try:
            constraints = self._constraints_of(pod, DO_NOT_SCHEDULE)
        except InputError as error:
            return failure(error)
        if not constraints:
            return SKIP
        domains = self._eligibility.get(
            table, pod.spec, DO_NOT_SCHEDULE, constraints, require_all=True
        ).domains
        tallies = tuple(
            DomainTally(found.label, found.count(table.terms.count(constraint.pods)))
            for constraint, found in zip(constraints, domains, strict=True)
        )
        state.write(FILTER_STATE, SpreadState(constraints, domains, tallies))
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        self._update(state.read(FILTER_STATE), pod, added, node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        self._update(state.read(FILTER_STATE), pod, removed, node, -1)
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        kept: SpreadState = state.read(FILTER_STATE)
        verdict = Verdict.accept(table, rows)
        # A node is refused by the first constraint that it breaks.
        for constraint, domains, tally in zip(
            kept.constraints, kept.domains, kept.tallies, strict=True
        ):
            codes = table.labels.codes(constraint.topology_key)[rows]
            lacking = codes == ABSENT
            if lacking.any():
                lacking &= verdict.feasible
                verdict.reject(lacking, REASON_MISSING_LABEL, unresolvable=True)
            counts = tally.counts
            full = counts > _most_allowed(constraint, domains, counts, pod)
            full[ABSENT] = False
            if full.any():
                verdict.reject(full.take(codes) & verdict.feasible, REASON)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        kept: SpreadState = state.read(FILTER_STATE)
        for constraint, domains, tally in zip(
            kept.constraints, kept.domains, kept.tallies, strict=True
        ):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return unresolvable(REASON_MISSING_LABEL)
            if tally.at(value) > _most_allowed(constraint, domains, tally.counts, pod):
                return unschedulable(REASON)
        return SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        return self._prepare(state, pod, table, rows, None)

    def pre_score_alike(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Ints, sizes: Ints
    ) -> Status:
        return self._prepare(state, pod, table, rows, sizes)

    def _prepare(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, sizes: Ints | None
    ) -> Status:
        """PreScore; each of `rows` stands for `sizes` nodes, or for itself."""
        if table.node_count == 0:
            return SKIP
        try:
            constraints = self._constraints_of(pod, SCHEDULE_ANYWAY)
        except InputError as error:
            return failure(error)
        if not constraints:
            return SKIP
        require_all = self._requires_all(pod)
        eligibility = self._eligibility.get(
            table, pod.spec, SCHEDULE_ANYWAY, constraints, require_all
        )
        if require_all and eligibility.has_all_keys is not None:
            is_scored = eligibility.has_all_keys[rows]
            rows = table.numbers(rows)[is_scored]
            sizes = sizes if sizes is None else sizes[is_scored]
        number = table.count(rows) if sizes is None else int(sizes.sum())
        weights, points = [], []
        for constraint, domains in zip(constraints, eligibility.domains, strict=True):
            weight = math.log(_topology_size(table, rows, number, domains.label) + 2)
            weights.append(weight)
            points.append(_points(constraint, domains, weight, table))
        kept = ScoreState(table, constraints, tuple(weights), tuple(points), require_all)
        state.write(SCORE_STATE, kept)
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        kept: ScoreState = state.read(SCORE_STATE)
        total = np.zeros(table.count(rows), dtype=np.float64)
        ignored: Bools = np.zeros(len(total), dtype=np.bool_)
        for constraint, weight, points in zip(
            kept.constraints, kept.weights, kept.points, strict=True
        ):
            codes = table.labels.codes(constraint.topology_key)[rows]
            lacking = codes == ABSENT
            if points is None:
                counts = _count_per_row(constraint.pods, table, kept.table)[rows]
                total += np.where(lacking, 0.0, counts * weight + (constraint.max_skew - 1))
            else:
                total += points.take(codes)
            ignored |= lacking
        scores = _round(total)
        if kept.require_all:
            scores[ignored] = IGNORED
        return scores

    def normalize(self, scores: Ints) -> Ints:
        """Turn round: the fewest pods get the most points; ignored nodes get none."""
        ignored = scores == IGNORED
        counted = scores[~ignored] if ignored.any() else scores
        highest = int(counted.max(initial=0))
        if highest == 0:
            return np.where(ignored, 0, MAX_SCORE)
        lowest = int(counted.min())
        return np.where(ignored, 0, MAX_SCORE * (highest + lowest - scores) // highest)

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

        Unlike the counts of the cluster, this takes in pods that are being deleted, and every pod
        for an empty selector: upstream does not look at either here.
        """
        labels = node.labels
        if changed.namespace != pod.namespace:
            return
        if any(constraint.topology_key not in labels for constraint in kept.constraints):
            return
        for constraint, tally in zip(kept.constraints, kept.tallies, strict=True):
            if constraint.selects(changed) and self._eligibility.includes(
                constraint, pod.spec, node.node
            ):
                tally.add(labels[constraint.topology_key], change)


def _most_allowed(constraint: Constraint, domains: Domains, counts: Ints, pod: Pod) -> int:
    """How many matching pods a domain may have so that `pod` can join them."""
    # Upstream tracks the two smallest domains, not just the smallest. A what-if changes
    # the domain of one node only, and then both come to the same.
    enough = domains.number >= constraint.min_domains
    lowest = domains.lowest(counts) if enough else 0
    return constraint.max_skew + lowest - constraint.selects(pod)


def _topology_size(table: NodeTable, rows: Rows, number: int, label: LabelColumn) -> int:
    """How many domains the nodes lie in that `rows` stand for, a `number` of them."""
    if label.key == HOSTNAME or (label.is_unique and label.labelled == table.node_count):
        return number  # every node is a domain of its own
    seen = np.zeros(label.slots, dtype=np.bool_)
    seen[label.codes[rows]] = True
    blank = label.code_of("")
    # A missing label and an empty one are the same domain.
    is_twice = blank != ABSENT and seen[blank] and seen[ABSENT]
    return int(np.count_nonzero(seen)) - int(is_twice)


def _points(
    constraint: Constraint, domains: Domains, weight: float, table: NodeTable
) -> Floats | None:
    """float64 per domain: what a node in it gets for `constraint`, 0 for ABSENT."""
    if constraint.topology_key == HOSTNAME:
        return None
    counts = domains.count(table.terms.count(constraint.pods))
    points = counts.astype(np.float64) * weight + (constraint.max_skew - 1)
    points[ABSENT] = 0.0
    return points


def _count_per_row(pods: PodTerm, table: NodeTable, counted: NodeTable) -> Ints:
    """int64 per row of `table`: its pods that match, whatever the inclusion policies say."""
    if table is counted:
        return table.terms.count(pods).per_row
    # A copy of one row knows its pods, but not the counts of the cluster.
    found = [sum(map(pods.matches, on_row.values())) for on_row in table.pods]
    return np.array(found, dtype=np.int64)


def _round(values: Floats) -> Ints:
    """Round half away from zero, as Go does; `values` are not negative."""
    whole = np.trunc(values)
    whole += values - whole >= 0.5
    return whole.astype(np.int64)
