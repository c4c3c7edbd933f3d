"""Identity: which volume of which driver a claim, or a disk written into a pod, stands for.

Mirrors filterAttachableVolumes and getCSIDriverInfo of pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, and
for the plugins of single clouds filterVolumes of non_csi.go as of v1.20.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from ...api.meta import controller_of
from ...api.migration import (
    PLUGIN_NAMED,
    PORTWORX,
    InTreePlugin,
    in_tree_plugin,
    inline_handle,
    volume_handle,
)
from ...api.storage import PersistentVolume, PersistentVolumeClaim, not_found
from ...api.volumes import Volume
from ...errors import InputError
from ...framework.lister import Lister
from ...table.volumes import ClaimUse, VolumeRef

NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
UNBOUND = "?"
"""Prefix of the name of a claim without a volume; no driver uses it for handles."""


class Attached(NamedTuple):
    """A volume that takes up a place: its unique name, and whose limit it counts against.

    A volume of a `migrated` in-tree kind counts only on nodes that have a CSINode.
    """

    name: str
    driver: str
    migrated: bool = False


class VolumeFault(NamedTuple):
    """Reason why the volumes of a pod cannot be counted; a `migrated` one matters only where there is a CSINode."""

    text: str
    is_missing: bool = False
    """Whether the claim does not exist (yet): the pod is then refused, while any other fault is an error."""
    migrated: bool = False


Identity = Attached | VolumeFault | None
"""None if the volume does not count."""
Visited = Callable[[str, str], None]
"""Called with the kind and the name of each cluster-wide object that an identity depends on."""


def unvisited(kind: str, name: str) -> None:
    """A `Visited` that does nothing."""


class Identifier(ABC):
    """Identities of the volumes of pods in the current cluster."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister

    def identify(self, ref: VolumeRef, visited: Visited = unvisited) -> Identity:
        """Identity of a pod's claim or disk."""
        if isinstance(ref, Volume):
            return self.of_disk(ref)
        if not ref.name:
            return VolumeFault(NO_CLAIM_NAME)
        claim = self._lister.get("PersistentVolumeClaim", ref.namespace, ref.name)
        if claim is None:
            return self.of_missing(ref)
        fault = self.judge_owner(ref, claim)
        if fault is not None:
            return fault
        if claim.spec.volume_name:
            visited("PersistentVolume", claim.spec.volume_name)
            volume = self._lister.get("PersistentVolume", "", claim.spec.volume_name)
            if volume is not None:
                return self.of_volume(volume)
        # The volume does not exist yet, or any more; its driver is that of the class.
        visited("StorageClass", claim.storage_class_name)
        return self.of_unbound(claim)

    def of_missing(self, ref: ClaimUse) -> Identity:
        """Identity of a claim that does not exist."""
        text = not_found("PersistentVolumeClaim", ref.name)
        return VolumeFault(f"looking up PVC {ref.namespace}/{ref.name}: {text}", is_missing=True)

    def judge_owner(self, ref: ClaimUse, claim: PersistentVolumeClaim) -> VolumeFault | None:
        """The fault of a claim with the name of an ephemeral volume that was not made for its pod."""
        if not ref.is_ephemeral:
            return None
        owner = controller_of(claim.owner_references)
        if owner is not None and owner.uid == ref.pod_uid:
            return None
        pod = f"{ref.namespace}/{ref.pod_name}"
        return VolumeFault(f"PVC {claim.key} was not created for pod {pod} (pod is not owner)")

    @abstractmethod
    def of_disk(self, disk: Volume) -> Identity:
        """Identity of a disk written into a pod."""

    @abstractmethod
    def of_volume(self, volume: PersistentVolume) -> Identity:
        """Identity of a persistent volume."""

    @abstractmethod
    def of_unbound(self, claim: PersistentVolumeClaim) -> Identity:
        """Identity that a claim without a volume will have."""


class CSIIdentifier(Identifier):
    """Volumes of CSI drivers, and in-tree volumes that were migrated to a driver. Upstream treats every node with a
    CSINode as migrated, whatever the CSINode contains. With `portworx_apart` in-tree volumes of Portworx are those of
    the in-tree kind, which are migrated only where the CSINode lists the plugin.
    """

    def __init__(self, lister: Lister, portworx_apart: bool = False) -> None:
        super().__init__(lister)
        self._portworx_apart = portworx_apart

    def of_disk(self, disk: Volume) -> Identity:
        plugin = in_tree_plugin(disk)
        if plugin is None or not plugin.is_switched_over:
            return None
        try:
            return self._migrated(plugin, inline_handle(disk))
        except InputError as error:
            return VolumeFault(f"converting volume from inline to csi: {error}", migrated=True)

    def of_volume(self, volume: PersistentVolume) -> Identity:
        csi = volume.spec.csi
        if csi is not None:
            return _attached(csi.driver, csi.volume_handle)
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not plugin.is_switched_over:
            return None
        try:
            handle = volume_handle(volume)
        except InputError:
            return None
        return self._migrated(plugin, handle) if handle else None

    def of_unbound(self, claim: PersistentVolumeClaim) -> Identity:
        name = claim.storage_class_name
        storage_class = self._lister.get("StorageClass", "", name) if name else None
        if storage_class is None:
            return None
        handle = f"{UNBOUND}-{claim.key}"
        plugin = PLUGIN_NAMED.get(storage_class.provisioner)
        if plugin is None:
            driver = storage_class.provisioner
            return _attached(driver, handle) if driver else None
        if not plugin.is_switched_over:
            return None
        return self._migrated(plugin, handle)

    def _migrated(self, plugin: InTreePlugin, handle: str) -> Attached:
        is_apart = self._portworx_apart and plugin.name == PORTWORX
        driver = plugin.name if is_apart else plugin.driver
        return Attached(f"{plugin.driver}/{handle}", driver, True)


def _attached(driver: str, handle: str) -> Attached | None:
    """A volume of a driver; one without a driver or a handle does not count."""
    return Attached(f"{driver}/{handle}", driver) if driver and handle else None


class CloudIdentifier(Identifier):
    """Disks of one cloud, known by the name that `id_field` of their source has."""

    def __init__(self, lister: Lister, plugin: InTreePlugin, id_field: str) -> None:
        super().__init__(lister)
        self._plugin = plugin
        self._id_field = id_field

    def of_missing(self, ref: ClaimUse) -> Identity:
        return None

    def judge_owner(self, ref: ClaimUse, claim: PersistentVolumeClaim) -> VolumeFault | None:
        return None

    def identify(self, ref: VolumeRef, visited: Visited = unvisited) -> Identity:
        if isinstance(ref, ClaimUse) and ref.is_ephemeral:
            return None  # the feature is later than these plugins
        return super().identify(ref, visited)

    def of_disk(self, disk: Volume) -> Identity:
        return self._named(getattr(disk, self._plugin.field))

    def of_volume(self, volume: PersistentVolume) -> Identity:
        return self._named(getattr(volume.spec, self._plugin.field))

    def of_unbound(self, claim: PersistentVolumeClaim) -> Identity:
        name = claim.spec.storage_class_name
        storage_class = self._lister.get("StorageClass", "", name) if name else None
        if storage_class is None or storage_class.provisioner != self._plugin.name:
            return None
        return Attached(f"{UNBOUND}-{claim.key}", self._plugin.name)

    def _named(self, source: object) -> Identity:
        if source is None:
            return None
        return Attached(getattr(source, self._id_field), self._plugin.name)
