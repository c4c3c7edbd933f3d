"""Queueing hints: events after which a pod refused for the pods around it may fit.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/interpodaffinity/plugin.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...api.meta import NO_STRINGS
from ...api.node import Node
from ...api.pod import Pod, PodAffinityTerm
from ...framework.events import (
    NODE,
    POD,
    ActionType,
    EventWithHint,
    Helps,
    required,
    wait_for,
)
from ...releases.release import DEFAULT_RELEASE, AffinityHints
from ...table import term_selects

Terms = tuple[PodAffinityTerm, ...]


def affinity_events(
    rule: AffinityHints = DEFAULT_RELEASE.affinity_hints,
) -> Sequence[EventWithHint]:
    """Events that the plugin waits for."""
    node_changes = ActionType.Add | ActionType.UpdateNodeLabel
    pod_changes = ActionType.Add | ActionType.Delete | ActionType.UpdatePodLabel
    return (
        wait_for(POD, pod_changes, helps=HINTS[rule]),
        wait_for(NODE, node_changes, helps=after_node_change),
    )


def after_pod_change(
    pod: Pod, before: Pod | None, after: Pod | None, matches_any: bool = False
) -> bool:
    """Hint: a pod on a node now matches an affinity term of the pod, or no longer matches an anti-affinity term."""
    if before is not None and after is not None and after.uid == pod.uid:
        return True  # its labels changed, and with them the terms of others that it matches
    if any(p is not None and not p.is_assigned_or_nominated for p in (before, after)):
        return False
    return _pod_helps(pod, before, after, matches_any=matches_any)


def after_placed_pod_change(pod: Pod, before: Pod | None, after: Pod | None) -> bool:
    """`after_pod_change` up to v1.35: pods without a node do not count, nor do the terms of a deleted pod."""
    if any(p is not None and not p.node_name for p in (before, after)):
        return False
    return _pod_helps(pod, before, after, of_gone=False)


def after_node_change(pod: Pod, before: Node | None, after: Node) -> bool:
    """Hint: the domain of a node for the pod's terms changed."""
    needed, avoided = _usable(pod.spec.required_affinity), _usable(pod.spec.required_anti_affinity)
    if before is None:
        # A node that lacks the key may take a pod that avoids others, and no pod that needs some.
        return bool(avoided) or any(_has(term, after) for term in needed)
    joined = any(_differs(term, before, after) and _has(term, after) for term in needed)
    left = any(_differs(term, before, after) and _has(term, before) for term in avoided)
    return joined or left


def _pod_helps(
    pod: Pod,
    before: Pod | None,
    after: Pod | None,
    *,
    of_gone: bool = True,
    matches_any: bool = False,
) -> bool:
    """With `of_gone` the terms of a deleted pod count; with `matches_any` one term of an anti-affinity is enough."""
    needed, avoided = _usable(pod.spec.required_affinity), _usable(pod.spec.required_anti_affinity)
    avoids = _match_any if matches_any else _match
    if after is None:
        gone = required(Pod, before)
        if avoids(avoided, pod, gone):
            return True
        return of_gone and avoids(_usable(gone.spec.required_anti_affinity), gone, pod)
    if before is None:
        return _match(needed, pod, after)
    if _match(needed, pod, after) and not _match(needed, pod, before):
        return True
    return avoids(avoided, pod, before) and not avoids(avoided, pod, after)


def _match(terms: Terms, owner: Pod, pod: Pod) -> bool:
    """Whether all terms of `owner` select `pod`; False without terms.

    Labels of namespaces are not looked up, so only an empty requirement meets a namespace selector.
    """
    return bool(terms) and all(
        term_selects(term, owner.namespace, pod, NO_STRINGS) for term in terms
    )


def _match_any(terms: Terms, owner: Pod, pod: Pod) -> bool:
    """Whether a term of `owner` selects `pod`."""
    return any(term_selects(term, owner.namespace, pod, NO_STRINGS) for term in terms)


def _usable(terms: Terms) -> Terms:
    """The terms; InputError if one of their selectors is invalid."""
    for term in terms:
        for selector in (term.label_selector, term.namespace_selector):
            if selector is not None and not selector.is_usable:
                selector.validate()
    return terms


def _has(term: PodAffinityTerm, node: Node) -> bool:
    return term.topology_key in node.labels


def _differs(term: PodAffinityTerm, before: Node, after: Node) -> bool:
    return before.labels.get(term.topology_key) != after.labels.get(term.topology_key)


HINTS: dict[AffinityHints, Helps] = {
    AffinityHints.PLACED: after_placed_pod_change,
    AffinityHints.ALL_TERMS: after_pod_change,
    AffinityHints.ANY_TERM: partial(after_pod_change, matches_any=True),
}
