"""Volume rules: faults of the sources of volumes, of pods and of persistent volumes, and of the specs of claims.

Mirrors validateVolumeSource and its neighbours of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..text.name_faults import dns_label_faults, subdomain_faults
from .container_rules import PULL_POLICIES
from .environment_rules import FILE_FIELDS, check_field_path, check_resource_path
from .field_causes import Part, Tree
from .label_rules import check_annotations, check_labels, check_selector
from .resource_rules import amount_of
from .security_rules import back_step_faults, local_path_faults, token_time_faults

SOURCES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
"""Sources of volumes of pods, in the order in which kube-apiserver checks them."""
PERSISTENT_SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs"),
    *("rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local"),
    *("storageos", "csi"),
)
"""Sources of persistent volumes, in that order, too."""
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
_MODES = (0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
_UNITS = (0, 255, "must be between 0 and 255, inclusive")
_PROJECTIONS = (
    *("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle"),
    "podCertificate",
)
_KEYS = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_ISCSI = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
POSITIVE = "must be greater than zero"


def check_volumes(spec: Part, pod_name: str, is_pod: bool) -> None:
    """Check the volumes of a pod or template."""
    names: set[str] = set()
    volumes = spec.get("volumes") or ()
    made = {f"{pod_name}-{one.get('name')}" for one in volumes if one.get("ephemeral") is not None}
    for volume in spec.each("volumes"):
        before, name = len(spec.causes), str(volume.get("name") or "")
        check_source(volume, SOURCES, is_pod)
        volume.needs_text("name", dns_label_faults)
        if name in names:
            volume.duplicate("name", name)
        if len(spec.causes) == before:
            names.add(name)
        claim = volume.below("persistentVolumeClaim").get("claimName")
        if pod_name and claim in made:
            problem = "must not reference a PVC that gets created for an ephemeral volume"
            volume.invalid("persistentVolumeClaim.claimName", problem, claim)


def check_source(volume: Part, sources: Sequence[str], is_pod: bool = False) -> None:
    """Check the one source of a volume."""
    named, is_lasting = volume.set_of(sources), sources is PERSISTENT_SOURCES
    if not named:
        volume.required("", "must specify a volume type")
        return
    name = named[0]
    shown = "persistentDisk" if name == "gcePersistentDisk" else name
    source = volume.below(shown, volume.get(name))
    source.needs(*_REQUIRED.get(name, ()))
    check = _CHECKS.get(name)
    if check is not None:
        check(source)
    if name == "image":
        if is_pod:
            source.needs("reference")
        source.choice("pullPolicy", *PULL_POLICIES)
    if name == "csi":
        (_check_lasting_csi if is_lasting else _check_csi)(source)
    for other in named[1:]:
        word = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(other, other)
        volume.forbidden(other if is_lasting else word, "may not specify more than 1 volume type")


def _empty_dir(source: Part) -> None:
    limit = amount_of(source.get("sizeLimit"))
    if limit is not None and limit.nano < 0:
        source.forbidden("sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Part) -> None:
    if source.needs("path"):
        source.check("path", back_step_faults)
        source.choice("type", *_HOST_PATHS)


def _partition(source: Part) -> None:
    source.limit("partition", 0, 255, "must be between 1 and 255, inclusive")


def _nfs(source: Part) -> None:
    found = source.get("path") or ""
    if not found.startswith("/"):
        source.invalid("path", "must be an absolute path", found)


def _iscsi(source: Part) -> None:
    source.needs("targetPortal")
    source.needs_text("iqn", _initiator_faults)
    source.limit("lun", *_UNITS)
    is_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if is_secret and not source.has("secretRef"):
        source.required("secretRef")
    if source.has("initiatorName"):
        source.check("initiatorname", _initiator_faults, source.get("initiatorName"))


def _initiator_faults(name: str) -> tuple[str, ...]:
    form = _ISCSI.get(name[:3])
    if form is None:
        return ("must be valid format starting with iqn, eui, or naa",)
    return () if form.search(name) else ("must be valid format",)


def _fibre_channel(source: Part) -> None:
    targets, ids = source.get("targetWWNs"), source.get("wwids")
    if not targets and not ids:
        problem = "must specify either targetWWNs or wwids, but not both"
        source.required("targetWWNs", problem)
    if targets and ids:
        problem = "targetWWNs and wwids can not be specified simultaneously"
        source.invalid("targetWWNs", problem)
    if targets and not source.has("lun"):
        source.required("lun", "lun is required if targetWWNs is specified")
    elif targets:
        source.limit("lun", *_UNITS)


def _flocker(source: Part) -> None:
    name, uid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    if not name and not uid:
        source.required("", "one of datasetName and datasetUUID is required")
    if name and uid:
        problem = "datasetName and datasetUUID can not be specified simultaneously"
        source.invalid("", problem, "resource")
    if "/" in name:
        source.invalid("datasetName", "must not contain '/'")


def _flex(source: Part) -> None:
    for key in source.get("options") or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            problem = "kubernetes.io and k8s.io namespaces are reserved"
            source.invalid(f"options[{key}]", problem, key)


def _azure_disk(source: Part) -> None:
    source.choice("cachingMode", "None", "ReadOnly", "ReadWrite")
    source.choice("kind", "Dedicated", "Managed", "Shared")
    address, kind = source.get("diskURI") or "", source.get("kind")
    managed = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
    blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        source.unsupported("diskURI", (managed,), address)
    elif kind not in (None, "Managed") and not address.startswith("https://"):
        source.unsupported("diskURI", (blob,), address)


def _files(source: Part) -> None:
    source.limit("defaultMode", *_MODES)
    _check_items(source)


def _check_items(source: Part) -> None:
    for item in source.each("items"):
        item.needs("key", "path")
        item.check("path", _file_path_faults)
        item.limit("mode", *_MODES)


def _file_path_faults(text: str) -> tuple[str, ...]:
    starts = text.startswith("..") and not text.startswith("../")
    return (*local_path_faults(text), *(("must not start with '..'",) if starts else ()))


def _downward(source: Part) -> None:
    source.limit("defaultMode", *_MODES)
    _check_downward_items(source)


def _check_downward_items(source: Part) -> None:
    """Check the items of a downward API; kube-apiserver leaves their numbers out of the paths."""
    for tree in source.get("items") or ():
        item = Part(tree, source.path, source.causes)
        item.needs("path")
        item.check("path", _file_path_faults)
        if item.has("fieldRef"):
            check_field_path(item.below("fieldRef"), FILE_FIELDS)
            if item.has("resourceFieldRef"):
                problem = "fieldRef and resourceFieldRef can not be specified simultaneously"
                item.invalid("", problem, "resource")
        elif item.has("resourceFieldRef"):
            check_resource_path(item.below("resourceFieldRef"), is_file=True)
        else:
            item.required("", "one of fieldRef and resourceFieldRef is required")
        item.limit("mode", *_MODES)


def _projected(source: Part) -> None:
    source.limit("defaultMode", *_MODES)
    paths: set[str] = set()
    for part in source.each("sources"):
        named = part.set_of(_PROJECTIONS)
        for kind in named:
            projection = part.below(kind)
            _check_projection(kind, projection, source)
            for file in _projected_paths(kind, projection.tree):
                if file in paths:
                    shown = projection.get("name") if kind in ("secret", "configMap") else file
                    source.invalid("", "conflicting duplicate paths", shown or "")
                paths.add(file)
        if len(named) > 1:
            part.forbidden("", "may not specify more than 1 volume type per source")


def _projected_paths(kind: str, part: Tree) -> list[str]:
    """The paths of files of a part of a projected volume."""
    if kind == "clusterTrustBundle":
        return [part.get("path") or ""]
    names = ("credentialBundlePath", "keyPath", "certificateChainPath")
    found = [part.get(name) for name in names] if kind == "podCertificate" else []
    found += [item.get("path") for item in part.get("items") or ()]
    return [path for path in found if path]


def _check_projection(kind: str, part: Part, volume: Part) -> None:
    if kind in ("secret", "configMap"):
        part.needs("name")
        _check_items(part)
    elif kind == "downwardAPI":
        _check_downward_items(part)
    elif kind == "serviceAccountToken":
        seconds = part.get("expirationSeconds") or 0
        part.check("expirationSeconds", token_time_faults, seconds)
        file = Part(part.tree, volume.path, volume.causes)  # the path of its file is the volume's
        file.needs_text("path", _file_path_faults)
    elif kind == "clusterTrustBundle":
        if not part.set_of(("name", "signerName")):
            part.required("", "either name or signerName must be specified")
        part.needs("path")
        part.check("path", _file_path_faults)
    else:
        part.choice("keyType", *_KEYS)


def check_driver(part: Part, field: str) -> None:
    """Check the name of a CSI driver."""
    name = part.get(field) or ""
    if not part.needs(field):
        return
    if len(name) > 63:
        part.too_long(field, 63)
    part.check(field, lambda name: subdomain_faults(name.lower()))


def _check_csi(source: Part) -> None:
    check_driver(source, "driver")
    secret = source.below("nodePublishSecretRef")
    if source.has("nodePublishSecretRef") and secret.needs("name"):
        source.check("name", subdomain_faults, secret.get("name"))


def _check_lasting_csi(source: Part) -> None:
    check_driver(source, "driver")
    source.needs("volumeHandle")
    for field in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        if source.has(f"{field}SecretRef"):
            secret = source.below(f"{field}SecretRef")
            secret.needs_text("name", subdomain_faults)
            secret.needs_text("namespace", dns_label_faults)


def _ephemeral(source: Part) -> None:
    template = source.below("volumeClaimTemplate")
    if not source.has("volumeClaimTemplate"):
        template.required("")
        return
    metadata = template.below("metadata")
    check_annotations(metadata, "annotations")
    check_labels(metadata, "labels")
    for field in metadata.tree:
        if field not in ("annotations", "labels", "creationTimestamp"):
            metadata.forbidden(field, "cannot be set")
    check_claim_spec(template.below("spec"))


_CHECKS: dict[str, Callable[[Part], None]] = {
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
    "gitRepo": lambda source: source.check("directory", local_path_faults),
    "hostPath": _host_path,
    "iscsi": _iscsi,
    "local": lambda source: source.check("path", back_step_faults),
    "nfs": _nfs,
    "projected": _projected,
    "secret": _files,
}


def check_claim_spec(spec: Part) -> None:
    """Check the spec of a claim, or of a template of claims."""
    spec.needs("accessModes", problem="at least 1 access mode is required")
    check_selector(spec.below("selector"))
    check_modes(spec)
    size = (spec.below("resources").get("requests") or {}).get("storage")
    amount = amount_of(size)
    if size is None:
        spec.required("resources[storage]")
    elif amount is not None and amount.nano <= 0:
        spec.invalid("resources[storage]", POSITIVE, str(amount))
    spec.text("storageClassName", subdomain_faults)
    spec.choice("volumeMode", "Block", "Filesystem")
    for field in spec.set_of(("dataSource", "dataSourceRef")):
        source, kind = spec.below(field), (spec.get(field) or {}).get("kind") or ""
        source.needs("name", "kind")
        if not source.get("apiGroup") and kind != "PersistentVolumeClaim":
            problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            source.invalid("", problem, kind)
        source.text("apiGroup", subdomain_faults)
        if field == "dataSourceRef":
            source.text("namespace", dns_label_faults)
    spec.text("volumeAttributesClassName", subdomain_faults)


def check_modes(spec: Part) -> None:
    """Check access modes."""
    modes = spec.get("accessModes") or ()
    for mode in modes:
        if mode not in ACCESS_MODES:
            spec.unsupported("accessModes", ACCESS_MODES, str(mode))
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        spec.forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")
