"""Pool data: pools and node types as plain data, in the shape of `bayplan pools check -o json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.text.quantity import format_quantity
from .node_types import NodeType
from .pools import NodePool


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
