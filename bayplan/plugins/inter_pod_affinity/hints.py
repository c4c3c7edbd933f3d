"""When a pod that had the wrong neighbours is worth another try.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/interpodaffinity/plugin.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...api.meta import NO_STRINGS
from ...api.node import Node
from ...api.pod import Pod, PodAffinityTerm
from ...framework.events import (
    NODE,
    POD,
    ActionType,
    EventWithHint,
    Hint,
    HintFunction,
    required,
    typed,
    wait_for,
)
from ...framework.release import DEFAULT_RELEASE, AffinityHints
from ...table import term_selects

Terms = tuple[PodAffinityTerm, ...]


def affinity_events(
    rule: AffinityHints = DEFAULT_RELEASE.affinity_hints,
) -> Sequence[EventWithHint]:
    """Events that the plugin waits for."""
    pod_changes = ActionType.Add | ActionType.Delete | ActionType.UpdatePodLabel
    return (
        wait_for(POD, pod_changes, HINTS[rule]),
        wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel, after_node_change),
    )


def after_pod_change(pod: Pod, old: Any, new: Any, matches_any: bool = False) -> Hint:
    """A pod on a node came to match a term of the pod, or no longer matches a term that it avoids."""
    before, after = typed(Pod, old), typed(Pod, new)
    if before is not None and after is not None and after.uid == pod.uid:
        return Hint.QUEUE  # its labels changed, and with them the terms of others that it matches
    if any(p is not None and not p.is_assigned_or_nominated for p in (before, after)):
        return Hint.SKIP
    helps = _pod_helps(pod, before, after, matches_any=matches_any)
    return Hint.QUEUE if helps else Hint.SKIP


def after_placed_pod_change(pod: Pod, old: Any, new: Any) -> Hint:
    """The same up to v1.35: pods without a node do not count, nor do the terms of a pod that went."""
    before, after = typed(Pod, old), typed(Pod, new)
    if any(p is not None and not p.node_name for p in (before, after)):
        return Hint.SKIP
    return Hint.QUEUE if _pod_helps(pod, before, after, of_gone=False) else Hint.SKIP


def after_any_term(pod: Pod, old: Any, new: Any) -> Hint:
    """The same from v1.37 on: one term of an anti-affinity is enough."""
    return after_pod_change(pod, old, new, matches_any=True)


def after_node_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A node is in another domain of the pod's terms than before."""
    before, after = typed(Node, old), required(Node, new)
    needed, avoided = _usable(pod.spec.required_affinity), _usable(pod.spec.required_anti_affinity)
    if before is None:
        # A node that lacks the key may take a pod that avoids others, and no pod that needs some.
        helps = bool(avoided) or any(term.topology_key in after.labels for term in needed)
        return Hint.QUEUE if helps else Hint.SKIP
    joined = any(_differs(term, before, after) and _has(term, after) for term in needed)
    left = any(_differs(term, before, after) and _has(term, before) for term in avoided)
    return Hint.QUEUE if joined or left else Hint.SKIP


def _pod_helps(
    pod: Pod,
    before: Pod | None,
    after: Pod | None,
    *,
    of_gone: bool = True,
    matches_any: bool = False,
) -> bool:
    """`of_gone`: the terms of a pod that went count; `matches_any`: one term of an anti-affinity is enough."""
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
    """Whether all terms of `owner` select `pod`; without a term, no.

    Labels of namespaces are not looked up, so only an empty requirement meets a namespace selector.
    """
    return bool(terms) and all(
        term_selects(term, owner.namespace, pod, NO_STRINGS) for term in terms
    )


def _match_any(terms: Terms, owner: Pod, pod: Pod) -> bool:
    """Whether a term of `owner` selects `pod`."""
    return any(term_selects(term, owner.namespace, pod, NO_STRINGS) for term in terms)


def _usable(terms: Terms) -> Terms:
    """The terms; InputError when a selector of theirs cannot be used."""
    for term in terms:
        for selector in (term.label_selector, term.namespace_selector):
            if selector is not None and not selector.is_usable:
                selector.validate()
    return terms


def _has(term: PodAffinityTerm, node: Node) -> bool:
    return term.topology_key in node.labels


def _differs(term: PodAffinityTerm, before: Node, after: Node) -> bool:
    return before.labels.get(term.topology_key) != after.labels.get(term.topology_key)


HINTS: dict[AffinityHints, HintFunction] = {
    AffinityHints.PLACED: after_placed_pod_change,
    AffinityHints.ALL_TERMS: after_pod_change,
    AffinityHints.ANY_TERM: after_any_term,
}
