"""Volumes: remedies for claims without a reachable volume, and for volume limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...api.pod import Pod, Volume
from ...api.selectors import Requirement
from ...api.storage import BIND_COMPLETED, LOST, CSINode, PersistentVolume, PersistentVolumeClaim
from ...api.text.quantity import format_quantity
from ...api.volumes import claim_name_of
from ..manifest_changes import ObjectChange, decode, pointer
from .node import is_place, label_changes, labels_meeting
from .proposal import (
    Ask,
    Remedy,
    add,
    create,
    in_words,
    last_resort,
    leaving,
    owner_reference,
    placed_pods,
    plain,
    put,
    remedy,
    remove,
    replace,
    smallest,
)

ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
CLOUD_LIMITS = {
    "EBSLimits": "attachable-volumes-aws-ebs",
    "GCEPDLimits": "attachable-volumes-gce-pd",
    "AzureDiskLimits": "attachable-volumes-azure-disk",
    "CinderLimits": "attachable-volumes-cinder",
}
ROOM_FOR_ONE = 1


def free_volumes(ask: Ask) -> Iterator[Remedy]:
    """Remove the pods that use an exclusive volume."""
    claims = {name for _, name in _claims(ask.pod)}
    users = [
        pod
        for _, pod in placed_pods(ask.view)
        if pod.namespace == ask.pod.namespace
        and any(name in claims for _, name in _claims(pod))
        and pod.uid != ask.pod.uid
    ]
    yield leaving("free the volume that only one pod may use", users, "uses the volume")
    here = [pod for pod in ask.pods_here() if _volumes(pod)]
    yield leaving(f"free the disk on {ask.node.name}", here, "uses the disk")
    yield from _without_volumes(ask)


def raise_limits(ask: Ask) -> Iterator[Remedy]:
    """Raise the node's volume limit, or remove pods with volumes."""
    csi_node = ask.view.cluster.get("CSINode", "", ask.node.name)
    more = len(_volumes(ask.pod))
    if isinstance(csi_node, CSINode):
        changes = []
        for i, driver in enumerate(csi_node.drivers):
            count = csi_node.limits.get(driver.name)
            if count is not None:
                to = _least_limit(ask, csi_node, i, count, more)
                changes.append(_limit(csi_node, i, count, to))
        yield remedy(f"a higher volume limit on {ask.node.name}", *changes)
    users = [pod for pod in ask.pods_here() if _volumes(pod)]
    yield leaving(f"detach volumes from {ask.node.name}", users, "has volumes there")


def _least_limit(ask: Ask, csi_node: CSINode, i: int, count: int, more: int) -> int:
    """The smallest limit that is enough for a driver, if the others are not exceeded."""
    most = count + more + len(ask.view.table.pods) + 256
    others = [
        _limit(csi_node, j, known, most)
        for j, driver in enumerate(csi_node.drivers)
        if j != i and (known := csi_node.limits.get(driver.name)) is not None
    ]

    def is_enough(to: int) -> bool:
        return ask.helps([*others, _limit(csi_node, i, count, to)])

    for extra in range(1, max(more, ROOM_FOR_ONE) + 1):
        if is_enough(count + extra):
            return count + extra
    return smallest(is_enough, count, most) if is_enough(most) else most


def _limit(csi_node: CSINode, i: int, count: int, to: int) -> ObjectChange:
    path = pointer("spec", "drivers", i, "allocatable", "count")
    name = csi_node.drivers[i].name
    return replace(csi_node, path, count, to, f"{to} volumes of {name} on {csi_node.name}")


def raise_cloud_limits(ask: Ask) -> Iterator[Remedy]:
    """Raise the node's limit of cloud volumes, or remove pods with such volumes."""
    name = CLOUD_LIMITS.get(ask.refused.plugin, "")
    have = ask.node.allocatable.get(name)
    for to in ((have or 0) + n for n in (1, 2, 4, 8, 64, 256)):
        path = pointer("status", "allocatable", name)
        text = f"a limit of {to} volumes on {ask.node.name}"
        change = put(ask.node, path, None if have is None else str(have), str(to), text)
        if ask.helps([change]):
            yield remedy(text, change)
            break
    yield from raise_limits(ask)
    yield from _without_volumes(ask)


