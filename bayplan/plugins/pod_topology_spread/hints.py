"""Queueing hints: events after which a pod refused for its spread may fit.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/podtopologyspread/plugin.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...api.node import Node
from ...api.pod import Pod
from ...framework.events import (
    NODE,
    POD,
    ActionType,
    EventWithHint,
    required,
    wait_for,
)
from .constraints import Constraint

POD_CHANGES = (
    ActionType.Add | ActionType.Delete | ActionType.UpdatePodLabel | ActionType.UpdatePodToleration
)
NODE_CHANGES = (
    ActionType.Add | ActionType.Delete | ActionType.UpdateNodeLabel | ActionType.UpdateNodeTaint
)

ConstraintsOf = Callable[[Pod], tuple[Constraint, ...]]
"""The DoNotSchedule constraints of a pod; raises if they are invalid."""


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
