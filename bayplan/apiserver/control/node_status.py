"""Node status: the report of a fake kubelet about its node."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

Tree = dict[str, Any]

KUBELET_VERSION = "v1.36.4"


def missing_status(tree: Mapping[str, Any], now: str) -> Tree:
    """The fields of a node's status that a kubelet sets and that the node does not have."""
    status, metadata = tree.get("status") or {}, tree["metadata"]
    missing: Tree = {}
    conditions = list(status.get("conditions") or ())
    if not any(c.get("type") == "Ready" for c in conditions):
        missing["conditions"] = [*conditions, condition("Ready", "True", "KubeletReady", now)]
    info = status.get("nodeInfo") or {}
    if not info.get("kubeletVersion"):
        given = {key: value for key, value in info.items() if value}
        missing["nodeInfo"] = {**_node_info(metadata.get("labels") or {}), **given}
    addresses = list(status.get("addresses") or ())
    if not any(a.get("type") == "InternalIP" for a in addresses):
        internal = {"type": "InternalIP", "address": make_address("10.0", metadata["name"])}
        named = any(a.get("type") == "Hostname" for a in addresses)
        host = [] if named else [{"type": "Hostname", "address": metadata["name"]}]
        missing["addresses"] = [internal, *host, *addresses]
    return missing


def condition(kind: str, status: str, reason: str, now: str) -> Tree:
    """A condition of a node."""
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"type": kind, "status": status, "reason": reason, "message": "", **times}


def _node_info(labels: Mapping[str, str]) -> Tree:
    system = labels.get("kubernetes.io/os") or "linux"
    return {
        "architecture": labels.get("kubernetes.io/arch") or "amd64",
        "bootID": "",
        "containerRuntimeVersion": "pretend://1",
        "kernelVersion": "0",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": "",
        "operatingSystem": system,
        "osImage": "Bayplan",
        "systemUUID": "",
    }


def make_address(network: str, name: str) -> str:
    """A deterministic address for `name` in `network`, the first two of its four numbers."""
    third, fourth = blake2b(name.encode(), digest_size=2).digest()
    return f"{network}.{third}.{fourth or 1}"