def repair_claims(ask: Ask) -> Iterator[Remedy]:
    """Make the volumes reachable from the node, provide new ones, or drop the pod's volumes."""
    classes = list(_missing_classes(ask))
    if classes:
        yield in_words(classes)
        if not ask.helps(classes):  # another claim is refused, too
            yield from _without_volumes(ask)
        return
    yield from _label_node(ask)
    yield from _more_storage(ask)
    changes = list(_bound_claims(ask))
    names = ", ".join(dict.fromkeys(name for _, name in _claims(ask.pod)))
    yield remedy(f"volumes for {names} that {ask.node.name} can reach", *changes)
    yield from _without_volumes(ask)


def _claims(pod: Pod) -> Iterator[tuple[Volume, str]]:
    for volume in pod.spec.volumes or ():
        name = claim_name_of(volume, pod.name)
        if name is not None:
            yield volume, name


def _stored_claims(ask: Ask) -> Iterator[PersistentVolumeClaim]:
    """The claims of the pod that exist."""
    for _, name in _claims(ask.pod):
        claim = ask.view.cluster.get("PersistentVolumeClaim", ask.pod.namespace, name)
        if claim is not None:
            yield claim


def _label_node(ask: Ask) -> Iterator[Remedy]:
    """Add the labels that the volumes require to the node, unless they state its location."""
    requirements: list[Requirement] = []
    for claim in _stored_claims(ask):
        volume = ask.view.cluster.get("PersistentVolume", "", claim.spec.volume_name or "")
        affinity = volume.spec.node_affinity if volume is not None else None
        if affinity is not None and affinity.required is not None:
            terms = affinity.required.usable_terms
            requirements += terms[0].expressions if terms else ()
    labels = labels_meeting(requirements, ask.node.labels)
    if labels and not any(map(is_place, labels)):
        yield in_words(label_changes(ask.node, labels))


def _more_storage(ask: Ask) -> Iterator[Remedy]:
    """Raise the driver's storage capacity in the node's topology."""
    cluster, changes = ask.view.cluster, list[ObjectChange]()
    for claim in _stored_claims(ask):
        if claim.spec.volume_name:
            continue
        for capacity in cluster.list("CSIStorageCapacity"):
            topology = capacity.node_topology
            if (
                capacity.storage_class_name == claim.storage_class_name
                and topology is not None
                and topology.matches(ask.node.labels)
                and (capacity.limit_bytes or 0) < claim.requested_bytes
            ):
                to = format_quantity(claim.requested_bytes, "storage")
                for field, value in (
                    ("maximumVolumeSize", capacity.maximum_volume_size),
                    ("capacity", capacity.capacity),
                ):
                    if value is not None or (field == "capacity" and not changes):
                        text = f"{to} of {capacity.storage_class_name} for {ask.node.name}"
                        changes.append(put(capacity, pointer(field), value, to, text))
    yield remedy(f"more free storage for {ask.node.name}", *changes)


def _missing_classes(ask: Ask) -> Iterator[ObjectChange]:
    """Create the StorageClasses that unbound claims name and the cluster lacks."""
    cluster = ask.view.cluster
    names = dict.fromkeys(
        claim.storage_class_name
        for claim in _stored_claims(ask)
        if not claim.spec.volume_name and claim.storage_class_name
    )
    provisioners = [cls.provisioner for cls in cluster.list("StorageClass")]
    for name in names:
        if cluster.get("StorageClass", "", name) is None:
            manifest = {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name, "uid": name},
                "provisioner": provisioners[0] if provisioners else "example.com/provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
            yield create(manifest, f"create StorageClass {name}")


def _bound_claims(ask: Ask) -> Iterator[ObjectChange]:
    """The changes that bind every claim to a volume that the node reaches."""
    for volume, name in _claims(ask.pod):
        claim = ask.view.cluster.get("PersistentVolumeClaim", ask.pod.namespace, name)
        if claim is None:
            yield from _new_claim(ask, volume, name)
        else:
            yield from _bound_claim(ask, volume, claim)


