"""Update events: the events that the update of a pod or a node makes.

Mirrors PodSchedulingPropertiesChange and NodeSchedulingPropertiesChange of
pkg/scheduler/framework/events.go.
"""

from __future__ import annotations

from collections.abc import Callable

from ..api.meta import is_equal
from ..api.node import Node
from ..api.pod import Pod
from ..api.pod_status import PodStatus
from ..api.resources import pod_amounts
from ..api.text.quantity import nano_to_milli
from .events import (
    ASSIGNED_POD,
    ASSIGNED_POD_UPDATE,
    NODE,
    TARGET_POD,
    TARGET_POD_UPDATE,
    UNSCHEDULABLE_POD,
    UNSCHEDULABLE_POD_UPDATE,
    ActionType,
    ClusterEvent,
)


def pod_update_events(
    old: Pod, new: Pod, names_target_pods: bool = False
) -> tuple[ClusterEvent, ...]:
    """Events of the update of a pod, in order: one event per change, or a general Update.

    `names_target_pods` is a fact of the release.
    """
    waiting = TARGET_POD_EVENTS if names_target_pods else UNSCHEDULABLE_POD_EVENTS
    events, general = ASSIGNED_POD_EVENTS if new.node_name else waiting
    found: tuple[ClusterEvent, ...] = ()
    same = old.spec is new.spec and old.labels is new.labels
    if not same or _has_grants(old.status) or _has_grants(new.status):
        found = tuple(event for event, changed in events if changed(old, new))
    return found or general


def _has_grants(status: PodStatus) -> bool:
    """Whether the status has the resources that the pod was granted, or the claims that are its own."""
    return (
        status.has_resources
        or status.resource_claim_statuses is not None
        or status.extended_resource_claim_status is not None
    )


def node_update_events(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """Events of the update of a node, in order; none if it does not affect scheduling.

    The same event comes twice when a node is uncordoned and its taints change at once.
    """
    return tuple(event for event, changed in NODE_EVENTS if changed(old, new))


def _has_other_labels(old: Pod | Node, new: Pod | Node) -> bool:
    return old.labels is not new.labels and old.labels != new.labels


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    """Whether a request is gone or smaller, including the pod's allocation."""
    given = old.status.has_resources or new.status.has_resources
    if old.spec is new.spec and not given:
        return False
    before, after = (pod_amounts(pod.spec, status=pod.status) for pod in (old, new))
    return any(
        name not in after or nano_to_milli(amount) > nano_to_milli(after[name])
        for name, amount in before.items()
    )


def _has_other_claims(old: Pod, new: Pod) -> bool:
    before, after = old.status, new.status
    return not (
        is_equal(before.resource_claim_statuses, after.resource_claim_statuses)
        and is_equal(before.extended_resource_claim_status, after.extended_resource_claim_status)
    )


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.conditions}


PodChange = Callable[[Pod, Pod], bool]
NodeChange = Callable[[Node, Node], bool]

# The order of both lists is the order of the events.
POD_CHANGES: tuple[tuple[ActionType, PodChange], ...] = (
    (ActionType.UpdatePodLabel, _has_other_labels),
    (ActionType.UpdatePodScaleDown, _is_scaled_down),
    (
        ActionType.UpdatePodSchedulingGatesEliminated,
        lambda old, new: bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates,
    ),
    # Their number is enough: the API only lets tolerations be added.
    (ActionType.UpdatePodToleration, lambda old, new: len(old.tolerations) != len(new.tolerations)),
    (ActionType.UpdatePodGeneratedResourceClaim, _has_other_claims),
)
NODE_CHANGES: tuple[tuple[ActionType, NodeChange], ...] = (
    (ActionType.UpdateNodeTaint, lambda old, new: old.unschedulable and not new.unschedulable),
    (ActionType.UpdateNodeAllocatable, lambda old, new: old.allocatable != new.allocatable),
    (ActionType.UpdateNodeLabel, _has_other_labels),
    (ActionType.UpdateNodeTaint, lambda old, new: old.taints != new.taints),
    (ActionType.UpdateNodeCondition, lambda old, new: _conditions(old) != _conditions(new)),
    (ActionType.UpdateNodeAnnotation, lambda old, new: old.annotations != new.annotations),
    (
        ActionType.UpdateNodeDeclaredFeature,
        lambda old, new: old.declared_features != new.declared_features,
    ),
)


def _events_of(
    resource: str, general: ClusterEvent
) -> tuple[tuple[tuple[ClusterEvent, PodChange], ...], tuple[ClusterEvent, ...]]:
    """The event of each change to pods of one kind, and the event of any other change."""
    return tuple((ClusterEvent(resource, a), c) for a, c in POD_CHANGES), (general,)


ASSIGNED_POD_EVENTS = _events_of(ASSIGNED_POD, ASSIGNED_POD_UPDATE)
UNSCHEDULABLE_POD_EVENTS = _events_of(UNSCHEDULABLE_POD, UNSCHEDULABLE_POD_UPDATE)
TARGET_POD_EVENTS = _events_of(TARGET_POD, TARGET_POD_UPDATE)
NODE_EVENTS = tuple((ClusterEvent(NODE, action), changed) for action, changed in NODE_CHANGES)
