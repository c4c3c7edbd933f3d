"""Default class: the storage class of new claims that name none.

Mirrors plugin/pkg/admission/storage/storageclass/setdefault and pkg/volume/util/storageclass.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ...api.storage import BETA_CLASS_ANNOTATION, PersistentVolumeClaim, StorageClass
from ...framework import Lister
from ..objects import ControllerCluster

DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def is_default_class(annotations: Mapping[str, str]) -> bool:
    """Whether annotations make a storage class the default."""
    return any(annotations.get(name) == "true" for name in DEFAULT_ANNOTATIONS)


def default_storage_class(cluster: Lister | ControllerCluster) -> StorageClass | None:
    """The default storage class; of several the newest, of those the first by name."""
    found: list[StorageClass] = [
        one for one in cluster.list("StorageClass") if is_default_class(one.annotations)
    ]
    found.sort(key=lambda storage_class: storage_class.name)
    found.sort(key=lambda storage_class: storage_class.creation_timestamp or "", reverse=True)
    return found[0] if found else None


def with_default_class(
    claim: PersistentVolumeClaim, cluster: Lister | ControllerCluster
) -> PersistentVolumeClaim:
    """A new claim with the default class, if it has neither a class, of which an empty name is one, nor the annotation
    that was used before; also a claim that names its volume."""
    if claim.spec.storage_class_name is not None or BETA_CLASS_ANNOTATION in claim.annotations:
        return claim
    default = default_storage_class(cluster)
    if default is None:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default.name))
