"""Encode: objects back into the shape of a Kubernetes manifest.

The result has only decoded fields: those that do not affect placement are missing.
"""

from typing import Any

import msgspec

from ..custom import CustomObject, custom_tree
from ..custom_workloads import CustomWorkload
from ..meta import KubeObject
from ..node import Node
from ..pod import Pod
from ..pod_groups import PodGroup
from ..text.quantity import format_quantity


def to_dict(obj: Pod | Node | KubeObject) -> dict[str, Any]:
    """Return the object as plain dicts and lists, fit for JSON and YAML."""
    if isinstance(obj, CustomObject):
        return custom_tree(obj)
    kind = obj.manifest_kind if isinstance(obj, CustomWorkload) else obj.kind
    version = obj.wire_version if isinstance(obj, PodGroup) else obj.api_version
    head = {"apiVersion": version, "kind": kind}
    if isinstance(obj, Pod):
        return head | _pod(obj)
    if isinstance(obj, Node):
        return head | _node(obj)
    return head | plain_tree(obj)


def _pod(pod: Pod) -> dict[str, Any]:
    spec = plain_tree(pod.spec)
    if pod.node_name:
        spec = {"nodeName": pod.node_name, **spec}
    for i, volume in enumerate(spec.get("volumes", ())):
        volume.setdefault("name", f"volume-{i}")  # the shared spec has no names
    metadata = _drop_empty(
        {
            "name": pod.name,
            "generateName": pod.generate_name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
            "generation": pod.generation,
            "creationTimestamp": pod.creation_timestamp,
            "deletionTimestamp": pod.deletion_timestamp,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
            "ownerReferences": [plain_tree(owner) for owner in pod.owner_references],
        }
    )
    return {"metadata": metadata, "spec": spec, "status": plain_tree(pod.status)}


def _node(node: Node) -> dict[str, Any]:
    metadata = {
        "name": node.name,
        "uid": node.uid,
        "resourceVersion": node.resource_version,
        "creationTimestamp": node.creation_timestamp,
        "labels": dict(node.labels),
        "annotations": dict(node.annotations),
    }
    spec = {
        "unschedulable": node.unschedulable,
        "taints": [plain_tree(taint) for taint in node.taints],
    }
    status = {
        "capacity": _quantities(node.capacity),
        "allocatable": _quantities(node.allocatable),
        "conditions": [plain_tree(condition) for condition in node.conditions],
        "images": [plain_tree(image) for image in node.images],
        "declaredFeatures": list(node.declared_features),
    }
    return {
        "metadata": _drop_empty(metadata),
        "spec": _drop_empty(spec),
        "status": _drop_empty(status),
    }


def _quantities(units: dict[str, int]) -> dict[str, str]:
    return {name: format_quantity(value, name) for name, value in units.items()}


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def plain_tree(value: Any) -> dict[str, Any]:
    """Plain dicts and lists, recursively."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return plain
