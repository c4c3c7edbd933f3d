"""Counterfactuals of pods with volumes that a limit, another pod, a label or a lack of storage keeps from a node."""

from typing import Any

import pytest

from bayplan.answers import find_counterfactual
from tests.answers.changed_cluster import check, make, make_view, web_pod, zone_node

STORAGE = "storage.k8s.io/v1"
DRIVER = "disk.example.com"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
LATE = make(
    "StorageClass", "late", STORAGE, provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer"
)


def claim(name: str, mode: str = "ReadWriteOnce", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"namespace": "default"}
    if "volumeName" in spec:
        metadata["annotations"] = BOUND
    fields = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, **spec}
    return make("PersistentVolumeClaim", name, metadata=metadata, spec=fields)


def volume(name: str, mode: str = "ReadWriteOnce", **spec: Any) -> dict[str, Any]:
    """A volume of the driver for the claim of its name."""
    fields = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "claimRef": {"namespace": "default", "name": name, "uid": name},
        **spec,
    }
    return make("PersistentVolume", name, spec=fields)


def user(claim: str, name: str = "p", node: str = "") -> dict[str, Any]:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return web_pod(name, node=node, volumes=volumes)


def bound(*names: str) -> list[dict[str, Any]]:
    """Claims with their volumes."""
    return [tree for name in names for tree in (claim(name, volumeName=name), volume(name))]


def limit(count: int) -> dict[str, Any]:
    driver = {"name": DRIVER, "nodeID": "n", "allocatable": {"count": count}}
    return make("CSINode", "n", STORAGE, spec={"drivers": [driver]})


RACK = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r7"]}]}
        ]
    }
}
CAPACITY = make(
    "CSIStorageCapacity",
    "here",
    STORAGE,
    metadata={"namespace": "kube-system"},
    storageClassName="late",
    nodeTopology={"matchLabels": {"kubernetes.io/hostname": "n"}},
    capacity="1Gi",
)


@pytest.mark.parametrize(
    ("manifests", "expected", "text"),
    [
        pytest.param(
            [limit(1), *bound("a", "b"), user("a", "other", "n"), user("b")],
            ["replace CSINode/n /spec/drivers/0/allocatable/count"],
            f"2 volumes of {DRIVER} on n",
            id="a limit of volumes is raised by what is missing",
        ),
        pytest.param(
            [
                claim("a", "ReadWriteOncePod", volumeName="a"),
                volume("a", "ReadWriteOncePod"),
                user("a", "other", "n"),
                user("a"),
            ],
            ["delete Pod/other "],
            "move or delete pod default/other on n (uses the volume)",
            id="a volume for one pod is freed",
        ),
        pytest.param(
            [claim("a", volumeName="a"), volume("a", nodeAffinity=RACK), user("a")],
            ["add Node/n /metadata/labels/rack"],
            "label node n with rack=r7",
            id="a label that the volume asks for is added",
        ),
        pytest.param(
            [
                LATE,
                make("CSIDriver", DRIVER, STORAGE, spec={"storageCapacity": True}),
                CAPACITY,
                claim("a", size="5Gi", storageClassName="late"),
                user("a"),
            ],
            ["replace CSIStorageCapacity/here /capacity"],
            "5Gi of late for n",
            id="storage that the driver lacks is added",
        ),
        pytest.param(
            [LATE, claim("a", storageClassName="fast"), user("a")],
            ["create StorageClass/fast "],
            "create StorageClass fast",
            id="a class that is missing is created",
        ),
    ],
)
def test_the_reported_change(
    manifests: list[dict[str, Any]], expected: list[str], text: str
) -> None:
    whole = [zone_node(), *manifests]
    view, pod = make_view(*whole)

    found = find_counterfactual(view, pod, "n")

    named = [f"{c.kind} {c.object.kind}/{c.object.name} {c.path}" for c in found.changes]
    assert named == expected
    assert [change.text for change in found.changes] == [text]
    check(found, whole, pod)
