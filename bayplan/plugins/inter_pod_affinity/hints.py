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
    required,
    typed,
    wait_for,
)
from ...table import term_selects

Terms = tuple[PodAffinityTerm, ...]


def affinity_events() -> Sequence[EventWithHint]:
    """What the plugin waits for."""
    pod_changes = ActionType.Add | ActionType.Delete | ActionType.UpdatePodLabel
    return (
        wait_for(POD, pod_changes, after_pod_change),
        wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel, after_node_change),
    )


def after_pod_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A pod on a node came to match what the pod needs, or no longer matches what it avoids."""
    before, after = typed(Pod, old), typed(Pod, new)
    if before is not None and after is not None and after.uid == pod.uid:
        return Hint.QUEUE  # its labels changed, and with them what others avoid
    if any(p is not None and not p.is_assigned_or_nominated for p in (before, after)):
        return Hint.SKIP
    return Hint.QUEUE if _pod_helps(pod, before, after) else Hint.SKIP


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


def _pod_helps(pod: Pod, before: Pod | None, after: Pod | None) -> bool:
    needed, avoided = _usable(pod.spec.required_affinity), _usable(pod.spec.required_anti_affinity)
    if after is None:
        gone = required(Pod, before)
        if _match(avoided, pod, gone):
            return True
        return _match(_usable(gone.spec.required_anti_affinity), gone, pod)
    if before is None:
        return _match(needed, pod, after)
    if _match(needed, pod, after) and not _match(needed, pod, before):
        return True
    return _match(avoided, pod, before) and not _match(avoided, pod, after)


def _match(terms: Terms, owner: Pod, pod: Pod) -> bool:
    """Whether all terms of `owner` select `pod`; without a term, no.

    Labels of namespaces are not looked up, so a namespace selector is met only by what asks for none.
    """
    return bool(terms) and all(
        term_selects(term, owner.namespace, pod, NO_STRINGS) for term in terms
    )


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
