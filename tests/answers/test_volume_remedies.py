"""Counterfactuals of pods with volumes that a limit, another pod, a label or a lack of storage keeps from a node."""

from typing import Any

import pytest

from bayplan.answers import find_counterfactual
from bayplan.config.load import parse_config
from tests.answers.changed_cluster import check, make, make_view, web_pod, zone_node
from tests.rig.conformance.counterfactuals import fits

STORAGE = "storage.k8s.io/v1"
DRIVER = "disk.example.com"
CLOUD_LIMIT = "attachable-volumes-gce-pd"
OLD_CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
    "kind": "KubeSchedulerConfiguration",
}
"""Its default plugins count the disks of every cloud."""
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
LATE = make(
    "StorageClass", "late", STORAGE, provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer"
)


def claim(name: str, mode: str = "ReadWriteOnce", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"namespace": "default", **spec.pop("metadata", {})}
    status = spec.pop("status", {})
    if "volumeName" in spec:
        metadata["annotations"] = BOUND
    fields = {"accessModes": [mode], "resources": {"requests": {"storage": size}}, **spec}
    return make("PersistentVolumeClaim", name, metadata=metadata, spec=fields, status=status)


def volume(name: str, mode: str = "ReadWriteOnce", **spec: Any) -> dict[str, Any]:
    """A volume of the driver for the claim of its name."""
    labels = spec.pop("labels", {})
    fields = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "claimRef": {"namespace": "default", "name": name, "uid": name},
        **spec,
    }
    return make("PersistentVolume", name, spec=fields, metadata={"labels": labels})


def user(claim: str, name: str = "p", node: str = "") -> dict[str, Any]:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return web_pod(name, node=node, volumes=volumes)


def bound(*names: str) -> list[dict[str, Any]]:
    """Claims with their volumes."""
    return [tree for name in names for tree in (claim(name, volumeName=name), volume(name))]


def limit(count: int) -> dict[str, Any]:
    driver = {"name": DRIVER, "nodeID": "n", "allocatable": {"count": count}}
    return make("CSINode", "n", STORAGE, spec={"drivers": [driver]})


def ephemeral() -> dict[str, Any]:
    """The pod p with a claim of its own, p-v."""
    template = {"spec": claim("")["spec"]}
    return web_pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])


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
        pytest.param(
            [
                limit(1),
                *bound("a", "b", "c", "d"),
                *(user(name, f"other-{name}", "n") for name in "abc"),
                user("d"),
            ],
            ["replace CSINode/n /spec/drivers/0/allocatable/count"],
            f"4 volumes of {DRIVER} on n",
            id="a limit that was exceeded before is raised as far as necessary",
        ),
        pytest.param(
            [
                claim(
                    "a",
                    volumeName="a",
                    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]},
                ),
                volume("a"),
                user("a"),
            ],
            ["remove PersistentVolumeClaim/a /metadata/deletionTimestamp"],
            "do not delete claim default/a",
            id="a claim that is being deleted is kept",
        ),
        pytest.param(
            [claim("a", volumeName="a", status={"phase": "Lost"}), volume("a"), user("a")],
            ["replace PersistentVolumeClaim/a /status/phase"],
            "claim default/a has its volume again",
            id="a claim that lost its volume gets it back",
        ),
        pytest.param(
            [claim("p-v", volumeName="p-v"), volume("p-v"), ephemeral()],
            ["add PersistentVolumeClaim/p-v /metadata/ownerReferences"],
            "claim default/p-v is the one made for the pod",
            id="a claim of the same name becomes that of the pod",
        ),
        pytest.param(
            [
                claim("a", volumeName="a"),
                volume("a", labels={"topology.kubernetes.io/zone": "b__c"}),
                user("a"),
            ],
            ["replace PersistentVolume/a /metadata/labels/topology.kubernetes.io~1zone"],
            "volume a in the zone of n",
            id="a volume moves to the zone of the node",
        ),
        pytest.param(
            [
                claim("a", volumeName="a"),
                volume(
                    "a",
                    labels={
                        "topology.kubernetes.io/zone": "a__b",
                        "topology.kubernetes.io/region": "r",
                    },
                ),
                user("a"),
            ],
            ["remove PersistentVolume/a /metadata/labels/topology.kubernetes.io~1region"],
            "volume a in the zone of n",
            id="a volume loses a region that the node does not have",
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


def test_a_missing_claim_of_an_ephemeral_volume_is_owned_by_the_pod() -> None:
    manifests = [zone_node(), ephemeral()]
    view, pod = make_view(*manifests)

    found = find_counterfactual(view, pod, "n")

    check(found, manifests, pod)
    [made] = [change.to for change in found.changes if change.object.name == "p-v"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    assert made["metadata"]["ownerReferences"] == [owner]


def test_a_pod_that_a_missing_class_alone_does_not_hold_gives_its_volumes_up() -> None:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in "ab"]
    manifests = [
        zone_node(),
        claim("a", storageClassName="fast"),
        claim("b", volumeName="b", status={"phase": "Lost"}),
        volume("b"),
        web_pod(volumes=volumes),
    ]
    view, pod = make_view(*manifests)

    found = find_counterfactual(view, pod, "n")

    assert [change.path for change in found.changes] == ["/spec/volumes/1", "/spec/volumes/0"]
    check(found, manifests, pod)


def disks(name: str, count: int, node: str = "") -> dict[str, Any]:
    volumes = [
        {"name": f"v{i}", "gcePersistentDisk": {"pdName": f"{name}-{i}"}} for i in range(count)
    ]
    return web_pod(name, node=node, volumes=volumes)


@pytest.mark.parametrize(
    ("allowed", "used", "own", "kind", "to"),
    [
        pytest.param({CLOUD_LIMIT: "1"}, 1, 1, "replace", "2", id="by one"),
        pytest.param({CLOUD_LIMIT: "1"}, 1, 2, "replace", "3", id="by two"),
        pytest.param({CLOUD_LIMIT: "1"}, 1, 3, "replace", "5", id="by more than is missing"),
        pytest.param({}, 16, 1, "add", "64", id="a limit of its own in place of the default"),
    ],
)
def test_the_limit_of_a_cloud_is_raised(
    allowed: dict[str, str], used: int, own: int, kind: str, to: str
) -> None:
    config = parse_config(OLD_CONFIG, "config")
    manifests = [zone_node(extended=allowed), disks("other", used, "n"), disks("p", own)]
    view, pod = make_view(*manifests, config=config)

    found = find_counterfactual(view, pod, "n")

    [change] = found.changes
    assert (change.kind, change.path) == (kind, f"/status/allocatable/{CLOUD_LIMIT}")
    assert (change.to, change.text) == (to, f"a limit of {to} volumes on n")
    assert fits(config, manifests, pod, "n", [change])
    assert not fits(config, manifests, pod, "n", [])


def test_a_pod_with_more_disks_than_any_limit_that_is_tried_leaves() -> None:
    config = parse_config(OLD_CONFIG, "config")
    manifests = [zone_node(extended={CLOUD_LIMIT: "1"}), disks("other", 258, "n"), disks("p", 1)]
    view, pod = make_view(*manifests, config=config)

    found = find_counterfactual(view, pod, "n")

    text = "move or delete pod default/other on n (has volumes there)"
    assert [change.text for change in found.changes] == [text]
    assert fits(config, manifests, pod, "n", found.changes)
