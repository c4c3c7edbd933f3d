"""Storage: sizes, classes and limits."""

from typing import Any

from bayplan.api.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.api.volumes import EphemeralVolume, PersistentVolumeClaimVolume, Volume, claim_name_of
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.kinds import KINDS

BETA_CLASS = {"volume.beta.kubernetes.io/storage-class": "old"}
GIB = 2**30


def read(kind: str, annotations: dict[str, str] | None = None, **parts: Any) -> Any:
    return decode_object(
        {
            "apiVersion": KINDS[kind].api_version,
            "kind": kind,
            "metadata": {"name": "x", "annotations": annotations},
            **parts,
        }
    )


def test_a_volume_has_no_namespace_and_has_a_size() -> None:
    volume = read(
        "PersistentVolume",
        spec={"capacity": {"storage": "10Gi"}, "csi": {"driver": "d", "volumeHandle": "h"}},
    )

    assert isinstance(volume, PersistentVolume)
    assert (volume.key, volume.namespace, volume.capacity_bytes) == ("x", "", 10 * GIB)
    assert volume.volume_mode == "Filesystem"
    assert volume.spec.csi is not None
    assert volume.spec.csi.volume_handle == "h"


def test_a_claim_requests_a_size() -> None:
    claim = read("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1Gi"}}})
    vague = read("PersistentVolumeClaim", spec={})

    assert isinstance(claim, PersistentVolumeClaim)
    assert (claim.key, claim.requested_bytes, "storage" in claim.requests) == (
        "default/x",
        GIB,
        True,
    )
    assert (vague.requested_bytes, vague.requests) == (0, {})


def test_the_beta_annotation_names_the_class() -> None:
    for kind in ("PersistentVolume", "PersistentVolumeClaim"):
        assert read(kind, spec={"storageClassName": "new"}).storage_class_name == "new"
        assert read(kind, BETA_CLASS, spec={"storageClassName": "new"}).storage_class_name == "old"
        assert read(kind, spec={}).storage_class_name == ""


def test_a_class_may_wait_for_the_pod() -> None:
    waiting = read("StorageClass", volumeBindingMode="WaitForFirstConsumer")

    assert isinstance(waiting, StorageClass)
    assert waiting.waits_for_consumer
    assert not read("StorageClass", volumeBindingMode="Immediate").waits_for_consumer


def test_limits_of_drivers() -> None:
    node = read(
        "CSINode", spec={"drivers": [{"name": "d", "nodeID": "i", "allocatable": {"count": 5}}]}
    )

    assert isinstance(node, CSINode)
    (driver,) = node.spec.drivers or ()
    assert driver.node_id == "i"
    assert driver.allocatable is not None
    assert driver.allocatable.count == 5


def test_the_largest_possible_volume() -> None:
    capacity = read("CSIStorageCapacity", capacity="2Gi", maximumVolumeSize="1Gi")

    assert isinstance(capacity, CSIStorageCapacity)
    assert capacity.limit_bytes == GIB
    assert read("CSIStorageCapacity", capacity="2Gi").limit_bytes == 2 * GIB
    assert read("CSIStorageCapacity").limit_bytes is None


def test_claim_name_of_a_volume() -> None:
    named = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="c"))

    assert claim_name_of(named, "pod") == "c"
    assert claim_name_of(Volume(name="v", ephemeral=EphemeralVolume()), "pod") == "pod-v"
    assert claim_name_of(Volume(name="v"), "pod") is None
