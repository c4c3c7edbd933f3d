"""Default nodes: default nodes for an empty cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .control.kubelet_statuses import condition, missing_status

Tree = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")
RESOURCES = {
    "cpu": "8",
    "memory": "32Gi",
    "ephemeral-storage": "100Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "pods": "110",
}


@dataclass(frozen=True)
class NodeModel:
    """Properties of equal nodes: amounts as quantities, zones in turn, and labels."""

    capacity: Mapping[str, str] = field(default_factory=lambda: RESOURCES)
    allocatable: Mapping[str, str] = field(default_factory=lambda: RESOURCES)
    zones: tuple[str, ...] = ZONES
    labels: Mapping[str, str] = field(default_factory=dict)


DEFAULT_SHAPE = NodeModel()


def make_nodes(count: int, now: str, shape: NodeModel = DEFAULT_SHAPE) -> list[Tree]:
    """A number of equal, ready nodes, in the zones in turn."""
    return [
        _make_node(f"node-{number}", shape.zones[number % len(shape.zones)], now, shape)
        for number in range(count)
    ]


def _make_node(name: str, zone: str, now: str, shape: NodeModel) -> Tree:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "local",
        **shape.labels,
    }
    conditions = [
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
    ]
    amounts = {"capacity": dict(shape.capacity), "allocatable": dict(shape.allocatable)}
    status = {**amounts, "conditions": conditions}
    tree: Tree = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }
    return {**tree, "status": {**status, **missing_status(tree, now)}}
