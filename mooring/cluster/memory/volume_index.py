"""VolumeIndex: the volumes of a cluster by class and by claim, and which of them suits a claim best.

Mirrors pkg/controller/volume/persistentvolume/index.go and FindMatchingVolume of
k8s.io/component-helpers/storage/volume/pv_helpers.go, as the volume controller calls it: without a node.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...api.storage import AVAILABLE, PersistentVolume, PersistentVolumeClaim

ClaimKey = tuple[str, str]
"""Namespace and name."""


class VolumeIndex:
    """All volumes. `set` and `remove` keep it up to date."""

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._free: dict[str, dict[str, PersistentVolume]] = {}
        self._kept: dict[ClaimKey, dict[str, PersistentVolume]] = {}

    def set(self, volume: PersistentVolume) -> None:
        """A volume came, or changed."""
        before = self._volumes.get(volume.name)
        if before is not None and _shelf(before) != _shelf(volume):
            self._take_out(before)
        self._volumes[volume.name] = volume
        kept_for, class_name = _shelf(volume)
        if kept_for is None:
            self._free.setdefault(class_name, {})[volume.name] = volume
        else:
            self._kept.setdefault(kept_for, {})[volume.name] = volume

    def remove(self, name: str) -> None:
        """A volume went."""
        self._take_out(self._volumes.pop(name))

    def kept_for(self, claim: ClaimKey) -> Iterable[str]:
        """The names of the volumes that are kept for the claim of that name."""
        return tuple(self._kept.get(claim, ()))

    def find(self, claim: PersistentVolumeClaim, only_kept: bool) -> PersistentVolume | None:
        """The volume for `claim`: one that is kept for it, else (unless `only_kept`) the smallest that will do.

        Volumes with few access modes go before those with many, whatever their size.
        """
        kept = self._kept.get((claim.namespace, claim.name), {}).values()
        prebound = [v for v in kept if v.is_bound_to(claim) and _is_enough(v, claim)]
        if prebound:
            return min(prebound, key=_mode_count)
        if only_kept:
            return None
        suitable = [
            volume
            for volume in self._free.get(claim.storage_class_name, {}).values()
            if volume.status.phase == AVAILABLE
            and _is_enough(volume, claim)
            and (claim.spec.selector is None or claim.spec.selector.matches(volume.labels))
        ]
        return min(suitable, key=lambda v: (_mode_count(v), v.capacity_bytes), default=None)

    @staticmethod
    def satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume that the claim asks for by name will do."""
        return _is_enough(volume, claim) and volume.storage_class_name == claim.storage_class_name

    def _take_out(self, volume: PersistentVolume) -> None:
        kept_for, class_name = _shelf(volume)
        shelf = self._free[class_name] if kept_for is None else self._kept[kept_for]
        del shelf[volume.name]


def _shelf(volume: PersistentVolume) -> tuple[ClaimKey | None, str]:
    """Whom the volume is kept for, and its class."""
    kept_for = volume.spec.claim_ref
    key = None if kept_for is None else (kept_for.namespace, kept_for.name)
    return key, volume.storage_class_name


def _is_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is large enough and of the right kind."""
    wanted, offered = claim.spec, volume.spec
    return (
        volume.capacity_bytes >= claim.requested_bytes
        and volume.volume_mode == claim.volume_mode
        and (offered.volume_attributes_class_name or "")
        == (wanted.volume_attributes_class_name or "")
        and not volume.is_terminating
        and set(wanted.access_modes or ()) <= set(offered.access_modes or ())
    )


def _mode_count(volume: PersistentVolume) -> int:
    return len(volume.spec.access_modes or ())
