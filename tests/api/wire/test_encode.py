"""Encode: objects back into the shape of a manifest."""

from typing import Any

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.api.workloads import Service

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "namespace": "prod",
        "uid": "u",
        "labels": {"app": "web"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
    },
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m"}}}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "3920m", "memory": "7Gi", "pods": "110"},
    },
}


def test_a_pod_survives_a_round_trip() -> None:
    pod = decode_object(POD)

    assert isinstance(pod, Pod)
    assert to_dict(pod) == POD


def test_a_node_survives_a_round_trip() -> None:
    node = decode_object(NODE)

    assert isinstance(node, Node)
    assert to_dict(node) == NODE


def test_other_objects_survive_a_round_trip() -> None:
    tree = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"a": "b"}},
    }
    service = decode_object(tree)

    assert isinstance(service, Service)
    assert to_dict(service) == tree


def test_volumes_are_given_names_again() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    tree = {**POD, "spec": {"volumes": [{"name": "token"}, {"name": "data", **claim}]}}
    pod = decode_object(tree)

    assert isinstance(pod, Pod)
    assert to_dict(pod)["spec"] == {"volumes": [{"name": "volume-0", **claim}]}


def test_a_bare_pod_is_short() -> None:
    assert to_dict(Pod("p")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {},
        "status": {},
    }
