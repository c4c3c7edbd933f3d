"""The affinity terms of an incoming pod, with their namespaces resolved to names.

Mirrors AffinityTerm of staging/src/k8s.io/kube-scheduler/framework/types.go and the merging of namespaces in
pkg/scheduler/framework/plugins/interpodaffinity/plugin.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...api.pod import PodAffinityTerm, PodSpec
from ...api.selectors import LabelSelector
from ...table import PodTerm
from ...table.terms import NO_POD

Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of every namespace, by name."""


class OwnTerm(NamedTuple):
    """One anti-affinity or preferred term; `weight` is negative if it repels."""

    topology_key: str
    pods: PodTerm
    weight: int = 0


class OwnTerms:
    """Terms of an incoming pod about other pods.

    `affinity` stands for all required affinity terms at once, since only a pod that matches every one of them counts;
    `affinity_keys` are their topology keys, each once. `problem` is the reason why a selector cannot be used.
    """

    __slots__ = ("affinity", "affinity_keys", "anti_affinity", "preferred", "problem")

    def __init__(
        self, spec: PodSpec, namespace: str, namespaces: Namespaces, keeps_selector: bool = True
    ) -> None:
        def pods(term: PodAffinityTerm) -> PodTerm:
            return pods_of(term, namespace, namespaces, keeps_selector)

        self.problem = next(_problems(spec), "")
        self.affinity = conjunction([pods(term) for term in spec.required_affinity])
        self.affinity_keys = tuple(dict.fromkeys(t.topology_key for t in spec.required_affinity))
        self.anti_affinity = tuple(
            OwnTerm(term.topology_key, pods(term)) for term in spec.required_anti_affinity
        )
        weighted = [(wish.pod_affinity_term, wish.weight) for wish in spec.preferred_affinity]
        weighted += [
            (wish.pod_affinity_term, -wish.weight) for wish in spec.preferred_anti_affinity
        ]
        self.preferred = tuple(OwnTerm(t.topology_key, pods(t), weight) for t, weight in weighted)

    @property
    def has_required(self) -> bool:
        """Whether Filter has something to check for the pod itself."""
        return bool(self.affinity_keys or self.anti_affinity)


def pods_of(
    term: PodAffinityTerm,
    owner_namespace: str,
    namespaces: Namespaces,
    keeps_selector: bool = True,
) -> PodTerm:
    """The pods that `term` of a pod in `owner_namespace` selects; `keeps_selector` as in `Release`."""
    if term.label_selector is None:
        return NO_POD
    return PodTerm(_names(term, owner_namespace, namespaces, keeps_selector), term.label_selector)


def conjunction(terms: list[PodTerm]) -> PodTerm:
    """The pods that all of `terms` select; none without terms."""
    if len(terms) <= 1:
        return terms[0] if terms else NO_POD
    limits = [term.namespaces for term in terms if term.namespaces is not None]
    requirements = (r for term in terms for r in term.selector.requirements)
    return PodTerm(
        frozenset.intersection(*limits) if limits else None,
        LabelSelector(match_expressions=tuple(requirements)),
    )


def _names(
    term: PodAffinityTerm, owner_namespace: str, namespaces: Namespaces, keeps_selector: bool
) -> frozenset[str] | None:
    """The namespaces of a term; None stands for all of them."""
    selector, named = term.namespace_selector, frozenset(term.namespaces or ())
    if selector is None:
        return named or frozenset({owner_namespace})
    # v1.34 to v1.36 resolve the selector to names but go on matching it too, against no labels at all.
    # So not only the empty selector selects every namespace, but also a selector that only requires labels to be
    # absent or different.
    if selector.matches({}) if keeps_selector else selector.is_empty:
        return None
    return named | {name for name, labels in namespaces.items() if selector.matches(labels)}


def _problems(spec: PodSpec) -> Iterator[str]:
    """Problems of the selectors of the pod's terms."""
    for term in spec.pod_terms:
        for name, selector in (
            ("labelSelector", term.label_selector),
            ("namespaceSelector", term.namespace_selector),
        ):
            for path, fault in selector.problems() if selector is not None else ():
                yield f"affinity term for {term.topology_key}: {name}.{path}: {fault}"
