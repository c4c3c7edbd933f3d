"""CarriedTerms: the affinity terms that pods on nodes carry, with how many pods carry each on each node.

An incoming pod must respect the anti-affinity of pods on nodes, and their preferences add to its scores. Equal terms
are counted together, so the incoming pod is matched against each distinct term once, however many pods carry it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from ..api.pod import Pod, PodAffinityTerm, PodClass, PodSpec
from ..stamped_cache import StampedCache
from .columns import Size
from .terms import DomainCounts


class TermKind(Enum):
    """Effect of a carried term on a pod it matches."""

    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    REQUIRED_AFFINITY = "required affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


NONE_HIDDEN: frozenset[TermKind] = frozenset()
ALL_HIDDEN = frozenset(TermKind)


class CarriedTerm:
    """One distinct term of pods in one namespace, and the pods that carry it."""

    __slots__ = ("carriers", "is_hidden", "kind", "namespace", "term", "topology_key", "weight")

    def __init__(
        self,
        kind: TermKind,
        namespace: str,
        term: PodAffinityTerm,
        weight: int,
        size: Size,
        is_hidden: bool = False,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.term = term
        self.topology_key = term.topology_key
        self.weight = weight
        self.carriers = DomainCounts(size)
        self.is_hidden = is_hidden
        """Carried by pods on trial whose node kube-scheduler has on no list of nodes with such terms."""

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether the carriers' term selects `pod`, whose namespace has `namespace_labels`."""
        return term_selects(self.term, self.namespace, pod, namespace_labels)


def term_selects(
    term: PodAffinityTerm, owner_namespace: str, pod: Pod, namespace_labels: Mapping[str, str]
) -> bool:
    """Whether `term` of a pod in `owner_namespace` selects `pod`."""
    if term.label_selector is None or not term.label_selector.matches(pod.labels):
        return False
    if not term.namespaces and term.namespace_selector is None:
        return pod.namespace == owner_namespace
    if pod.namespace in (term.namespaces or ()):
        return True
    selector = term.namespace_selector
    return selector is not None and selector.matches(namespace_labels)


TermKey = tuple[TermKind, str, PodAffinityTerm, int, bool]
Hidden = frozenset[TermKind]


class CarriedTerms:
    """Every term carried by a pod on a node."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._terms: dict[TermKey, CarriedTerm] = {}
        self._by_label: dict[tuple[str, str], set[TermKey]] = {}
        self._anywhere: set[TermKey] = set()
        self._by_class: StampedCache[tuple[PodClass, Hidden], list[CarriedTerm]] = StampedCache(
            "carried terms"
        )
        self.version = 0
        """Changes when a distinct term appears or vanishes."""

    def __bool__(self) -> bool:
        return bool(self._terms)

    def add_pod(self, row: int, pod: Pod, change: int, hidden: Hidden = NONE_HIDDEN) -> None:
        """Count a pod that was added to `row` (`change` 1) or removed (-1) (writer only); terms of the `hidden` kinds
        do not count.
        """
        if pod.spec.affinity is None:
            return
        for carried in self._carried_by(pod, hidden):
            carried.carriers.add(row, change)
            if carried.carriers.total == 0:
                self._forget(carried)

    def counts_at(self, row: int) -> list[DomainCounts]:
        """The counts of the terms that pods at `row` carry."""
        every = [carried.carriers for carried in self._terms.values()]
        return [carriers for carriers in every if carriers.column.cells[row]]

    def _carried_by(self, pod: Pod, hidden: Hidden) -> list[CarriedTerm]:
        """The terms of `pod`, registered on first use; looked up once per class of pods."""
        known = self._by_class.get((pod.pod_class, hidden), self.version)
        if known is not None:
            return known
        keys = [(*key, key[0] in hidden) for key in _keys(pod.spec, pod.namespace)]
        terms = [self._terms.get(key) or self._register(key) for key in keys]
        return self._by_class.put((pod.pod_class, hidden), terms)

    def matching(self, pod: Pod, namespace_labels: Mapping[str, str]) -> list[CarriedTerm]:
        """The carried terms that select `pod`."""
        if not self._terms:
            return []
        keys = set(self._anywhere)
        for item in pod.labels.items():
            keys |= self._by_label.get(item, set())
        found = (self._terms[key] for key in keys)
        return [carried for carried in found if carried.matches(pod, namespace_labels)]

    def _register(self, key: TermKey) -> CarriedTerm:
        kind, namespace, term, weight, is_hidden = key
        carried = CarriedTerm(kind, namespace, term, weight, self._size, is_hidden)
        self._terms[key] = carried
        for bucket in self._buckets(term):
            bucket.add(key)
        self.version += 1
        return carried

    def _forget(self, carried: CarriedTerm) -> None:
        key = (carried.kind, carried.namespace, carried.term, carried.weight, carried.is_hidden)
        del self._terms[key]
        for bucket in self._buckets(carried.term):
            bucket.discard(key)
        self.version += 1

    def _buckets(self, term: PodAffinityTerm) -> Iterable[set[TermKey]]:
        """The labels under which `term` is indexed: a selected pod has one of them."""
        if term.label_selector is None:
            return ()  # selects no pod
        for requirement in term.label_selector.requirements:
            if requirement.operator == "In":
                items = ((requirement.key, value) for value in requirement.values or ())
                return [self._by_label.setdefault(item, set()) for item in items]
        return (self._anywhere,)


def _keys(spec: PodSpec, namespace: str) -> list[tuple[TermKind, str, PodAffinityTerm, int]]:
    """The terms that a pod of `spec` in `namespace` carries; repeated terms are repeated."""
    keys: list[tuple[TermKind, str, PodAffinityTerm, int]] = []
    affinity, anti = (
        (spec.affinity and spec.affinity.pod_affinity),
        (spec.affinity and spec.affinity.pod_anti_affinity),
    )
    if affinity:
        keys += [(TermKind.REQUIRED_AFFINITY, namespace, t, 0) for t in affinity.required]
        keys += [
            (TermKind.PREFERRED_AFFINITY, namespace, w.pod_affinity_term, w.weight)
            for w in affinity.preferred
        ]
    if anti:
        keys += [(TermKind.REQUIRED_ANTI_AFFINITY, namespace, t, 0) for t in anti.required]
        keys += [
            (TermKind.PREFERRED_ANTI_AFFINITY, namespace, w.pod_affinity_term, w.weight)
            for w in anti.preferred
        ]
    return keys
