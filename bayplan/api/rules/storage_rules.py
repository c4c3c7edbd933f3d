"""Storage rules: faults of persistent volumes, storage classes, and of CSI drivers, nodes and attachments.

Mirrors ValidatePersistentVolumeSpec of pkg/apis/core/validation/validation.go and
pkg/apis/storage/validation/validation.go.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import key_faults, subdomain_faults
from .claim_rules import POSITIVE, mode_causes
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from .label_rules import (
    name_causes_of,
    node_selector_causes,
    text_causes,
    topology_causes,
)
from .resource_rules import amount_of
from .security_rules import choice_causes
from .volume_rules import PERSISTENT_SOURCES, driver_causes, source_causes
from .workload_rules import least_causes

Tree = Mapping[str, Any]

_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTED = (
    *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi"),
    *("cinder", "cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
)
"""Sources of volumes that are mounted with options."""


def volume_object_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a PersistentVolume."""
    spec = tree.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from mode_causes(spec, "spec")
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield unsupported_value("spec.capacity", capacity, ("storage",))
    for name, quantity in capacity.items():
        amount, where = amount_of(quantity), f"spec.capacity[{name}]"
        if amount is not None and amount.nano < 0:
            value = -(-amount.nano // 10**9)
            yield invalid_value(where, value, "must be a valid resource quantity")
        if amount is not None and amount.nano <= 0:
            yield invalid_value(where, str(amount), POSITIVE)
    policies = ("Delete", "Recycle", "Retain")
    yield from choice_causes(spec, "persistentVolumeReclaimPolicy", policies, "spec")
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is None:
        problem = "must specify required node constraints"
        yield required("spec.nodeAffinity.required", problem)
    elif affinity is not None:
        yield from node_selector_causes(affinity["required"], "spec.nodeAffinity.required")
    yield from source_causes(spec, PERSISTENT_SOURCES, "spec")
    if spec.get("local") is not None and affinity is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    root = posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".")
    if root in ("/", "//") and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        problem = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_field("spec.persistentVolumeReclaimPolicy", problem)
    yield from name_causes_of(spec, "storageClassName", subdomain_faults, "spec")
    yield from choice_causes(spec, "volumeMode", ("Block", "Filesystem"), "spec")
    yield from _option_causes(tree, spec)


def _option_causes(tree: Tree, spec: Tree) -> Iterator[Cause]:
    """Yield the annotation with mount options of a volume that is not mounted with options."""
    annotations = tree["metadata"].get("annotations") or {}
    if _MOUNT_OPTIONS in annotations and not any(spec.get(name) for name in _MOUNTED):
        problem = "may not specify mount options for this volume type"
        yield forbidden_field(f"metadata.annotations.{_MOUNT_OPTIONS}", problem)


def storage_class_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a StorageClass."""
    name = str(tree.get("provisioner") or "")
    if not name:
        yield required("provisioner")
    else:
        yield from text_causes(name.lower(), key_faults, "provisioner")
    for key in tree.get("parameters") or ():
        if not key:
            yield invalid_value("parameters", key, "field can not be empty.")
    for field, words in (
        ("reclaimPolicy", ("Delete", "Retain")),
        ("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    ):
        if tree.get(field) is not None and tree[field] not in words:
            yield unsupported_value(field, str(tree[field]), words)
    for i, term in enumerate(tree.get("allowedTopologies") or ()):
        yield from topology_causes(term, f"allowedTopologies[{i}]")


def csi_driver_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a CSIDriver."""
    spec = tree.get("spec") or {}
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    yield from choice_causes(spec, "fsGroupPolicy", policies, "spec")
    audiences: set[str] = set()
    for i, request in enumerate(spec.get("tokenRequests") or ()):
        path, seconds = f"spec.tokenRequests[{i}]", request.get("expirationSeconds")
        audience = request.get("audience") or ""
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        if seconds is not None and seconds < 600:
            problem = "may not specify a duration less than 10 minutes"
            yield invalid_value(f"{path}.expirationSeconds", seconds, problem)
    for mode in spec.get("volumeLifecycleModes") or ():
        modes = ("Persistent", "Ephemeral")
        if mode not in modes:
            yield unsupported_value("spec.volumeLifecycleModes", mode, modes)


def csi_node_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a CSINode."""
    names: set[str] = set()
    for i, driver in enumerate((tree.get("spec") or {}).get("drivers") or ()):
        path, name = f"spec.drivers[{i}]", driver.get("name") or ""
        yield from driver_causes(name, f"{path}.name")
        identity = driver.get("nodeID") or ""
        if not identity:
            yield required(f"{path}.nodeID")
        elif len(identity) > 256:
            yield invalid_value(f"{path}.nodeID", identity, "must be 256 characters or less")
        yield from least_causes(driver.get("allocatable") or {}, ("count",), f"{path}.allocatable")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        keys = driver.get("topologyKeys") or ()
        for j, key in enumerate(keys):
            if not key:
                yield required(path)
            if key in keys[:j]:
                yield duplicate(path, key)
            yield from text_causes(key, key_faults, path)


def attachment_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a VolumeAttachment."""
    spec = tree.get("spec") or {}
    yield from driver_causes(spec.get("attacher") or "", "spec.attacher")
    source = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    problem = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        yield required("spec.source", problem)
    elif name is not None and inline is not None:
        yield forbidden_field("spec.source", problem)
    elif name == "":
        problem = "must specify non empty persistentVolumeName"
        yield required("spec.source.persistentVolumeName", problem)
    yield from text_causes(spec.get("nodeName") or "", subdomain_faults, "spec.nodeName")
