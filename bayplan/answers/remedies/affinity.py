"""Affinity: remedies for inter-pod affinity and anti-affinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...api.node import Node
from ...api.pod import Pod, PodAffinityTerm
from ...trials import TrialCluster
from ..manifest_changes import ObjectChange, pointer
from .node import REQUIRED, label_changes, labels_meeting
from .proposal import (
    Ask,
    Remedy,
    create,
    importance,
    in_words,
    last_resort,
    leaving,
    placed_pods,
    plain,
    put,
    remedy,
    remove,
)

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
MOST_PODS = 64
MOST_VALUES = 3


def please_pods(ask: Ask) -> Iterator[Remedy]:
    """Add or remove matching pods, or drop the term."""
    for reason in ask.reasons:
        if reason == EXISTING:
            yield from _avoid_keepers(ask)
        elif reason == ANTI_AFFINITY:
            yield from _leave_alone(ask)
        elif reason == AFFINITY:
            yield from _find_partners(ask)
    yield from _drop_terms(ask)


def _avoid_keepers(ask: Ask) -> Iterator[Remedy]:
    """Remove pods whose anti-affinity rejects this one, or remove the label of this pod that they select."""
    keepers, keys = [], dict[str, None]()
    pod, namespaces = ask.pod, ask.view.table.namespaces
    for node, other in placed_pods(ask.view):
        for term in other.spec.required_anti_affinity:
            if _shares_domain(node, ask.node, term) and matches(term, other, pod, namespaces):
                keepers.append(other)
                selector = term.label_selector
                for r in selector.requirements if selector is not None else ():
                    keys[r.key] = None
                break
    keepers.sort(key=importance)
    goal = "move the pods whose anti-affinity rejects this one"
    yield leaving(goal, keepers, "its anti-affinity keeps the pod away", MOST_PODS)
    without = label_changes(pod, {key: None for key in keys if key in pod.labels})
    yield remedy("remove the labels that the anti-affinity of other pods selects", *without)


def _leave_alone(ask: Ask) -> Iterator[Remedy]:
    """Remove the pods that this one's anti-affinity selects in the node's domains."""
    terms, namespaces = ask.pod.spec.required_anti_affinity, ask.view.table.namespaces
    found = (
        other
        for node, other in placed_pods(ask.view)
        if any(
            _shares_domain(node, ask.node, term) and matches(term, ask.pod, other, namespaces)
            for term in terms
        )
    )
    goal = f"move the pods away from {ask.node.name} and its neighbours that the pod avoids"
    pods = sorted(found, key=importance)
    yield leaving(goal, pods, "the pod's anti-affinity avoids it", MOST_PODS)


def _shares_domain(one: Node, other: Node, term: PodAffinityTerm) -> bool:
    value = other.labels.get(term.topology_key)
    return value is not None and one.labels.get(term.topology_key) == value


def matches(
    term: PodAffinityTerm, owner: Pod, other: Pod, namespaces: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether `term` of `owner` selects `other`."""
    if term.label_selector is None or not term.label_selector.matches(other.labels):
        return False
    return _looks_in(term, owner, other.namespace, namespaces)


def _find_partners(ask: Ask) -> Iterator[Remedy]:
    """Add pods that the affinity selects, or put the node into their domain."""
    pod, node = ask.pod, ask.node
    terms = pod.spec.required_affinity
    keys = dict.fromkeys(t.topology_key for t in terms if t.topology_key not in node.labels)
    homes = _homes(ask, terms)
    for labels in homes[:MOST_VALUES]:
        changes = label_changes(node, {**dict.fromkeys(keys, node.name), **labels})
        if keys:
            yield in_words(changes)
    yield from _look_elsewhere(ask, terms)
    manifest = _partner(ask, terms)
    added: list[ObjectChange] = []
    if keys and not homes:
        added = label_changes(node, dict.fromkeys(keys, node.name))
    if manifest is not None:
        wanted = ", ".join(f"{k}={v}" for k, v in manifest["metadata"]["labels"].items())
        text = f"a pod with {wanted or 'any labels'} on {node.name}"
        yield remedy(text, *added, create(manifest, text))


