"""Hints of the plugins that look at volumes."""

from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.framework import Hint, Plugin
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone
from bayplan.testing.builders import ask_plugin, make_node, make_object, make_pod

QUEUE, SKIP, NEVER = Hint.QUEUE, Hint.SKIP, None
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}
EPHEMERAL = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
SECRET = {"name": "keys", "secret": {"secretName": "keys"}}


def pod_with(*volumes: dict[str, Any], name: str = "waiting", **fields: Any) -> Any:
    return make_pod(name, spec={"volumes": list(volumes)}, **fields)


def gone(*volumes: dict[str, Any], **fields: Any) -> Any:
    """A pod that was deleted."""
    return pod_with(*volumes, name="gone", **{"node_name": "a", **fields})


def claim(name: str = "claim", namespace: str = "default") -> Any:
    return make_object("PersistentVolumeClaim", name, namespace=namespace, spec={})


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": "d", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(volume_id: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": "d", "awsElasticBlockStore": {"volumeID": volume_id, "readOnly": read_only}}


def iscsi(iqn: str, portal: str = "p", read_only: bool = False) -> dict[str, Any]:
    source = {"iqn": iqn, "targetPortal": portal, "lun": 0, "readOnly": read_only}
    return {"name": "d", "iscsi": source}


def rbd(*monitors: str, image: str = "i", pool: str = "p", read_only: bool = False) -> Any:
    source = {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}
    return {"name": "d", "rbd": source}


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param(gce("x"), gce("x"), QUEUE, id="the same disk"),
        pytest.param(gce("x"), gce("y"), SKIP, id="another disk"),
        pytest.param(gce("x", True), gce("x", True), SKIP, id="readers share a disk"),
        pytest.param(gce("x", True), gce("x"), QUEUE, id="a reader and a writer do not"),
        pytest.param(aws("x", True), aws("x", True), QUEUE, id="readers cannot share this one"),
        pytest.param(iscsi("x", "p"), iscsi("x", "q"), QUEUE, id="known by its name alone"),
        pytest.param(iscsi("x", read_only=True), iscsi("x", read_only=True), SKIP, id="read-only"),
        pytest.param(rbd("a", "b"), rbd("b", "c"), QUEUE, id="one monitor in common"),
        pytest.param(rbd("a"), rbd("b"), SKIP, id="no monitor in common"),
        pytest.param(rbd("a"), rbd("a", pool="q"), SKIP, id="another pool"),
        pytest.param(
            rbd("a", read_only=True), rbd("a", read_only=True), SKIP, id="read-only image"
        ),
        pytest.param(gce("x"), aws("x"), SKIP, id="disks of different kinds"),
        pytest.param(CLAIM, CLAIM, QUEUE, id="the same claim"),
        pytest.param(SECRET, SECRET, SKIP, id="nothing that is held"),
        pytest.param(EPHEMERAL, EPHEMERAL, SKIP, id="generated claims are never shared"),
    ],
)
def test_restrictions_after_pod_deleted(
    mine: dict[str, Any], theirs: dict[str, Any], expected: Hint
) -> None:
    plugin, pod = VolumeRestrictions(), pod_with(mine)

    assert ask_plugin(plugin, "AssignedPod/Delete", pod, gone(theirs)) is expected
    elsewhere = gone(theirs, namespace="shop")
    assert ask_plugin(plugin, "AssignedPod/Delete", pod, elsewhere) is SKIP


def test_restrictions_do_not_ask_whether_the_deleted_pod_had_a_node() -> None:
    deleted = gone(CLAIM, node_name="")

    assert ask_plugin(VolumeRestrictions(), "AssignedPod/Delete", pod_with(CLAIM), deleted) is QUEUE


