"""Default class: the storage class of new claims that name none.

Mirrors plugin/pkg/admission/storage/storageclass/setdefault and pkg/volume/util/storageclass.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ...api.pod import Pod
from ...api.storage import BETA_CLASS_ANNOTATION, PersistentVolumeClaim, StorageClass
from ...api.volumes import claim_name_of
from ...framework.lister import Lister
from ..objects.object_index import ControllerCluster

DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def is_default_class(annotations: Mapping[str, str]) -> bool:
    """Whether annotations make a storage class the default."""
    return any(annotations.get(name) == "true" for name in DEFAULT_ANNOTATIONS)


def default_storage_class(cluster: Lister | ControllerCluster) -> StorageClass | None:
    """The default storage class; if there are several, the newest, then the first by name."""
    found: list[StorageClass] = [
        one for one in cluster.list("StorageClass") if is_default_class(one.annotations)
    ]
    found.sort(key=lambda storage_class: storage_class.name)
    found.sort(key=lambda storage_class: storage_class.creation_timestamp or "", reverse=True)
    return found[0] if found else None


def with_default_class(
    claim: PersistentVolumeClaim, cluster: Lister | ControllerCluster
) -> PersistentVolumeClaim:
    """A new claim with the default class, if it has neither a class (an empty name is one) nor the annotation
    that was used before; also a claim that names its volume."""
    if claim.spec.storage_class_name is not None or BETA_CLASS_ANNOTATION in claim.annotations:
        return claim
    default = default_storage_class(cluster)
    if default is None:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default.name))


SHOWN = 3


def missing_classes(cluster: ControllerCluster, pods: Iterable[Pod]) -> Iterator[str]:
    """A line for each class that claims of `pods` name and that does not exist.

    A class without a provisioner need not exist where volumes have it, so a claim that some volume could serve is
    left out.
    """
    volumes = {volume.storage_class_name for volume in cluster.list("PersistentVolume")}
    found: dict[str, dict[str, None]] = {}
    for pod in pods:
        for volume in pod.spec.volumes or ():
            name = claim_name_of(volume, pod.name)
            claim = cluster.get(PersistentVolumeClaim.kind, pod.namespace, name) if name else None
            if claim is None or claim.spec.volume_name:
                continue
            wanted = claim.storage_class_name
            if wanted and wanted not in volumes and not cluster.get("StorageClass", "", wanted):
                found.setdefault(wanted, {})[claim.key] = None
    for name, keys in found.items():
        claims = list(keys)
        more = f" and {len(claims) - SHOWN:,} more" if len(claims) > SHOWN else ""
        noun = "claim" if len(claims) == 1 else "claims"
        named = "names" if len(claims) == 1 else "name"
        listed = ", ".join(claims[:SHOWN])
        yield f'StorageClass "{name}" does not exist; {noun} {listed}{more} {named} it'
