"""Pools: node types that are used together, the limits on the number of nodes, and the rules for their removal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..api.text.quantity import format_quantity
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
class NodeBudget:
    """Number of nodes of a pool that may be removed at a time, or a share in percent."""

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
class NodePool:
    """Some node types with common limits."""

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


def pool_entry(pool: NodePool) -> dict[str, Any]:
    """One pool and its types."""
    return {
        "name": pool.name,
        "minimum": pool.minimum,
        "maximum": pool.maximum,
        "currentNodes": pool.current_nodes,
        "limits": amounts_entry(pool.limits),
        "weight": pool.weight,
        "consolidationPolicy": pool.consolidation_policy,
        "consolidateAfterSeconds": pool.consolidate_after_s,
        "expireAfterSeconds": pool.expire_after_s,
        "budgets": [
            {
                "nodes": budget.nodes,
                "reasons": list(budget.reasons),
                "schedule": budget.schedule or None,
                "durationSeconds": budget.duration_s,
            }
            for budget in pool.budgets
        ],
        "autoscalingOptions": dict(pool.group_options),
        "types": [type_entry(one) for one in pool.types],
    }


def type_entry(one: NodeType) -> dict[str, Any]:
    """One type of nodes."""
    return {
        "name": one.name,
        "capacity": amounts_entry(one.capacity),
        "allocatable": amounts_entry(one.allocatable),
        "labels": dict(one.labels),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in one.taints
        ],
        "zones": [zone for zone in one.zones if zone],
        "price": one.price,
        "spot": one.is_spot,
        "bootSeconds": one.boot_s,
        "interruptionRate": one.interruption_rate,
        "devices": sum(len(spec.devices or ()) for spec in one.slices),
        "csiLimits": dict(one.csi_limits),
    }


def amounts_entry(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as quantities."""
    return {name: format_quantity(amount, name) for name, amount in amounts.items()}