@pytest.mark.parametrize(
    ("plugin", "added", "volume", "expected"),
    [
        pytest.param(VolumeRestrictions(), claim(), CLAIM, QUEUE, id="restrictions, named"),
        pytest.param(VolumeRestrictions(), claim("x"), CLAIM, SKIP, id="restrictions, other"),
        pytest.param(
            VolumeRestrictions(), claim("claim", "shop"), CLAIM, SKIP, id="restrictions, far"
        ),
        pytest.param(
            VolumeRestrictions(),
            claim("waiting-scratch"),
            EPHEMERAL,
            SKIP,
            id="restrictions, generated",
        ),
        pytest.param(NodeVolumeLimits(), claim(), CLAIM, QUEUE, id="limits, named"),
        pytest.param(
            NodeVolumeLimits(), claim("waiting-scratch"), EPHEMERAL, QUEUE, id="limits, generated"
        ),
        pytest.param(NodeVolumeLimits(), claim("x"), CLAIM, SKIP, id="limits, other"),
        pytest.param(VolumeBinding(), claim(), CLAIM, QUEUE, id="binding, named"),
        pytest.param(
            VolumeBinding(), claim("waiting-scratch"), EPHEMERAL, QUEUE, id="binding, generated"
        ),
        pytest.param(VolumeBinding(), claim("claim", "shop"), CLAIM, SKIP, id="binding, far"),
        pytest.param(VolumeZone(), claim(), CLAIM, QUEUE, id="zone, named"),
        pytest.param(VolumeZone(), claim("waiting-scratch"), EPHEMERAL, SKIP, id="zone, generated"),
        pytest.param(VolumeZone(), claim("claim", "shop"), CLAIM, SKIP, id="zone, far"),
    ],
)
def test_after_claim_added(
    plugin: Plugin, added: Any, volume: dict[str, Any], expected: Hint
) -> None:
    event = "PersistentVolumeClaim/Add"

    assert ask_plugin(plugin, event, pod_with(volume), None, added) is expected


def csi_node(annotations: dict[str, str] | None = None, **limits: int | None) -> Any:
    drivers = [
        {"name": name, "nodeID": "n", "allocatable": {} if count is None else {"count": count}}
        for name, count in limits.items()
    ]
    metadata = {"annotations": annotations or {}}
    return make_object("CSINode", "node", metadata=metadata, spec={"drivers": drivers})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({"d": 1}, {"d": 2}, QUEUE, id="a limit grew"),
        pytest.param({"d": 2}, {"d": 1}, SKIP, id="a limit shrank"),
        pytest.param({}, {"d": 1}, QUEUE, id="a driver came"),
        pytest.param({}, {"d": 0}, SKIP, id="a driver came that can attach nothing"),
        pytest.param({"d": None}, {"d": 1}, QUEUE, id="no limit counts as zero"),
        pytest.param(
            {"d": 1}, {"d": None}, SKIP, id="a limit was lifted, which upstream takes for 0"
        ),
        pytest.param({"d": 5, "e": 1}, {"d": 1, "e": 2}, QUEUE, id="one of two grew"),
    ],
)
def test_limits_after_csi_node_updated(
    old: dict[str, Any], new: dict[str, Any], expected: Hint
) -> None:
    event = "storage.k8s.io/CSINode/Update"

    assert (
        ask_plugin(NodeVolumeLimits(), event, make_pod(), csi_node(**old), csi_node(**new))
        is expected
    )


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(gone(CLAIM), QUEUE, id="with a claim"),
        pytest.param(gone(EPHEMERAL), QUEUE, id="with a generated claim"),
        pytest.param(gone(gce("x")), QUEUE, id="with a disk that a driver has taken over"),
        pytest.param(gone(aws("aws://nonsense")), QUEUE, id="with a disk that cannot be found"),
        pytest.param(gone(rbd("a")), SKIP, id="with an image that no driver has taken over"),
        pytest.param(gone(SECRET), SKIP, id="with nothing that is attached"),
        pytest.param(gone(CLAIM, node_name=""), SKIP, id="that was on no node"),
        pytest.param(gone(CLAIM, node_name="", nominated_node_name="a"), QUEUE, id="nominated"),
    ],
)
def test_limits_after_pod_deleted(deleted: Any, expected: Hint) -> None:
    assert ask_plugin(NodeVolumeLimits(), "AssignedPod/Delete", make_pod(), deleted) is expected