def _bound_claim(ask: Ask, volume: Volume, claim: PersistentVolumeClaim) -> Iterator[ObjectChange]:
    what = f"claim {claim.key}"
    if claim.is_terminating:
        path, before = pointer("metadata", "deletionTimestamp"), claim.metadata.deletion_timestamp
        yield remove(claim, path, before, f"do not delete {what}")
    if claim.status.phase == LOST:
        path = pointer("status", "phase")
        yield replace(claim, path, LOST, "Bound", f"{what} has its volume again")
    if volume.ephemeral is not None and not claim.is_made_for(ask.pod):
        path, owners = pointer("metadata", "ownerReferences"), plain(claim.owner_references)
        text = f"{what} is the one made for the pod"
        yield put(claim, path, owners or None, [owner_reference(ask.pod)], text)
    name = claim.spec.volume_name or _volume_name(ask, claim.name)
    bound = ask.view.cluster.get("PersistentVolume", "", name)
    if bound is None:
        yield create(_new_volume(ask, name, claim), f"a volume for {what} within reach of the node")
    else:
        yield from _within_reach(ask, bound)
    if not claim.spec.volume_name:
        text = f"bind {what} to volume {name}"
        yield add(claim, pointer("spec", "volumeName"), name, text)
    if BIND_COMPLETED not in claim.annotations:
        path = pointer("metadata", "annotations", BIND_COMPLETED)
        now = claim.storage_class_name
        text = f"bind {what} to volume {name}"
        if bound is not None and now != bound.storage_class_name:
            # a claim is never bound to a volume of another class, and its class cannot be changed
            wanted = f'storageClassName "{bound.storage_class_name}", which the volume has'
            text = f'{text}: create it anew with {wanted}, instead of "{now}"'
        yield add(claim, path, "yes", text)


def _within_reach(ask: Ask, volume: PersistentVolume) -> Iterator[ObjectChange]:
    """Move the volume to the node's location."""
    labels, affinity = ask.node.labels, volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if required is not None and not required.matches(labels, ask.node.name):
        yield remove(
            volume,
            pointer("spec", "nodeAffinity"),
            plain(affinity),
            f"volume {volume.name} within reach of {ask.node.name}",
        )
    for key in ZONE_LABELS:
        value = volume.labels.get(key)
        if value is not None and labels.get(key) not in value.split("__"):
            text = f"volume {volume.name} in the zone of {ask.node.name}"
            path = pointer("metadata", "labels", key)
            now = labels.get(key)
            if now is None:
                yield remove(volume, path, value, text)
            else:
                yield replace(volume, path, value, now, text)


def _volume_name(ask: Ask, claim: str) -> str:
    return f"{ask.pod.namespace}-{claim}-on-{ask.node.name}"


def _new_volume(ask: Ask, name: str, claim: PersistentVolumeClaim) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "capacity": {"storage": format_quantity(claim.requested_bytes, "storage")},
        "accessModes": list(claim.spec.access_modes or ("ReadWriteOnce",)),
        "storageClassName": claim.storage_class_name,
        "volumeMode": claim.volume_mode,
        "claimRef": {
            "kind": claim.kind,
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        },
        "local": {"path": f"/volumes/{name}"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": name},
        "spec": spec,
        "status": {"phase": "Bound"},
    }


def _new_claim(ask: Ask, volume: Volume, name: str) -> Iterator[ObjectChange]:
    """Create a missing claim and a volume for it."""
    volume_name = _volume_name(ask, name)
    size: dict[str, Any] = {"requests": {"storage": "1Gi"}}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": ask.pod.namespace,
        "uid": f"{ask.pod.namespace}-{name}",
        "annotations": {BIND_COMPLETED: "yes"},
    }
    if volume.ephemeral is not None:
        metadata["ownerReferences"] = [owner_reference(ask.pod)]
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": size,
            "volumeName": volume_name,
        },
        "status": {"phase": "Bound"},
    }
    claim = decode(manifest)
    assert isinstance(claim, PersistentVolumeClaim), "decode keeps the kind"
    yield create(_new_volume(ask, volume_name, claim), f"a volume for claim {claim.key}")
    yield create(manifest, f"create claim {claim.key}")


def _volumes(pod: Pod) -> list[Volume]:
    """The volumes that affect placement; scratch space comes after them and is left out."""
    return [volume for volume in pod.spec.volumes or () if volume.is_relevant]


def _without_volumes(ask: Ask) -> Iterator[Remedy]:
    """Drop the pod's volumes."""
    volumes = _volumes(ask.pod)
    changes = [
        remove(
            ask.pod,
            pointer("spec", "volumes", i),
            {k: v for k, v in plain(volume).items() if k != "name" or volume.ephemeral},
            "take the volume from the pod",
        )
        for i, volume in reversed(list(enumerate(volumes)))
    ]
    yield last_resort("take the volumes from the pod", *changes)
