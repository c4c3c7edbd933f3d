"""InterPodAffinity: required and preferred affinity and anti-affinity between pods.

Mirrors pkg/scheduler/framework/plugins/interpodaffinity/{plugin,filtering,scoring}.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from ...amounts.domain_rules import (
    NO_DOMAIN_RULES,
    Attraction,
    CountedPods,
    DomainRules,
    Limit,
    MaxSkew,
    Together,
)
from ...api.pod import Pod, PodClass, PodSpec
from ...config.plugin_args import InterPodAffinityArgs
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
from ...framework.events import EventWithHint
from ...releases.release import DEFAULT_RELEASE
from ...stamped_cache import StampedCache
from ...table import (
    ABSENT,
    Bools,
    CarriedTerm,
    DomainCounts,
    Ints,
    LabelColumn,
    NodeTable,
    Rows,
    RowValues,
    TermKind,
    marks_of_domains,
    term_selects,
)
from ...table.labels import DomainTally
from .hints import affinity_events
from .resolved_terms import OwnTerms

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

FILTER_STATE = "PreFilterInterPodAffinity"
SCORE_STATE = "PreScoreInterPodAffinity"


class AffinityState(msgspec.Struct):
    """Facts of the cluster for Filter: pods per domain, for each rule on the incoming pod.

    All maps go from topology key to tally. `affinity` counts the pods that match every required
    affinity term; `anti_affinity` and `existing` sum over the terms that have the key.
    """

    plan: AffinityPlan
    affinity: dict[str, DomainTally]
    anti_affinity: dict[str, DomainTally]
    existing: dict[str, DomainTally]

    def clone(self) -> AffinityState:
        """A copy for a what-if."""
        return AffinityState(
            self.plan,
            {key: tally.clone() for key, tally in self.affinity.items()},
            {key: tally.clone() for key, tally in self.anti_affinity.items()},
            {key: tally.clone() for key, tally in self.existing.items()},
        )

    @property
    def is_first(self) -> bool:
        """Whether the pod is the first of a group with affinity to itself.

        If no pod anywhere matches, and the pod matches its own terms, any node with the topology keys is accepted.
        """
        return self.plan.matches_itself and not any(
            tally.counts.any() for tally in self.affinity.values()
        )

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with `labels` meets the required affinity terms."""
        if all(tally.at(labels.get(key)) > 0 for key, tally in self.affinity.items()):
            return True
        return all(key in labels for key in self.affinity) and self.is_first

    def update(self, pod: Pod, changed: Pod, node: NodeInfo, change: int) -> None:
        """Count `changed` on `node` once more (`change` 1) or once less (-1)."""
        labels, plan = node.labels, self.plan
        for term in changed.spec.required_anti_affinity:
            if term_selects(term, changed.namespace, pod, plan.namespace_labels):
                tally = self._existing_tally(term.topology_key, node.table)
                tally.add(labels.get(term.topology_key), change)
        if self.affinity and plan.own.affinity.matches(changed):
            for key, tally in self.affinity.items():
                tally.add(labels.get(key), change)
        for own in plan.own.anti_affinity:
            if own.pods.matches(changed):
                self.anti_affinity[own.topology_key].add(labels.get(own.topology_key), change)

    def counts(self, pod: Pod, other: Pod) -> bool:
        """Whether `update` would count `other`."""
        plan = self.plan
        return (
            any(
                term_selects(term, other.namespace, pod, plan.namespace_labels)
                for term in other.spec.required_anti_affinity
            )
            or (bool(self.affinity) and plan.own.affinity.matches(other))
            or any(own.pods.matches(other) for own in plan.own.anti_affinity)
        )

    def _existing_tally(self, key: str, table: NodeTable) -> DomainTally:
        tally = self.existing.get(key)
        if tally is None:
            label = table.labels.column(key)
            tally = DomainTally(label, np.zeros(label.slots, dtype=np.int64))
            self.existing[key] = tally
        return tally


