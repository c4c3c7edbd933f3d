"""Pools: node types that are used together, the limits on the number of nodes, and the rules for their removal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..sim.plain_part import PlainPart
from .node_types import NodeType

WHEN_EMPTY, WHEN_UNDERUTILIZED = "WhenEmpty", "WhenEmptyOrUnderutilized"
BALANCED = "Balanced"
CONSOLIDATION_POLICIES = (WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED)
GROUP_OPTIONS = {
    "scaledownutilizationthreshold": "share",
    "scaledowngpuutilizationthreshold": "share",
    "scaledownunneededtime": "duration",
    "scaledownunreadytime": "duration",
    "ignoredaemonsetsutilization": "boolean",
}
"""Options of a group, as tags of an Auto Scaling group name them after `.../autoscaling-options/`."""
REASONS = ("Underutilized", "Empty", "Drifted")


@dataclass(frozen=True, slots=True)
class NodeBudget(PlainPart):
    """Number of nodes of a pool that may be removed at a time, or a share in percent."""

    PLAIN = "nodes reasons schedule? durationSeconds=duration_s"

    nodes: str = "10%"
    reasons: tuple[str, ...] = ()
    """The reasons of disruptions that it limits; empty if it limits all."""
    schedule: str = ""
    """The begin in the notation of cron; empty if it always applies."""
    duration_s: float | None = None

    def allowed(self, node_count: int) -> int:
        """The number for `node_count` nodes; a share is rounded up, as Karpenter does."""
        if self.nodes.endswith("%"):
            return math.ceil(node_count * int(self.nodes[:-1]) / 100)
        return int(self.nodes)


DEFAULT_BUDGETS = (NodeBudget(),)


@dataclass(frozen=True, eq=False)
class NodePool(PlainPart):
    """Some node types with common limits."""

    PLAIN = (
        "name minimum maximum currentNodes limits# weight consolidationPolicy"
        " consolidateAfterSeconds=consolidate_after_s expireAfterSeconds=expire_after_s budgets"
        " autoscalingOptions=group_options types"
    )

    name: str
    types: tuple[NodeType, ...]
    minimum: int = 0
    maximum: int | None = None
    """The number of nodes; None if it is not limited."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits on the capacities of all nodes together, by resource."""
    weight: int = 0
    """Autoscalers try pools with a higher weight first."""
    budgets: tuple[NodeBudget, ...] = DEFAULT_BUDGETS
    consolidation_policy: str = WHEN_UNDERUTILIZED
    consolidate_after_s: float | None = 0.0
    """Seconds without a change of its pods after which a node is removed; None if it is not removed."""
    expire_after_s: float | None = None
    """The age at which a node is replaced; None if it is not replaced."""
    group_options: Mapping[str, float] = field(default_factory=dict)
    """Options of Cluster Autoscaler for this group in place of its flags, by the names of `GROUP_OPTIONS`."""
    current_nodes: int | None = None
    """Number of nodes that it has now, if that is known."""
    place: str = ""
    """Its origin, as the beginning of an error."""
    notes: tuple[str, ...] = ()
    """Parts of its document that are not modelled."""

    def fits_limits(self, use: Mapping[str, int], more: NodeType) -> bool:
        """Whether a node of a type may be added to nodes with the capacity `use` together."""
        return all(
            use.get(name, 0) + more.capacity.get(name, 0) <= limit
            for name, limit in self.limits.items()
        )