def attachment(attacher: str) -> Any:
    return make_object("VolumeAttachment", "v", spec={"attacher": attacher, "nodeName": "a"})


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(CLAIM, QUEUE, id="a claim of any driver"),
        pytest.param(EPHEMERAL, SKIP, id="a generated claim is not looked at"),
        pytest.param(gce("x"), QUEUE, id="a disk of that driver"),
        pytest.param(aws("vol-1"), SKIP, id="a disk of another driver"),
        pytest.param(SECRET, SKIP, id="nothing that is attached"),
    ],
)
def test_limits_after_attachment_deleted(volume: dict[str, Any], expected: Hint) -> None:
    event, detached = "storage.k8s.io/VolumeAttachment/Delete", attachment("pd.csi.storage.gke.io")

    assert ask_plugin(NodeVolumeLimits(), event, pod_with(volume), detached) is expected


def test_limits_with_a_disk_that_cannot_be_found_is_an_error() -> None:
    event, detached = "storage.k8s.io/VolumeAttachment/Delete", attachment("pd.csi.storage.gke.io")

    with pytest.raises(InputError, match="volumeID"):
        ask_plugin(NodeVolumeLimits(), event, pod_with(aws("aws://zone/disk-1")), detached)


def storage_class(mode: str | None = None, *zones: str, **fields: Any) -> Any:
    topologies = (
        [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}] if zones else []
    )
    given: dict[str, Any] = {
        "provisioner": "p",
        "volumeBindingMode": mode,
        "allowedTopologies": topologies,
    }
    return make_object("StorageClass", "fast", **given, **fields)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, storage_class(), QUEUE, id="any class that comes"),
        pytest.param(storage_class(None, "a"), storage_class(None, "b"), QUEUE, id="other zones"),
        pytest.param(storage_class(None, "a"), storage_class(None), QUEUE, id="all zones"),
        pytest.param(
            storage_class(None, "a"),
            storage_class(None, "a", allowVolumeExpansion=True),
            SKIP,
            id="the same zones",
        ),
        pytest.param(
            storage_class(None),
            make_object("StorageClass", "fast", provisioner="p"),
            SKIP,
            id="no zones, said or not",
        ),
    ],
)
def test_binding_after_class_change(old: Any, new: Any, expected: Hint) -> None:
    event = "storage.k8s.io/StorageClass/" + ("Add" if old is None else "Update")

    assert ask_plugin(VolumeBinding(), event, pod_with(CLAIM), old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, {}, QUEUE, id="any that comes"),
        pytest.param(
            {}, {"storage.alpha.kubernetes.io/migrated-plugins": "x"}, QUEUE, id="more moved"
        ),
        pytest.param({}, {"other": "x"}, SKIP, id="another annotation"),
    ],
)
def test_binding_after_csi_node_change(
    old: dict[str, str] | None, new: dict[str, str], expected: Hint
) -> None:
    event = "storage.k8s.io/CSINode/" + ("Add" if old is None else "Update")
    before = None if old is None else csi_node(old)

    assert ask_plugin(VolumeBinding(), event, make_pod(), before, csi_node(new)) is expected


@pytest.mark.parametrize(
    ("old", "new", "driver", "expected"),
    [
        pytest.param(True, False, "d", QUEUE, id="capacity does not count any more"),
        pytest.param(True, None, "d", QUEUE, id="it is not said any more"),
        pytest.param(False, True, "d", SKIP, id="it counts now"),
        pytest.param(True, True, "d", SKIP, id="it goes on counting"),
        pytest.param(None, False, "d", SKIP, id="it never counted"),
        pytest.param(True, False, "e", SKIP, id="of another driver"),
    ],
)
def test_binding_after_driver_change(
    old: bool | None, new: bool | None, driver: str, expected: Hint
) -> None:
    pod = pod_with({"name": "inline", "csi": {"driver": driver}})
    before, after = (make_object("CSIDriver", "d", spec={"storageCapacity": s}) for s in (old, new))

    assert (
        ask_plugin(VolumeBinding(), "storage.k8s.io/CSIDriver/Update", pod, before, after)
        is expected
    )
    assert ask_plugin(VolumeBinding(), "storage.k8s.io/CSIDriver/Add", pod, None, after) is NEVER


