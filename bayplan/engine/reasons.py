"""Reason: why the engine leaves a pod to the reference."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why the plugins have to be called one after the other for a pod; the value is the label of the metric."""

    EXTENDERS = "extenders"
    """The scheduler has extenders, which are called with the nodes that plugins accept."""
    PROFILE = "profile"
    """The profile samples nodes, or reports every refusal of a node."""
    ASSIGNED = "assigned"
    """The pod has a node already."""
    RESIZED = "resized"
    """The status of the pod has resources of its own."""
    NOMINATED = "nominated"
    """The pod is nominated to a node, and was not found to fit there."""
    REFUSED = "refused"
    """A settled PreFilter or PreScore refuses all pods of the spec."""
    PRE_FILTER = "pre_filter"
    """PreFilter refuses the pod, or narrows its nodes."""
    PINNED = "pinned"
    """The pod names its node, and does not fit there or needs PreFilter."""
    PLACEMENT = "placement"
    """Within the rows of a placement, more than cached values decides, or no row is feasible."""
    NO_NODE = "no_node"
    """No node is feasible, and the values do not name the filter that refused each."""
    FAILED = "failed"
    """A plugin failed in the engine."""
