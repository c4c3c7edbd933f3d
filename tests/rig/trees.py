"""Trees: pods and nodes as manifests, for tests that write files or send requests.

Tests that need decoded objects use `bayplan.testing.builders`, or `pod_of` and `node_of` where fields are given in
Kubernetes' own form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from bayplan.api.node import HOSTNAME, ZONE, Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object

Tree: TypeAlias = dict[str, Any]
READY = [{"type": "Ready", "status": "True"}]


def pod_tree(
    name: str = "p",
    cpu: str = "",
    *,
    memory: str = "",
    node: str = "",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Tree:
    """A pod of one container with these requests, unless `spec` has containers."""
    container: Tree = {"name": "main", "image": "app:1"}
    requests = {key: text for key, text in (("cpu", cpu), ("memory", memory)) if text}
    if requests:
        container["resources"] = {"requests": requests}
    place = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": [container], **place, **spec},
    }


def node_tree(
    name: str = "n",
    cpu: str = "4",
    *,
    memory: str = "8Gi",
    pods: str = "10",
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    extended: Mapping[str, str] | None = None,
    **spec: Any,
) -> Tree:
    """A ready node with its name as host name; `extended` are further resources."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}
    places = {HOSTNAME: name, **({ZONE: zone} if zone else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**places, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room, "conditions": READY},
    }


def pod_of(name: str = "p", cpu: str = "", **more: Any) -> Pod:
    """The pod of `pod_tree`, decoded."""
    pod = decode_object(pod_tree(name, cpu, **more))
    assert isinstance(pod, Pod), "decode keeps the kind"
    return pod


def node_of(name: str = "n", cpu: str = "4", **more: Any) -> Node:
    """The node of `node_tree`, decoded."""
    node = decode_object(node_tree(name, cpu, **more))
    assert isinstance(node, Node), "decode keeps the kind"
    return node


def numa_tree(node: str, cpu: str) -> Tree:
    """The NodeResourceTopology of a node whose pods get one of two zones, each with these cpus."""
    resources = [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": cpu}]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": [{"name": f"node-{i}", "type": "Node", "resources": resources} for i in range(2)],
    }
