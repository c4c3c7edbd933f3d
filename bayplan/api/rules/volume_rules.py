"""Volume rules: faults of the sources of volumes, of pods and of persistent volumes.

Mirrors validateVolumeSource and its neighbours of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults, subdomain_faults
from .claim_rules import claim_spec_causes
from .container_rules import PULL_POLICIES
from .environment_rules import FILE_FIELDS, field_path_causes, resource_path_causes
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    unsupported_value,
)
from .label_rules import annotations_causes, labels_causes, text_causes
from .resource_rules import amount_of
from .security_rules import back_step_causes, choice_causes, local_path_causes

Tree = Mapping[str, Any]

SOURCES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
"""Sources of volumes of pods, in the order in which kube-apiserver checks them."""
PERSISTENT_SOURCES = (
    *(
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "flocker",
        "nfs",
        "rbd",
    ),
    *("quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume"),
    *(
        "photonPersistentDisk",
        "portworxVolume",
        "azureDisk",
        "scaleIO",
        "local",
        "storageos",
        "csi",
    ),
)
"""Sources of persistent volumes, in that order, too."""
_ONE_SOURCE = "may not specify more than 1 volume type"
_REQUIRED = {
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "glusterfs": ("endpoints", "path"),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "configMap": ("name",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": ("volumeName",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "local": ("path",),
}
"""Fields that a source must have."""
_HOST_PATHS = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_SAME_PATH = "conflicting duplicate paths"
_KEYS = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_ISCSI = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}


def volume_causes(spec: Tree, path: str, pod_name: str, is_pod: bool) -> Iterator[Cause]:
    """Yield the faults of the volumes of a pod or template."""
    names: set[str] = set()
    volumes = spec.get("volumes") or ()
    made = {f"{pod_name}-{one.get('name')}" for one in volumes if one.get("ephemeral") is not None}
    for i, volume in enumerate(volumes):
        where, name = f"{path}.volumes[{i}]", str(volume.get("name") or "")
        found = list(source_causes(volume, SOURCES, where, is_pod))
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += text_causes(name, dns_label_faults, f"{where}.name")
        if name in names:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            names.add(name)
        yield from found
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if pod_name and claim in made:
            problem = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid_value(f"{where}.persistentVolumeClaim.claimName", claim, problem)


def source_causes(
    volume: Tree, sources: tuple[str, ...], path: str, is_pod: bool = False
) -> Iterator[Cause]:
    """Yield the faults of the one source of a volume."""
    named = [name for name in sources if volume.get(name) is not None]
    if not named:
        yield required(path, "must specify a volume type")
        return
    source, name, is_lasting = volume[named[0]], named[0], sources is PERSISTENT_SOURCES
    where = f"{path}.{'persistentDisk' if name == 'gcePersistentDisk' else name}"
    for field in _REQUIRED.get(name, ()):
        if not source.get(field):
            yield required(f"{where}.{field}")
    check = _CHECKS.get(name)
    if check is not None:
        yield from check(source, where)
    if name == "image":
        if is_pod and not source.get("reference"):
            yield required(f"{where}.reference")
        yield from choice_causes(source, "pullPolicy", PULL_POLICIES, where)
    if name == "csi":
        yield from (_lasting_csi_causes if is_lasting else _csi_causes)(source, where)
    for other in named[1:]:
        word = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(other, other)
        yield forbidden_field(f"{path}.{other if is_lasting else word}", _ONE_SOURCE)


def _empty_dir(source: Tree, path: str) -> Iterator[Cause]:
    limit = amount_of(source.get("sizeLimit"))
    if limit is not None and limit.nano < 0:
        problem = "SizeLimit field must be a valid resource quantity"
        yield forbidden_field(f"{path}.sizeLimit", problem)


def _host_path(source: Tree, path: str) -> Iterator[Cause]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from back_step_causes(source["path"], f"{path}.path")
    yield from choice_causes(source, "type", _HOST_PATHS, path)


def _local(source: Tree, path: str) -> Iterator[Cause]:
    yield from back_step_causes(source.get("path") or "", f"{path}.path")


def _git(source: Tree, path: str) -> Iterator[Cause]:
    yield from local_path_causes(source.get("directory") or "", f"{path}.directory")


def _partition(source: Tree, path: str) -> Iterator[Cause]:
    number = source.get("partition") or 0
    if not 0 <= number <= 255:
        yield invalid_value(f"{path}.partition", number, "must be between 1 and 255, inclusive")


def _nfs(source: Tree, path: str) -> Iterator[Cause]:
    found = source.get("path") or ""
    if not found.startswith("/"):
        yield invalid_value(f"{path}.path", found, "must be an absolute path")


def _iscsi(source: Tree, path: str) -> Iterator[Cause]:
    if not source.get("targetPortal"):
        yield required(f"{path}.targetPortal")
    if not source.get("iqn"):
        yield required(f"{path}.iqn")
    else:
        yield from _initiator_causes(source["iqn"], f"{path}.iqn")
    if not 0 <= (source.get("lun") or 0) <= 255:
        yield invalid_value(f"{path}.lun", source["lun"], "must be between 0 and 255, inclusive")
    is_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if is_secret and source.get("secretRef") is None:
        yield required(f"{path}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _initiator_causes(source["initiatorName"], f"{path}.initiatorname")


def _initiator_causes(name: str, path: str) -> Iterator[Cause]:
    form = _ISCSI.get(name[:3])
    if form is None:
        problem = "must be valid format starting with iqn, eui, or naa"
        yield invalid_value(path, name, problem)
    elif not form.search(name):
        yield invalid_value(path, name, "must be valid format")


def _fibre_channel(source: Tree, path: str) -> Iterator[Cause]:
    targets, ids, unit = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not targets and not ids:
        problem = "must specify either targetWWNs or wwids, but not both"
        yield required(f"{path}.targetWWNs", problem)
    if targets and ids:
        problem = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid_value(f"{path}.targetWWNs", targets, problem)
    if targets and unit is None:
        yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif targets and unit is not None and not 0 <= unit <= 255:
        yield invalid_value(f"{path}.lun", unit, "must be between 0 and 255, inclusive")


def _flocker(source: Tree, path: str) -> Iterator[Cause]:
    name, uid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    if not name and not uid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uid:
        problem = "datasetName and datasetUUID can not be specified simultaneously"
        yield invalid_value(path, "resource", problem)
    if "/" in name:
        yield invalid_value(f"{path}.datasetName", name, "must not contain '/'")


def _flex(source: Tree, path: str) -> Iterator[Cause]:
    for key in source.get("options") or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            problem = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid_value(f"{path}.options[{key}]", key, problem)


def _azure_disk(source: Tree, path: str) -> Iterator[Cause]:
    yield from choice_causes(source, "cachingMode", ("None", "ReadOnly", "ReadWrite"), path)
    yield from choice_causes(source, "kind", ("Dedicated", "Managed", "Shared"), path)
    address, kind = source.get("diskURI") or "", source.get("kind")
    managed = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
    blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        yield unsupported_value(f"{path}.diskURI", address, (managed,))
    elif kind not in (None, "Managed") and not address.startswith("https://"):
        yield unsupported_value(f"{path}.diskURI", address, (blob,))


def _mode_causes(tree: Tree, field: str, path: str) -> Iterator[Cause]:
    mode = tree.get(field)
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid_value(f"{path}.{field}", mode, _MODE_RULE)


def _files(source: Tree, path: str) -> Iterator[Cause]:
    yield from _mode_causes(source, "defaultMode", path)
    for i, item in enumerate(source.get("items") or ()):
        yield from _item_causes(item, f"{path}.items[{i}]")


def _item_causes(item: Tree, path: str) -> Iterator[Cause]:
    for field in ("key", "path"):
        if not item.get(field):
            yield required(f"{path}.{field}")
    yield from _file_path_causes(item.get("path") or "", f"{path}.path")
    yield from _mode_causes(item, "mode", path)


def _file_path_causes(text: str, path: str) -> Iterator[Cause]:
    yield from local_path_causes(text, path)
    if text.startswith("..") and not text.startswith("../"):
        yield invalid_value(path, text, "must not start with '..'")


def _downward(source: Tree, path: str) -> Iterator[Cause]:
    yield from _mode_causes(source, "defaultMode", path)
    for item in source.get("items") or ():
        yield from _downward_item_causes(item, path)


def _downward_item_causes(item: Tree, path: str) -> Iterator[Cause]:
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from _file_path_causes(item.get("path") or "", f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from field_path_causes(field, FILE_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            problem = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(path, "resource", problem)
    elif resource is not None:
        yield from resource_path_causes(resource, f"{path}.resourceFieldRef", is_file=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode_causes(item, "mode", path)


def _projected(source: Tree, path: str) -> Iterator[Cause]:
    yield from _mode_causes(source, "defaultMode", path)
    paths: set[str] = set()
    kinds = (
        "secret",
        "configMap",
        "downwardAPI",
        "serviceAccountToken",
        "clusterTrustBundle",
        "podCertificate",
    )
    for i, part in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{i}]"
        named = [kind for kind in kinds if part.get(kind) is not None]
        for kind in named:
            yield from _projection_causes(kind, part[kind], f"{where}.{kind}", path)
            for file in _projected_paths(kind, part[kind]):
                if file in paths:
                    shown = part[kind].get("name") if kind in ("secret", "configMap") else file
                    yield invalid_value(path, shown or "", _SAME_PATH)
                paths.add(file)
        if len(named) > 1:
            yield forbidden_field(where, "may not specify more than 1 volume type per source")


def _projected_paths(kind: str, part: Tree) -> list[str]:
    """The paths of files of a part of a projected volume."""
    if kind == "clusterTrustBundle":
        return [part.get("path") or ""]
    names = ("credentialBundlePath", "keyPath", "certificateChainPath")
    found = [part.get(name) for name in names] if kind == "podCertificate" else []
    found += [item.get("path") for item in part.get("items") or ()]
    return [path for path in found if path]


def _projection_causes(kind: str, part: Tree, path: str, volume: str) -> Iterator[Cause]:
    if kind in ("secret", "configMap"):
        if not part.get("name"):
            yield required(f"{path}.name")
        for i, item in enumerate(part.get("items") or ()):
            yield from _item_causes(item, f"{path}.items[{i}]")
    elif kind == "downwardAPI":
        for item in part.get("items") or ():
            yield from _downward_item_causes(item, path)
    elif kind == "serviceAccountToken":
        seconds = part.get("expirationSeconds") or 0
        if seconds < 600:
            problem = "may not specify a duration less than 10 minutes"
            yield invalid_value(f"{path}.expirationSeconds", seconds, problem)
        if seconds > 2**32:
            problem = "may not specify a duration larger than 2^32 seconds"
            yield invalid_value(f"{path}.expirationSeconds", seconds, problem)
        if not part.get("path"):
            yield required(f"{volume}.path")
        else:
            yield from _file_path_causes(part["path"], f"{volume}.path")
    elif kind == "clusterTrustBundle":
        yield from _bundle_causes(part, path)
    else:
        yield from choice_causes(part, "keyType", _KEYS, path)


def _bundle_causes(part: Tree, path: str) -> Iterator[Cause]:
    if part.get("name") is None and part.get("signerName") is None:
        yield required(path, "either name or signerName must be specified")
    if not part.get("path"):
        yield required(f"{path}.path")
    yield from _file_path_causes(part.get("path") or "", f"{path}.path")


def driver_causes(name: str, path: str) -> Iterator[Cause]:
    """Yield the faults of the name of a CSI driver."""
    if not name:
        yield required(path)
        return
    if len(name) > 63:
        yield too_long(path, 63)
    for fault in subdomain_faults(name.lower()):
        yield invalid_value(path, name, fault)


def _csi_causes(source: Tree, path: str) -> Iterator[Cause]:
    yield from driver_causes(source.get("driver") or "", f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None:
        yield from text_causes(secret["name"], subdomain_faults, f"{path}.name")


def _lasting_csi_causes(source: Tree, path: str) -> Iterator[Cause]:
    yield from driver_causes(source.get("driver") or "", f"{path}.driver")
    if not source.get("volumeHandle"):
        yield required(f"{path}.volumeHandle")
    for field in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        secret, where = source.get(f"{field}SecretRef"), f"{path}.{field}SecretRef"
        rules = (("name", subdomain_faults), ("namespace", dns_label_faults))
        for name, faults in rules if secret is not None else ():
            assert secret is not None
            if not secret.get(name):
                yield required(f"{where}.{name}")
            else:
                yield from text_causes(secret[name], faults, f"{where}.{name}")


def _ephemeral(source: Tree, path: str) -> Iterator[Cause]:
    template, path = source.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        yield required(path)
        return
    metadata = template.get("metadata") or {}
    yield from annotations_causes(metadata.get("annotations"), f"{path}.metadata.annotations")
    yield from labels_causes(metadata.get("labels"), f"{path}.metadata.labels")
    for field in metadata:
        if field not in ("annotations", "labels", "creationTimestamp"):
            yield forbidden_field(f"{path}.metadata.{field}", "cannot be set")
    yield from claim_spec_causes(template.get("spec") or {}, f"{path}.spec")


_CHECKS: dict[str, Callable[[Tree, str], Iterator[Cause]]] = {
    "awsElasticBlockStore": _partition,
    "azureDisk": _azure_disk,
    "configMap": _files,
    "downwardAPI": _downward,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "flocker": _flocker,
    "gcePersistentDisk": _partition,
    "gitRepo": _git,
    "hostPath": _host_path,
    "iscsi": _iscsi,
    "local": _local,
    "nfs": _nfs,
    "projected": _projected,
    "secret": _files,
}
