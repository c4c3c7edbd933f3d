"""Storage builders: claims, volumes, classes and the objects of CSI drivers, for tests.

As with the other builders every object goes through the decoder, and `spec` takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..api.storage import (
    BIND_COMPLETED,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from .builders import DELETED_AT, Tree, make_kind

READ_WRITE_ONCE = ("ReadWriteOnce",)


def make_claim(
    name: str = "claim",
    *,
    namespace: str = "default",
    size: str | None = "1Gi",
    class_name: str | None = "late",
    volume: str = "",
    bound: bool | None = None,
    access_modes: Iterable[str] = READ_WRITE_ONCE,
    selected_node: str | None = None,
    owner_uid: str = "",
    phase: str = "",
    terminating: bool = False,
    annotations: Mapping[str, str] | None = None,
    spec: Tree | None = None,
) -> PersistentVolumeClaim:
    """A claim. One with a `volume` is completely bound to it unless `bound` is False."""
    notes = dict(annotations or {})
    if bound or (bound is None and volume):
        notes[BIND_COMPLETED] = "yes"
    if selected_node is not None:
        notes[SELECTED_NODE] = selected_node
    owners = [{"kind": "Pod", "name": "owner", "uid": owner_uid, "controller": True}]
    metadata = {
        "uid": f"{namespace}/{name}",
        "annotations": notes,
        "ownerReferences": owners if owner_uid else [],
        "deletionTimestamp": DELETED_AT if terminating else None,
    }
    wanted: dict[str, Any] = {"accessModes": list(access_modes), "volumeName": volume}
    if size is not None:
        wanted["resources"] = {"requests": {"storage": size}}
    if class_name is not None:
        wanted["storageClassName"] = class_name
    return make_kind(
        PersistentVolumeClaim,
        name,
        namespace=namespace,
        metadata=metadata,
        spec={**wanted, **(spec or {})},
        status={"phase": phase or ("Bound" if volume else "Pending")},
    )


def make_volume(
    name: str = "volume",
    *,
    size: str = "1Gi",
    class_name: str = "late",
    hosts: Iterable[str] = (),
    zones: Iterable[str] = (),
    affinity: Tree | None = None,
    labels: Mapping[str, str] | None = None,
    access_modes: Iterable[str] = READ_WRITE_ONCE,
    claim: PersistentVolumeClaim | None = None,
    claim_ref: Tree | None = None,
    phase: str = "",
    driver: str = "",
    terminating: bool = False,
    spec: Tree | None = None,
) -> PersistentVolume:
    """A volume, of any kind of storage unless a CSI `driver` is named; its handle is its name then.

    It can be reached from `hosts` or from `zones`, or by `affinity` (the required node selector).
    `claim` is the claim it is reserved for.
    """
    offered: dict[str, Any] = {
        "capacity": {"storage": size},
        "storageClassName": class_name,
        "accessModes": list(access_modes),
    }
    if driver:
        offered["csi"] = {"driver": driver, "volumeHandle": name}
    required = affinity or _reached("kubernetes.io/hostname", hosts)
    required = required or _reached("topology.kubernetes.io/zone", zones)
    if required:
        offered["nodeAffinity"] = {"required": required}
    if claim is not None:
        claim_ref = {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    if claim_ref is not None:
        offered["claimRef"] = claim_ref
    metadata = {
        "uid": name,
        "labels": dict(labels or {}),
        "deletionTimestamp": DELETED_AT if terminating else None,
    }
    return make_kind(
        PersistentVolume,
        name,
        metadata=metadata,
        spec={**offered, **(spec or {})},
        status={"phase": phase or ("Bound" if claim_ref and claim else "Available")},
    )


def make_storage_class(
    name: str = "late",
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    waits: bool | None = True,
    topologies: Iterable[Mapping[str, Iterable[str]]] = (),
) -> StorageClass:
    """A class, by default with WaitForFirstConsumer and without a provisioner.

    `topologies` are the allowed topologies: alternatives, each of label to values. `waits` None
    leaves the mode out.
    """
    fields: dict[str, Any] = {"provisioner": provisioner}
    if waits is not None:
        fields["volumeBindingMode"] = "WaitForFirstConsumer" if waits else "Immediate"
    allowed = [
        {"matchLabelExpressions": [{"key": k, "values": list(v)} for k, v in term.items()]}
        for term in topologies
    ]
    if allowed:
        fields["allowedTopologies"] = allowed
    return make_kind(StorageClass, name, **fields)


def make_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, migrated: Iterable[str] = ()
) -> CSINode:
    """A CSINode with drivers and their volume limits; None for a driver without a limit."""
    drivers = [
        {"name": d, "nodeID": name, **({} if n is None else {"allocatable": {"count": n}})}
        for d, n in (limits or {}).items()
    ]
    notes = {MIGRATED_PLUGINS: ",".join(migrated)}
    return make_kind(CSINode, name, metadata={"annotations": notes}, spec={"drivers": drivers})


def make_csi_driver(name: str, **spec: Any) -> CSIDriver:
    """A CSIDriver; `spec` is in Kubernetes' own form."""
    return make_kind(CSIDriver, name, spec=spec)


def make_capacity(
    name: str,
    *,
    class_name: str = "late",
    capacity: str | None = "1Gi",
    maximum: str | None = None,
    topology: Tree | None = None,
) -> CSIStorageCapacity:
    """The capacity of a class; `topology` is a label selector for nodes."""
    fields: dict[str, Any] = {
        "storageClassName": class_name,
        "capacity": capacity,
        "maximumVolumeSize": maximum,
        "nodeTopology": topology,
    }
    given = {key: value for key, value in fields.items() if value is not None}
    return make_kind(CSIStorageCapacity, name, namespace="default", **given)


def make_attachment(name: str, volume: str | None, node: str, attacher: str) -> VolumeAttachment:
    """A volume attached to a node."""
    source = {} if volume is None else {"persistentVolumeName": volume}
    spec = {"attacher": attacher, "nodeName": node, "source": source}
    return make_kind(VolumeAttachment, name, spec=spec)


def claim_volume(name: str = "claim") -> dict[str, Any]:
    """A volume of a pod that uses a claim, in Kubernetes' own form."""
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def ephemeral_volume(name: str = "scratch") -> dict[str, Any]:
    """A generic ephemeral volume of a pod, in Kubernetes' own form."""
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def _reached(label: str, values: Iterable[str]) -> dict[str, Any] | None:
    listed = list(values)
    if not listed:
        return None
    expressions = [{"key": label, "operator": "In", "values": listed}]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
