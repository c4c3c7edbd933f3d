"""Faults of volumes, storage classes, and of CSI drivers, nodes and attachments, in the API server's words."""

from typing import Any

import pytest

from .faults import faults

VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/data"},
}
HANDLE = {"driver": "d.example.com", "volumeHandle": "h"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"accessModes": []}, ["spec.accessModes: Required value"], id="no way of access"
        ),
        pytest.param(
            {"capacity": {}},
            [
                "spec.capacity: Required value",
                'spec.capacity: Unsupported value: {}: supported values: "storage"',
            ],
            id="no capacity",
        ),
        pytest.param(
            {"capacity": {"storage": "-1"}},
            [
                "spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
                'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
            ],
            id="a negative capacity",
        ),
        pytest.param(
            {"nodeAffinity": {}},
            ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
            id="an affinity to nothing",
        ),
        pytest.param(
            {"hostPath": None, "local": {"path": "/data"}},
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
            id="a local volume anywhere",
        ),
        pytest.param(
            {"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle"},
            [
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"
            ],
            id="the root of a node that is recycled",
        ),
        pytest.param(
            {"hostPath": None, "csi": {**HANDLE, "volumeHandle": "", "nodePublishSecretRef": {}}},
            [
                "spec.csi.volumeHandle: Required value",
                "spec.csi.nodePublishSecretRef.name: Required value",
                "spec.csi.nodePublishSecretRef.namespace: Required value",
            ],
            id="no handle, and a secret without a name",
        ),
    ],
)
def test_volumes(spec: dict[str, Any], found: list[str]) -> None:
    assert faults("persistentvolumes", spec={**VOLUME, **spec}) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param({"nfs": {"server": "s", "path": "/"}}, [], id="a volume that is mounted"),
        pytest.param(
            {"csi": HANDLE},
            [
                "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount "
                "options for this volume type"
            ],
            id="a volume of a driver",
        ),
    ],
)
def test_mount_options_as_an_annotation(source: dict[str, Any], found: list[str]) -> None:
    notes = {"volume.beta.kubernetes.io/mount-options": "ro"}
    spec = {**VOLUME, "hostPath": None, **source}

    assert (
        faults("persistentvolumes", metadata={"name": "x", "annotations": notes}, spec=spec)
        == found
    )


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param({"provisioner": "d.example.com"}, [], id="valid"),
        pytest.param({}, ["provisioner: Required value"], id="no provisioner"),
        pytest.param(
            {"provisioner": "d", "parameters": {"": "x"}},
            ['parameters: Invalid value: "": field can not be empty.'],
            id="a parameter without a name",
        ),
        pytest.param(
            {"provisioner": "d", "reclaimPolicy": "Recycle", "volumeBindingMode": "Later"},
            [
                'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
                'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", '
                '"WaitForFirstConsumer"',
            ],
            id="unknown words",
        ),
    ],
)
def test_storage_classes(fields: dict[str, Any], found: list[str]) -> None:
    assert faults("storageclasses.storage.k8s.io", **fields) == found


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({"tokenRequests": [{"audience": "a"}, {"audience": "b"}]}, [], id="valid"),
        pytest.param(
            {"tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
            ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
            id="an audience twice",
        ),
        pytest.param(
            {"tokenRequests": [{"audience": "a", "expirationSeconds": 599}]},
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 "
                "minutes"
            ],
            id="a token for a moment",
        ),
        pytest.param(
            {"volumeLifecycleModes": ["Brief"]},
            [
                'spec.volumeLifecycleModes: Unsupported value: "Brief": supported values: "Persistent", "Ephemeral"'
            ],
            id="an unknown mode",
        ),
    ],
)
def test_drivers(spec: dict[str, Any], found: list[str]) -> None:
    assert faults("csidrivers.storage.k8s.io", spec=spec) == found


@pytest.mark.parametrize(
    ("drivers", "found"),
    [
        pytest.param([{"name": "d", "nodeID": "n", "topologyKeys": ["zone"]}], [], id="valid"),
        pytest.param(
            [{}],
            ["spec.drivers[0].name: Required value", "spec.drivers[0].nodeID: Required value"],
            id="nothing",
        ),
        pytest.param(
            [{"name": "d", "nodeID": "n"}, {"name": "d", "nodeID": "n"}],
            ['spec.drivers[1].name: Duplicate value: "d"'],
            id="a driver twice",
        ),
        pytest.param(
            [{"name": "d", "nodeID": "n", "allocatable": {"count": -1}}],
            [
                "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"
            ],
            id="a negative limit",
        ),
        pytest.param(
            [{"name": "d", "nodeID": "n", "topologyKeys": ["zone", "zone"]}],
            ['spec.drivers[0]: Duplicate value: "zone"'],
            id="a topology twice",
        ),
    ],
)
def test_nodes_of_drivers(drivers: list[dict[str, Any]], found: list[str]) -> None:
    assert faults("csinodes.storage.k8s.io", spec={"drivers": drivers}) == found


def test_the_identity_of_a_node_is_not_longer_than_256_characters() -> None:
    drivers = [{"name": "d", "nodeID": "n" * 257}]

    (found,) = faults("csinodes.storage.k8s.io", spec={"drivers": drivers})

    assert found.endswith(": must be 256 characters or less")


ONE_OF = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param({"persistentVolumeName": "v"}, [], id="valid"),
        pytest.param({}, [f"spec.source: Required value: {ONE_OF}"], id="nothing"),
        pytest.param(
            {"persistentVolumeName": "v", "inlineVolumeSpec": VOLUME},
            [f"spec.source: Forbidden: {ONE_OF}"],
            id="both",
        ),
        pytest.param(
            {"persistentVolumeName": ""},
            [
                "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName"
            ],
            id="an empty name",
        ),
    ],
)
def test_attachments(source: dict[str, Any], found: list[str]) -> None:
    spec = {"attacher": "d", "nodeName": "n", "source": source}

    assert faults("volumeattachments.storage.k8s.io", spec=spec) == found
