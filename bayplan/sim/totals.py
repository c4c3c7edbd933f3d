"""Totals: capacity, use and free amount of each resource on all nodes together.

A pod without tolerations could use the free amount: that of tainted and of cordoned nodes is counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..api.node import Node
from ..api.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from ..api.text.quantity import format_quantity
from .outcomes import NodeUse

PODS = "pods"
MAIN_RESOURCES = ("cpu", "memory")


class ResourceTotal(msgspec.Struct):
    """One resource on all nodes; cpu in milli, others in whole units."""

    allocatable: int = 0
    used: int = 0
    """Requested by pods on nodes."""
    free: int = 0
    """On nodes that are open to every pod."""
    tainted: int = 0
    """Free on nodes with a taint that keeps pods away."""
    cordoned: int = 0
    """Free on cordoned nodes."""

    @property
    def share(self) -> float:
        """The part in use; 0 without capacity."""
        return self.used / self.allocatable if self.allocatable else 0.0


class ClusterTotals(msgspec.Struct):
    """The resources of all nodes at one time."""

    resources: dict[str, ResourceTotal] = msgspec.field(default_factory=dict)
    """Cpu and memory first, pods last."""
    nodes: int = 0
    tainted_nodes: int = 0
    cordoned_nodes: int = 0

    def of(self, resource: str) -> ResourceTotal:
        """The total of a resource, which no node may have."""
        return self.resources.get(resource) or ResourceTotal()


class TotalsChange(msgspec.Struct, frozen=True):
    """The totals before and after."""

    before: ClusterTotals = msgspec.field(default_factory=ClusterTotals)
    after: ClusterTotals = msgspec.field(default_factory=ClusterTotals)

    @property
    def resources(self) -> list[str]:
        """The resources that nodes had or have."""
        return list(dict.fromkeys((*self.after.resources, *self.before.resources)))

    def to_list(self) -> list[dict[str, Any]]:
        """Plain data, as docs/output.md describes it."""
        return [
            {
                "resource": name,
                **{
                    field: {
                        "before": format_quantity(getattr(self.before.of(name), field), name),
                        "after": format_quantity(getattr(self.after.of(name), field), name),
                    }
                    for field in ("allocatable", "used", "free", "tainted", "cordoned")
                },
            }
            for name in self.resources
        ]


def totals_of_uses(uses: Iterable[NodeUse]) -> TotalsChange:
    """The totals of the initial nodes, and of the nodes at the end."""
    uses = list(uses)
    before = (
        (use.node, {**use.before, PODS: use.pods_before}) for use in uses if use.added_s is None
    )
    after = (
        (use.node, {**use.after, PODS: use.pods_after}) for use in uses if use.removed_s is None
    )
    return TotalsChange(_add_up(before), _add_up(after))


def is_tainted(node: Node) -> bool:
    """Whether a taint keeps pods without tolerations away from the node."""
    return any(map(keeps_away, node.taints))


def keeps_away(taint: Taint) -> bool:
    """Whether the taint keeps pods away that do not tolerate it."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE)


def _add_up(uses: Iterable[tuple[Node, Mapping[str, int]]]) -> ClusterTotals:
    found = ClusterTotals()
    sums = found.resources
    for resource in MAIN_RESOURCES:
        sums[resource] = ResourceTotal()
    for node, used in uses:
        found.nodes += 1
        where = "free"
        if node.unschedulable:
            where = "cordoned"
            found.cordoned_nodes += 1
        elif is_tainted(node):
            where = "tainted"
            found.tainted_nodes += 1
        for resource, allocatable in node.allocatable.items():
            total = sums.get(resource)
            if total is None:
                total = sums[resource] = ResourceTotal()
            amount = used.get(resource, 0)
            total.allocatable += allocatable
            total.used += amount
            setattr(total, where, getattr(total, where) + max(allocatable - amount, 0))
    if PODS in sums:
        sums[PODS] = sums.pop(PODS)
    return found
