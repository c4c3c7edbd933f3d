"""The terms that matter to a kind of pod: its own terms, those that pods on nodes carry and that select it, and their
counts.

None of it changes from pod to pod, so it is put together once per class of pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ...amounts.domain_rules import CountedPods
from ...api.pod import Pod, PodClass
from ...stamped_cache import StampedCache
from ...table import CarriedTerm, DomainCounts, Ints, LabelColumn, NodeTable, TermKind
from .resolved_terms import OwnTerms


class Counted(msgspec.Struct, frozen=True):
    """Some pods, counted by the domains of a topology key; `weight` is added to a score for each of them."""

    label: LabelColumn
    counts: DomainCounts
    weight: int = 0

    @property
    def pods(self) -> CountedPods:
        """The same for a rule."""
        return CountedPods(self.label, self.counts)

    @property
    def per_domain(self) -> Ints:
        """int64 per domain (by code). Do not write to it."""
        return self.counts.per_domain(self.label)


class AffinityPlan(msgspec.Struct, frozen=True):
    """Terms and counts to evaluate for a pod.

    `affinity` has the pods that match every required affinity term, once per topology key; `anti_affinity` those of
    each anti-affinity term; `existing` the pods whose anti-affinity must be respected; `drawn` all that add to scores.
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
        """The pods that are drawn to the pod, or would avoid it."""
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
    """The terms that count in the score: for a pod with preferences also the hidden ones."""
    return carried if own.preferred else [term for term in carried if not term.is_hidden]