def _look_elsewhere(ask: Ask, terms: Sequence[PodAffinityTerm]) -> Iterator[Remedy]:
    """Add the namespaces with matching pods to the terms, if the terms' own namespaces have none."""
    changes = []
    for i, term in enumerate(terms):
        found = elsewhere(ask.view, ask.pod, term)
        if found:
            path = pointer("spec", "affinity", "podAffinity", REQUIRED, i, "namespaces")
            own = () if term.namespaces or term.namespace_selector else (ask.pod.namespace,)
            named = [*own, *(term.namespaces or ()), *found]
            text = f"look for pods with {selector_text(term)} in namespace {', '.join(found)}, too"
            given = list(term.namespaces) if term.namespaces else None
            changes.append(put(ask.pod, path, given, named, text))
    yield remedy("; ".join(change.text for change in changes), *changes)


def elsewhere(view: TrialCluster, pod: Pod, term: PodAffinityTerm) -> dict[str, int]:
    """Pods with the labels of the term by namespace, if the namespaces of the term have none."""
    if term.label_selector is None:
        return {}
    found: Counter[str] = Counter()
    for _, other in placed_pods(view):
        if matches(term, pod, other, view.table.namespaces):
            return {}
        if term.label_selector.matches(other.labels):
            found[other.namespace] += 1
    return dict(found)


def selector_text(term: PodAffinityTerm) -> str:
    """The labels that the term selects, as after `kubectl -l`."""
    parts = []
    for one in term.label_selector.requirements if term.label_selector is not None else ():
        values = one.values or ()
        if one.operator == "In" and len(values) == 1:
            parts.append(f"{one.key}={values[0]}")
        else:
            listed = f" ({', '.join(values)})" if values else ""
            parts.append(f"{one.key} {one.operator}{listed}")
    return ",".join(parts) or "any labels"


def _homes(ask: Ask, terms: Sequence[PodAffinityTerm]) -> list[dict[str, str]]:
    """Labels of nodes that have a pod selected by every term."""
    namespaces, found = ask.view.table.namespaces, list[dict[str, str]]()
    for node, other in placed_pods(ask.view):
        if all(
            term.topology_key in node.labels and matches(term, ask.pod, other, namespaces)
            for term in terms
        ):
            home = {term.topology_key: node.labels[term.topology_key] for term in terms}
            if home not in found:
                found.append(home)
            if len(found) >= MOST_VALUES:
                break
    return found


def _partner(ask: Ask, terms: Sequence[PodAffinityTerm]) -> dict[str, Any] | None:
    """A pod on the node that all terms select; None when that is impossible."""
    requirements = [r for t in terms if t.label_selector for r in t.label_selector.requirements]
    labels = labels_meeting(requirements, {})
    namespace = _namespace(ask, terms)
    if labels is None or namespace is None:
        return None
    name = f"{ask.pod.name}-partner"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{ask.pod.uid}-partner",
            "labels": {key: value for key, value in labels.items() if value is not None},
        },
        "spec": {"nodeName": ask.node.name, "containers": [{"name": "partner"}]},
    }


def _namespace(ask: Ask, terms: Sequence[PodAffinityTerm]) -> str | None:
    """A namespace that all terms select."""
    known = ask.view.table.namespaces
    candidates = [ask.pod.namespace, *[n for t in terms for n in t.namespaces or ()], *known]
    for name in dict.fromkeys(candidates):
        if all(_looks_in(term, ask.pod, name, known) for term in terms):
            return name
    return None


def _looks_in(
    term: PodAffinityTerm, owner: Pod, name: str, known: Mapping[str, Mapping[str, str]]
) -> bool:
    named, selector = term.namespaces or (), term.namespace_selector
    if selector is None and not named:
        return name == owner.namespace
    return name in named or (selector is not None and selector.matches(known.get(name, {})))


def _drop_terms(ask: Ask) -> Iterator[Remedy]:
    """Drop the affinity or anti-affinity terms."""
    spec, changes = ask.pod.spec, list[ObjectChange]()
    for field, terms, what in (
        ("podAffinity", spec.required_affinity, "affinity"),
        ("podAntiAffinity", spec.required_anti_affinity, "anti-affinity"),
    ):
        for i, term in reversed(list(enumerate(terms))):
            path = pointer("spec", "affinity", field, REQUIRED, i)
            text = f"drop the required pod {what} over {term.topology_key}"
            changes.append(remove(ask.pod, path, plain(term), text))
    yield last_resort("drop the pod's requirements on other pods", *changes)
