"""Clipping: a clipped object keeps exactly the fields that affect placement."""

import json
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.placement_fields import clipped_tree

SECRET = "hunter2"

POD_SPEC: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "priority": 3,
    "serviceAccountName": SECRET,
    "imagePullSecrets": [{"name": SECRET}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": [SECRET]}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "containers": [
        {
            "name": "main",
            "image": "app:1",
            "command": ["run", SECRET],
            "args": [SECRET],
            "env": [{"name": "PASSWORD", "value": SECRET}],
            "envFrom": [{"secretRef": {"name": SECRET}}],
            "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
            "livenessProbe": {"httpGet": {"path": f"/?token={SECRET}"}},
            "volumeMounts": [{"name": "v", "mountPath": SECRET}],
            "workingDir": SECRET,
            "resources": {"requests": {"cpu": "1500m"}, "limits": {"memory": "1Gi"}},
            "ports": [{"containerPort": 80, "hostPort": 8080}],
        }
    ],
    "initContainers": [{"name": "init", "image": "init:1", "args": [SECRET]}],
    "ephemeralContainers": [{"name": "debug", "command": [SECRET]}],
    "volumes": [
        {"name": "s", "secret": {"secretName": SECRET}},
        {"name": "c", "configMap": {"name": SECRET}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "i", "csi": {"driver": "x", "volumeAttributes": {"key": SECRET}}},
        {"name": "f", "flexVolume": {"driver": "x", "options": {"key": SECRET}}},
    ],
}
META: dict[str, Any] = {
    "name": "a",
    "uid": "u-1",
    "labels": {"app": "web"},
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        "example.com/token": SECRET,
        "volume.kubernetes.io/selected-node": "node-1",
    },
    "managedFields": [{"manager": SECRET}],
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}, "annotations": {"x": SECRET}}, "spec": POD_SPEC}

OBJECTS: list[Any] = [
    pytest.param(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": META,
            "spec": {**POD_SPEC, "nodeName": "node-1"},
            "status": {
                "phase": "Running",
                "message": SECRET,
                "podIP": SECRET,
                "conditions": [{"type": "Ready", "status": "True", "message": SECRET}],
                "containerStatuses": [{"name": "main", "state": {"waiting": {"message": SECRET}}}],
            },
        },
        id="pod",
    ),
    pytest.param(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": META,
            "spec": {
                "podCIDR": SECRET,
                "providerID": SECRET,
                "taints": [{"key": "a", "effect": "NoSchedule"}],
            },
            "status": {
                "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "allocatable": {"cpu": "3920m", "memory": "15Gi", "pods": "110"},
                "addresses": [{"type": "InternalIP", "address": SECRET}],
                "nodeInfo": {"machineID": SECRET},
                "conditions": [{"type": "Ready", "status": "True", "message": SECRET}],
                "images": [{"names": ["app:1"], "sizeBytes": 5}],
            },
        },
        id="node",
    ),
    pytest.param(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": META,
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": TEMPLATE,
            },
        },
        id="replica set with a template",
    ),
    pytest.param(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": META,
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": TEMPLATE,
                "volumeClaimTemplates": [
                    {"metadata": {"name": "d", "annotations": {"x": SECRET}}, "spec": {}}
                ],
            },
        },
        id="stateful set with a claim template",
    ),
    pytest.param(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": META,
            "provisioner": "csi.example.com",
            "parameters": {"restuserkey": SECRET},
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        id="storage class",
    ),
    pytest.param(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": META,
            "spec": {
                "capacity": {"storage": "1Gi"},
                "csi": {
                    "driver": "x",
                    "volumeHandle": "h",
                    "volumeAttributes": {"key": SECRET},
                    "nodeStageSecretRef": {"name": SECRET},
                },
                "mountOptions": [f"password={SECRET}"],
            },
        },
        id="volume",
    ),
    pytest.param(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": META,
            "spec": {
                "devices": {
                    "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}],
                    "config": [{"opaque": {"driver": "x", "parameters": {"key": SECRET}}}],
                }
            },
            "status": {
                "devices": [
                    {
                        "driver": "x",
                        "data": {"key": SECRET},
                        "networkData": {"interfaceName": SECRET},
                        "conditions": [{"type": "Ready", "status": "True", "message": SECRET}],
                    }
                ]
            },
        },
        id="claim of devices",
    ),
    pytest.param(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": META,
            "spec": {"selector": {"app": "web"}, "externalName": SECRET, "clusterIP": SECRET},
        },
        id="service",
    ),
]


@pytest.mark.parametrize("tree", OBJECTS)
def test_secrets_are_removed(tree: dict[str, Any]) -> None:
    clipped = clipped_tree(decode_object(tree))  # type: ignore[arg-type]

    assert SECRET not in json.dumps(clipped)
    assert clipped["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "node-1"}


@pytest.mark.parametrize("tree", OBJECTS)
def test_a_clipped_object_decodes_to_the_same_object(tree: dict[str, Any]) -> None:
    first = clipped_tree(decode_object(tree))  # type: ignore[arg-type]
    read = decode_object(first)

    assert clipped_tree(read) == first  # type: ignore[arg-type]


def test_annotations_can_be_requested() -> None:
    tree = {"apiVersion": "v1", "kind": "Node", "metadata": META}

    clipped = clipped_tree(decode_object(tree), {"example.com/token"})  # type: ignore[arg-type]

    assert clipped["metadata"]["annotations"] == {"example.com/token": SECRET}


def test_pod_requests_are_kept() -> None:
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": POD_SPEC}

    spec = clipped_tree(decode_object(tree))["spec"]  # type: ignore[arg-type]

    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1500m"}
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 8080}]
    assert [sorted(volume) for volume in spec["volumes"]] == [
        ["name", "persistentVolumeClaim"],
        ["csi", "name"],
    ]
