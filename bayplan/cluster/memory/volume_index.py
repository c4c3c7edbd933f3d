"""VolumeIndex: the volumes of a cluster by class and by claim, and the best match for a claim.

Mirrors pkg/controller/volume/persistentvolume/index.go and FindMatchingVolume of
k8s.io/component-helpers/storage/volume/pv_helpers.go, as the volume controller calls it: without a
node.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import count

from ...api.storage import AVAILABLE, PersistentVolume, PersistentVolumeClaim

ClaimKey = tuple[str, str]
"""Namespace and name."""
Entry = tuple[int, int, str]
"""Size in bytes, insertion order, name."""
Shelf = tuple[str, tuple[str, ...]]
"""Class and access modes."""


class VolumeIndex:
    """All volumes. `set` and `remove` keep it up to date.

    Unreserved volumes are sorted by size per class and access modes: a claim takes the first that
    matches.
    """

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._arrivals: dict[str, int] = {}
        self._numbers = count()
        self._kept: dict[ClaimKey, dict[str, None]] = {}
        self._free: dict[str, dict[tuple[str, ...], list[Entry]]] = {}

    def set(self, volume: PersistentVolume) -> None:
        """Add or update a volume."""
        before = self._volumes.get(volume.name)
        if before is None:
            self._arrivals[volume.name] = next(self._numbers)
        elif self._place(before) == self._place(volume):
            self._volumes[volume.name] = volume
            return
        else:
            self._take_out(before)
        self._volumes[volume.name] = volume
        kept_for, (class_name, modes), entry = self._place(volume)
        if kept_for is not None:
            self._kept.setdefault(kept_for, {})[volume.name] = None
        else:
            insort(self._free.setdefault(class_name, {}).setdefault(modes, []), entry)

    def remove(self, name: str) -> None:
        """Remove a volume."""
        self._take_out(self._volumes.pop(name))
        del self._arrivals[name]

    def kept_for(self, claim: ClaimKey) -> Iterable[str]:
        """The names of the volumes reserved for the claim of that name."""
        return tuple(self._kept.get(claim, ()))

    def find(self, claim: PersistentVolumeClaim, only_kept: bool) -> PersistentVolume | None:
        """The volume for `claim`: one reserved for it, else (unless `only_kept`) the smallest that matches.

        Volumes with few access modes take precedence over those with many, regardless of size.
        """
        kept = [self._volumes[name] for name in self.kept_for((claim.namespace, claim.name))]
        prebound = [v for v in kept if v.is_bound_to(claim) and is_enough(v, claim)]
        if prebound:
            return min(prebound, key=lambda volume: len(_modes(volume)))
        if only_kept:
            return None
        shelves = self._free.get(claim.storage_class_name, {})
        wanted = set(claim.spec.access_modes or ())
        firsts = (
            (len(modes), entry)
            for modes, shelf in shelves.items()
            if wanted <= set(modes) and (entry := self._first(shelf, claim)) is not None
        )
        best = min(firsts, default=None)
        return None if best is None else self._volumes[best[1][2]]

    def _first(self, shelf: list[Entry], claim: PersistentVolumeClaim) -> Entry | None:
        """The first matching volume of a group."""
        for i in range(bisect_left(shelf, (claim.requested_bytes, -1, "")), len(shelf)):
            volume = self._volumes[shelf[i][2]]
            if (
                volume.status.phase == AVAILABLE
                and is_enough(volume, claim)
                and (claim.spec.selector is None or claim.spec.selector.matches(volume.labels))
            ):
                return shelf[i]
        return None

    def _place(self, volume: PersistentVolume) -> tuple[ClaimKey | None, Shelf, Entry]:
        """The claim the volume is reserved for, else its group and its position there."""
        kept_for = volume.spec.claim_ref
        key = None if kept_for is None else (kept_for.namespace, kept_for.name)
        entry = volume.capacity_bytes, self._arrivals[volume.name], volume.name
        return key, (volume.storage_class_name, _modes(volume)), entry

    def _take_out(self, volume: PersistentVolume) -> None:
        kept_for, (class_name, modes), entry = self._place(volume)
        if kept_for is not None:
            del self._kept[kept_for][volume.name]
            return
        shelf = self._free[class_name][modes]
        del shelf[bisect_left(shelf, entry)]


def is_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is large enough and of the right mode, regardless of its class."""
    wanted, offered = claim.spec, volume.spec
    return (
        volume.capacity_bytes >= claim.requested_bytes
        and volume.volume_mode == claim.volume_mode
        and (offered.volume_attributes_class_name or "")
        == (wanted.volume_attributes_class_name or "")
        and not volume.is_terminating
        and set(wanted.access_modes or ()) <= set(offered.access_modes or ())
    )


def _modes(volume: PersistentVolume) -> tuple[str, ...]:
    """The unique access modes, sorted."""
    return tuple(sorted(set(volume.spec.access_modes or ())))
