"""Nodes: default nodes for an empty cluster."""

from __future__ import annotations

from typing import Any

from .control.node_status import condition, missing_status

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


def make_nodes(count: int, now: str) -> list[Tree]:
    """A number of equal, ready nodes, in three zones in turn."""
    return [
        _make_node(f"node-{number}", ZONES[number % len(ZONES)], now) for number in range(count)
    ]


def _make_node(name: str, zone: str, now: str) -> Tree:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "local",
    }
    conditions = [
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
    ]
    status = {"capacity": dict(RESOURCES), "allocatable": dict(RESOURCES), "conditions": conditions}
    tree: Tree = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }
    return {**tree, "status": {**status, **missing_status(tree, now)}}
