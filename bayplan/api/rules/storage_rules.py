"""Storage rules: faults of persistent volumes, storage classes, and of CSI drivers, nodes and attachments.

Mirrors ValidatePersistentVolumeSpec of pkg/apis/core/validation/validation.go and
pkg/apis/storage/validation/validation.go.
"""

from __future__ import annotations

import posixpath

from ..text.name_faults import key_faults, subdomain_faults
from .field_causes import Part
from .label_rules import check_node_selector
from .resource_rules import amount_of
from .volume_rules import PERSISTENT_SOURCES, POSITIVE, check_driver, check_modes, check_source

_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTED = (
    *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi"),
    *("cinder", "cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
)
"""Sources of volumes that are mounted with options."""


def check_volume(volume: Part) -> None:
    """Check a PersistentVolume."""
    spec = volume.below("spec")
    spec.needs("accessModes")
    check_modes(spec)
    spec.needs("capacity")
    capacity, affinity = spec.get("capacity") or {}, spec.below("nodeAffinity")
    if set(capacity) != {"storage"}:
        spec.unsupported("capacity", ("storage",), capacity)
    for name, quantity in capacity.items():
        amount, where = amount_of(quantity), f"capacity[{name}]"
        if amount is not None and amount.nano < 0:
            value = -(-amount.nano // 10**9)
            spec.invalid(where, "must be a valid resource quantity", value)
        if amount is not None and amount.nano <= 0:
            spec.invalid(where, POSITIVE, str(amount))
    spec.choice("persistentVolumeReclaimPolicy", "Delete", "Recycle", "Retain")
    if affinity.has("required"):
        check_node_selector(affinity.below("required"))
    elif spec.has("nodeAffinity"):
        affinity.required("required", "must specify required node constraints")
    check_source(spec, PERSISTENT_SOURCES)
    if spec.has("local") and not spec.has("nodeAffinity"):
        spec.required("nodeAffinity", "Local volume requires node affinity")
    root = posixpath.normpath(spec.below("hostPath").get("path") or ".")
    if root in ("/", "//") and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        problem = "may not be 'recycle' for a hostPath mount of '/'"
        spec.forbidden("persistentVolumeReclaimPolicy", problem)
    spec.text("storageClassName", subdomain_faults)
    spec.choice("volumeMode", "Block", "Filesystem")
    annotations = volume.tree["metadata"].get("annotations") or {}
    if _MOUNT_OPTIONS in annotations and not any(spec.get(name) for name in _MOUNTED):
        problem = "may not specify mount options for this volume type"
        volume.forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", problem)


def check_storage_class(class_: Part) -> None:
    """Check a StorageClass."""
    if class_.needs("provisioner"):
        class_.check("provisioner", key_faults, str(class_.get("provisioner")).lower())
    if "" in (class_.get("parameters") or ()):
        class_.invalid("parameters", "field can not be empty.", "")
    class_.choice("reclaimPolicy", "Delete", "Retain")
    class_.choice("volumeBindingMode", "Immediate", "WaitForFirstConsumer")
    for term in class_.each("allowedTopologies"):
        keys: set[str] = set()
        for requirement in term.each("matchLabelExpressions"):
            requirement.needs("values")
            values: set[str] = set()
            for name, value in requirement.items("values"):
                requirement.unique(name, values, value)
            requirement.check("key", key_faults)
            requirement.unique("key", keys)


def check_csi_driver(driver: Part) -> None:
    """Check a CSIDriver."""
    spec = driver.below("spec")
    spec.choice("fsGroupPolicy", "File", "None", "ReadWriteOnceWithFSType")
    audiences: set[str] = set()
    for request in spec.each("tokenRequests"):
        audience, seconds = request.get("audience") or "", request.get("expirationSeconds")
        is_new = audience not in audiences
        request.unique("audience", audiences)
        if is_new and seconds is not None and seconds < 600:
            problem = "may not specify a duration less than 10 minutes"
            request.invalid("expirationSeconds", problem)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            spec.unsupported("volumeLifecycleModes", ("Persistent", "Ephemeral"), mode)


def check_csi_node(node: Part) -> None:
    """Check a CSINode."""
    names: set[str] = set()
    for driver in node.below("spec").each("drivers"):
        check_driver(driver, "name")
        if driver.needs("nodeID") and len(driver.get("nodeID")) > 256:
            driver.invalid("nodeID", "must be 256 characters or less")
        driver.below("allocatable").not_negative("count")
        driver.unique("name", names)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                driver.required("")
            driver.unique("", keys, key)
            driver.check("", key_faults, key)


def check_attachment(attachment: Part) -> None:
    """Check a VolumeAttachment."""
    spec = attachment.below("spec")
    check_driver(spec, "attacher")
    source = spec.below("source")
    named = source.set_of(("persistentVolumeName", "inlineVolumeSpec"))
    problem = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if not named:
        source.required("", problem)
    elif len(named) > 1:
        source.forbidden("", problem)
    elif source.get("persistentVolumeName") == "":
        problem = "must specify non empty persistentVolumeName"
        source.required("persistentVolumeName", problem)
    spec.check("nodeName", subdomain_faults)
