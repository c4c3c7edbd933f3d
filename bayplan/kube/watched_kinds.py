"""Watched kinds: the kinds of objects a scheduler reads, and their API paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from ..api.wire.kinds import KINDS, Kind, plural_of
from ..errors import ApiError
from .first_streams import NOT_FINISHED

DEVICES = "DynamicResourceAllocation"


class Resource(msgspec.Struct, frozen=True):
    """One kind of objects in the API."""

    kind: Kind
    plural: str
    field_selector: str = ""
    gate: str = ""
    """The feature gate without which it is not read."""
    newer: tuple[str, ...] = ()
    """API versions with the same fields that later releases serve instead, the newest first."""

    @property
    def versions(self) -> tuple[Resource, ...]:
        """The same objects in each API version, the newest first."""
        made = (replace(self.kind, api_version=version) for version in self.newer)
        return (*(msgspec.structs.replace(self, kind=kind) for kind in made), self)

    @property
    def name(self) -> str:
        """The name in RBAC: `pods`, `replicasets.apps`."""
        group = self.kind.group
        return f"{self.plural}.{group}" if group else self.plural

    @property
    def group_path(self) -> str:
        """The path of its API group: `/api/v1`, `/apis/apps/v1`."""
        version = self.kind.api_version
        return f"/apis/{version}" if "/" in version else f"/api/{version}"

    @property
    def path(self) -> str:
        """The path of all of its objects, of all namespaces."""
        return f"{self.group_path}/{self.plural}"

    def path_of(self, namespace: str, name: str) -> str:
        """The path of one object; its namespace is "" for cluster-scoped kinds. Without a name: the
        path for creation."""
        folder = f"{self.group_path}/namespaces/{namespace}" if namespace else self.group_path
        return f"{folder}/{self.plural}/{name}" if name else f"{folder}/{self.plural}"


_GATES = {
    **dict.fromkeys(("ResourceClaim", "ResourceSlice", "DeviceClass"), DEVICES),
    "DeviceTaintRule": "DRADeviceTaintRules",
}
_NEWER = {"DeviceTaintRule": ("resource.k8s.io/v1",), "PodGroup": ("scheduling.k8s.io/v1beta1",)}


def resource_of(kind: str) -> Resource:
    """The resource of a built-in kind."""
    selector, gate = NOT_FINISHED if kind == "Pod" else "", _GATES.get(kind, "")
    return Resource(KINDS[kind], plural_of(kind), selector, gate, _NEWER.get(kind, ()))


RESOURCES: dict[str, Resource] = {
    kind: resource_of(kind)
    for kind in (
        *("Namespace", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"),
        *("PodDisruptionBudget", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"),
        *("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "ResourceClaim"),
        *("ResourceSlice", "DeviceClass", "DeviceTaintRule", "PodGroup", "Node", "Pod"),
    )
}
"""The kinds that the event handlers and the plugins read."""


def path_of(obj: Any, subresource: str = "", api_version: str = "") -> str:
    """The path of the object, or of one of its subresources; ApiError for one that is only read.

    `api_version` is one of those that the kind has; empty stands for the first one.
    """
    if obj.kind not in RESOURCES:
        raise ApiError(f"{obj.kind}: expected an object of a kind that the scheduler writes")
    found = (v for v in RESOURCES[obj.kind].versions if v.kind.api_version == api_version)
    path = next(found, RESOURCES[obj.kind]).path_of(obj.namespace, obj.name)
    return f"{path}/{subresource}" if subresource else path