class InterPodAffinity(
    PreFilterPlugin, PreFilterExtensions, FilterPlugin, PreScorePlugin, ScorePlugin
):
    """Filters on required terms, scores by preferred ones, of the pod and of the pods on nodes.

    The table counts matching pods per domain; judging a node is looking up its domains.
    """

    name = "InterPodAffinity"
    scope = GROUPS

    def __init__(
        self,
        hard_pod_affinity_weight: int = 1,
        ignore_preferred_terms_of_existing_pods: bool = False,
    ) -> None:
        self._ignore_existing = ignore_preferred_terms_of_existing_pods
        self._plans = AffinityPlans(hard_pod_affinity_weight)
        self._hint_rule = DEFAULT_RELEASE.affinity_hints

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        given: InterPodAffinityArgs = InterPodAffinityArgs() if args is None else args
        plugin = cls(given.hard_pod_affinity_weight, given.ignore_preferred_terms_of_existing_pods)
        plugin.handle = handle
        plugin._hint_rule = handle.release.affinity_hints
        plugin._plans = AffinityPlans(
            given.hard_pod_affinity_weight, handle.release.keeps_namespace_selector
        )
        return plugin

    def events_to_register(self) -> Sequence[EventWithHint]:
        return affinity_events(self._hint_rule)

    def spec_key(self, spec: PodSpec) -> Hashable:
        return (spec.affinity,)

    def cluster_key(self, table: NodeTable) -> Hashable:
        return None  # the columns depend on nothing but the table

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues] | DomainRules:
        if not table.carried and not pod.spec.has_pod_terms:
            return NO_DOMAIN_RULES
        plan = self._plans.get(pod, table)
        looked_at = (*plan.affinity, *plan.anti_affinity, *plan.existing, *plan.drawn)
        columns = [
            mark
            for counted in looked_at
            for mark in marks_of_domains(counted.label, counted.counts, table.node_count)
        ]
        if plan.own.problem:
            return columns
        limits: list[Limit] = [MaxSkew(c.pods, 0) for c in (*plan.anti_affinity, *plan.existing)]
        if plan.affinity:
            limits.append(Together(tuple(c.pods for c in plan.affinity), plan.matches_itself))
        score = None
        if plan.drawn and (plan.own.preferred or not self._ignore_existing):
            score = Attraction(tuple((c.pods, c.weight) for c in plan.drawn))
        labels = list(dict.fromkeys(counted.label for counted in looked_at))

        def nodes_key() -> Hashable:
            return tuple([label.shape(table.node_count) for label in labels])

        return DomainRules(columns, tuple(limits), score, nodes_key)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        plan = self._plans.get(pod, table)
        own = plan.own
        if own.problem:
            return unresolvable(f"parsing pod: {own.problem}")
        existing = _tallies(plan.existing)
        if not own.has_required and not any(tally.counts.any() for tally in existing.values()):
            return SKIP
        kept = AffinityState(plan, _tallies(plan.affinity), _tallies(plan.anti_affinity), existing)
        state.write(FILTER_STATE, kept)
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        kept: AffinityState = state.read(FILTER_STATE)
        kept.update(pod, added, node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        kept: AffinityState = state.read(FILTER_STATE)
        kept.update(pod, removed, node, -1)
        return SUCCESS

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        kept: AffinityState = state.read(FILTER_STATE)
        return kept.counts(pod, other)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        kept: AffinityState = state.read(FILTER_STATE)
        verdict = Verdict.accept(table, rows)
        if kept.affinity:
            is_first = kept.is_first
            near = np.ones(table.count(rows), dtype=np.bool_)
            for key, tally in kept.affinity.items():
                codes = table.labels.codes(key)[rows]
                near &= codes != ABSENT if is_first else (tally.counts > 0).take(codes)
            verdict.reject(~near, REASON_AFFINITY, unresolvable=True)
        # A node is refused for the first reason that applies.
        for tallies, reason in (
            (kept.anti_affinity, REASON_ANTI_AFFINITY),
            (kept.existing, REASON_EXISTING_ANTI_AFFINITY),
        ):
            crowded = _near_any(tallies.values(), table, rows)
            if crowded is not None:
                verdict.reject(crowded & verdict.feasible, reason)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        kept: AffinityState = state.read(FILTER_STATE)
        labels = node.labels
        if kept.affinity and not kept.is_met_by(labels):
            return unresolvable(REASON_AFFINITY)
        if any(tally.at(labels.get(key)) > 0 for key, tally in kept.anti_affinity.items()):
            return unschedulable(REASON_ANTI_AFFINITY)
        if any(tally.at(labels.get(key)) > 0 for key, tally in kept.existing.items()):
            return unschedulable(REASON_EXISTING_ANTI_AFFINITY)
        return SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        plan = self._plans.get(pod, table)
        if self._ignore_existing and not plan.own.preferred:
            return SKIP
        if plan.own.problem:
            return failure(f"parsing pod: {plan.own.problem}")
        points: dict[str, Ints] = {}
        for counted in plan.drawn:
            per_domain, key = counted.per_domain, counted.label.key
            if per_domain.any():
                known, given = points.get(key), counted.weight * per_domain
                points[key] = given if known is None else known + given
        if not points:
            return SKIP
        state.write(SCORE_STATE, points)
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        points: dict[str, Ints] = state.read(SCORE_STATE)
        given = [
            per_domain.take(table.labels.codes(key)[rows]) for key, per_domain in points.items()
        ]
        scores = given[0]
        for more in given[1:]:
            scores += more
        return scores

    def normalize(self, scores: Ints) -> Ints:
        """Scale the scores to the whole range, in floating point and truncated, as Go does."""
        if not scores.size:
            return scores
        lowest = scores.min()
        spread = scores.max() - lowest
        if spread == 0:
            return np.zeros_like(scores)
        stretched: Ints = (float(MAX_SCORE) * ((scores - lowest) / spread)).astype(np.int64)
        return stretched


def _tallies(looked_at: Iterable[Counted]) -> dict[str, DomainTally]:
    """One tally per topology key, over all the counts for that key."""
    tallies: dict[str, DomainTally] = {}
    for counted in looked_at:
        label, per_domain = counted.label, counted.per_domain
        if label.key in tallies:
            per_domain = tallies[label.key].counts + per_domain
        tallies[label.key] = DomainTally(label, per_domain)
    return tallies


def _near_any(tallies: Iterable[DomainTally], table: NodeTable, rows: Rows) -> Bools | None:
    """bool per row: some pod is counted in a domain of the node; None when there is no such row."""
    near: Bools | None = None
    for tally in tallies:
        found = tally.counts.take(table.labels.codes(tally.key)[rows]) > 0
        if np.count_nonzero(found):
            near = found if near is None else near | found
    return near


class Counted(msgspec.Struct, frozen=True):
    """Some pods, counted by the domains of a topology key; `weight` is added to a score for each of them."""

    label: LabelColumn
    counts: DomainCounts
    weight: int = 0

    @property
    def pods(self) -> CountedPods:
        """The counted pods, for a rule."""
        return CountedPods(self.label, self.counts)

    @property
    def per_domain(self) -> Ints:
        """int64 per domain (by code). Do not write to it."""
        return self.counts.per_domain(self.label)


class AffinityPlan(msgspec.Struct, frozen=True):
    """Terms and counts to evaluate for a pod.

    `affinity` has the pods that match every required affinity term, once per topology key; `anti_affinity` those of
    each anti-affinity term; `existing` the pods whose anti-affinity must be respected; `drawn` all pods that add to
    scores.
    """

    own: OwnTerms
    matches_itself: bool
    """Whether the pod meets its own required affinity."""
    namespace_labels: Mapping[str, str]
    affinity: tuple[Counted, ...]
    anti_affinity: tuple[Counted, ...]
    existing: tuple[Counted, ...]
    drawn: tuple[Counted, ...]


class AffinityPlans:
    """Plans by class, invalidated when a namespace, the terms of pods on nodes or the terms that are counted change."""

    def __init__(self, hard_weight: int, keeps_selector: bool = True) -> None:
        self._hard_weight = hard_weight
        self._keeps_selector = keeps_selector
        self._plans: StampedCache[PodClass, AffinityPlan] = StampedCache("affinity plans")

    def get(self, pod: Pod, table: NodeTable) -> AffinityPlan:
        """The plan for `pod`."""
        stamp = (
            table,
            table.carried.version,
            table.namespaces_version,
            table.terms.dropped,
        )
        plan = self._plans.get(pod.pod_class, stamp)
        if plan is None:
            plan = self._plans.put(pod.pod_class, self._make(pod, table))
        return plan

    def _make(self, pod: Pod, table: NodeTable) -> AffinityPlan:
        own = OwnTerms(pod.spec, pod.namespace, table.namespaces, self._keeps_selector)
        namespace_labels = table.namespace_labels(pod.namespace)
        carried = table.carried.matching(pod, namespace_labels)
        count, column = table.terms.count, table.labels.column
        preferred = [
            Counted(column(t.topology_key), count(t.pods), t.weight) for t in own.preferred
        ]
        return AffinityPlan(
            own,
            own.affinity.matches(pod),
            namespace_labels,
            tuple(Counted(column(key), count(own.affinity)) for key in own.affinity_keys),
            tuple(Counted(column(t.topology_key), count(t.pods)) for t in own.anti_affinity),
            tuple(
                Counted(column(term.topology_key), term.carriers)
                for term in carried
                if term.kind is TermKind.REQUIRED_ANTI_AFFINITY and not term.is_hidden
            ),
            (*preferred, *self._drawing(_seen(carried, own), table)),
        )

    def _drawing(self, carried: list[CarriedTerm], table: NodeTable) -> Iterator[Counted]:
        """The pods on nodes with a preference for or against the pod."""
        for term in carried:
            label = table.labels.column(term.topology_key)
            match term.kind:
                case TermKind.PREFERRED_AFFINITY:
                    yield Counted(label, term.carriers, term.weight)
                case TermKind.PREFERRED_ANTI_AFFINITY:
                    yield Counted(label, term.carriers, -term.weight)
                case TermKind.REQUIRED_AFFINITY if self._hard_weight > 0:
                    yield Counted(label, term.carriers, self._hard_weight)


def _seen(carried: list[CarriedTerm], own: OwnTerms) -> list[CarriedTerm]:
    """The terms that count in the score; for a pod with preferences, hidden terms count, too."""
    return carried if own.preferred else [term for term in carried if not term.is_hidden]
