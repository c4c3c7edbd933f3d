"""Nodes: default nodes for an empty cluster."""

from __future__ import annotations

from typing import Any

from .control.kubelets import make_address

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
    def condition(kind: str, status: str, reason: str) -> Tree:
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        return {"type": kind, "status": status, "reason": reason, "message": "", **times}

    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "local",
    }
    address = make_address("10.0", name)
    status = {
        "capacity": dict(RESOURCES),
        "allocatable": dict(RESOURCES),
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            condition("Ready", "True", "KubeletReady"),
        ],
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "pretend://1",
            "kernelVersion": "0",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.4",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "Bayplan",
            "systemUUID": "",
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }
