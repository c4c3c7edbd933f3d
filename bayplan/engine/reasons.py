"""Reason: why the engine leaves a pod to the reference."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Reason why the plugins have to be called one after the other for a pod: the label of the metric, and in words."""

    EXTENDERS = "extenders", "the scheduler has extenders"
    PROFILE = "profile", "the profile samples nodes, or reports every refusal of a node"
    ASSIGNED = "assigned", "the pod has a node already"
    RESIZED = "resized", "the status of the pod has resources of its own"
    NOMINATED = "nominated", "the pod does not fit on the node that it is nominated to"
    REFUSED = "refused", "PreFilter or PreScore refuses all pods of the spec"
    PRE_FILTER = "pre_filter", "PreFilter refuses the pod, or narrows its nodes"
    PINNED = "pinned", "the pod names its node, and does not fit there or needs PreFilter"
    PLACEMENT = "placement", "for a placement of a pod group, live plugins have an effect"
    NO_NODE = "no_node", "no node is feasible, and a live filter or a nominated pod took part"
    FAILED = "failed", "a plugin failed"

    def __init__(self, label: str, when: str) -> None:
        self.label = label
        """The label of the metric."""
        self.when = when
        """The reason in words."""