def capacity(total: str | None, largest: str | None = None) -> Any:
    fields: dict[str, Any] = {
        "storageClassName": "fast",
        "capacity": total,
        "maximumVolumeSize": largest,
    }
    return make_object("CSIStorageCapacity", "c", namespace="default", **fields)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, capacity(None), QUEUE, id="announced"),
        pytest.param(capacity("1Gi"), capacity("2Gi"), QUEUE, id="grown"),
        pytest.param(capacity("2Gi"), capacity("1Gi"), SKIP, id="shrunk"),
        pytest.param(capacity(None), capacity("1Gi"), QUEUE, id="known now"),
        pytest.param(capacity("1Gi"), capacity(None), SKIP, id="known no more"),
        pytest.param(
            capacity("1Gi", "1Gi"), capacity("9Gi", "1Gi"), SKIP, id="the size counts first"
        ),
    ],
)
def test_binding_after_capacity_change(old: Any, new: Any, expected: Hint) -> None:
    event = "storage.k8s.io/CSIStorageCapacity/" + ("Add" if old is None else "Update")

    assert ask_plugin(VolumeBinding(), event, make_pod(), old, new) is expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("WaitForFirstConsumer", QUEUE, id="leaves the choice to the scheduler"),
        pytest.param("Immediate", SKIP, id="does not"),
        pytest.param(None, SKIP, id="does not say"),
    ],
)
def test_zone_after_class_added(mode: str | None, expected: Hint) -> None:
    event, added = "storage.k8s.io/StorageClass/Add", storage_class(mode)

    assert ask_plugin(VolumeZone(), event, pod_with(CLAIM), None, added) is expected
    assert ask_plugin(VolumeZone(), "storage.k8s.io/StorageClass/Update", make_pod()) is NEVER


ZONE = "topology.kubernetes.io/zone"


def volume(labels: dict[str, str]) -> Any:
    return make_object("PersistentVolume", "v", metadata={"labels": labels}, spec={})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, {}, QUEUE, id="any that comes"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, QUEUE, id="in another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b__a"}, SKIP, id="the same zones in another order"),
        pytest.param({ZONE: "a"}, {ZONE: " a "}, SKIP, id="blanks do not count"),
        pytest.param({ZONE: "a__"}, {}, SKIP, id="an empty zone makes the label no label"),
        pytest.param(
            {ZONE: "a"}, {"topology.kubernetes.io/region": "a"}, QUEUE, id="another label"
        ),
        pytest.param({"x": "a"}, {"x": "b"}, SKIP, id="a label that is not about places"),
    ],
)
def test_zone_after_volume_change(
    old: dict[str, str] | None, new: dict[str, str], expected: Hint
) -> None:
    event = "PersistentVolume/" + ("Add" if old is None else "Update")
    before = None if old is None else volume(old)

    assert ask_plugin(VolumeZone(), event, make_pod(), before, volume(new)) is expected


@pytest.mark.parametrize(
    ("plugin", "event"),
    [
        pytest.param(VolumeRestrictions(), "PersistentVolumeClaim/Add", id="restrictions"),
        pytest.param(NodeVolumeLimits(), "storage.k8s.io/CSINode/Update", id="limits"),
        pytest.param(VolumeBinding(), "storage.k8s.io/StorageClass/Add", id="binding"),
        pytest.param(VolumeZone(), "PersistentVolume/Add", id="zone"),
    ],
)
def test_object_of_another_kind_is_an_error(plugin: Plugin, event: str) -> None:
    with pytest.raises(InputError, match="object of the event"):
        ask_plugin(plugin, event, make_pod(), None, make_node())
