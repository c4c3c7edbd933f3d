"""Volume controller: bind claims to volumes, provision volumes, create ephemeral claims, and reclaim volumes.

Mirrors pkg/controller/volume/persistentvolume/pv_controller.go and
pkg/controller/volume/ephemeral/controller.go: the matching of claims and volumes, with annotations
and phases. Objects of the input stay: a claim is lost, or a volume released, only when its
counterpart was deleted while the cluster was watched.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import count
from typing import Any

from msgspec.structs import replace

from ...api.meta import ObjectMeta
from ...api.pod import Pod
from ...api.storage import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    LOST,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    with_annotation,
)
from ...api.volumes import EphemeralVolume, PersistentVolumeClaimTemplate, claim_name_of
from ..objects.object_index import ControllerCluster, Later
from .default_class import with_default_class
from .deployments import owner_reference
from .protection import Protection
from .provisioners import PROVISIONED_BY, Provisioner, Provisioning

CLAIM, VOLUME = PersistentVolumeClaim.kind, PersistentVolume.kind
BOUND, PENDING, RELEASED = "Bound", "Pending", "Released"
OVER = (RELEASED, "Failed")
ClaimKey = tuple[str, str]
"""Namespace and name."""
Entry = tuple[int, int, str]
"""Size in bytes, insertion order, name."""
Shelf = tuple[str, tuple[str, ...]]
"""Class and access modes."""


class VolumeController:
    """The storage controllers of one cluster. Watches it and records changes; `run` does the resulting work.

    With `timers`, volumes are created after the delay of `provisioning`, and the resulting work is
    done then, too.
    """

    def __init__(
        self,
        cluster: ControllerCluster,
        provisioning: Provisioning | None = None,
        timers: Later | None = None,
    ) -> None:
        self._cluster = cluster
        self._provisioner = Provisioner(cluster, provisioning or Provisioning(), timers, self.run)
        self._protection = Protection(cluster)
        self._index = VolumeIndex()
        self._claims: dict[ClaimKey, None] = {}
        self._volumes: dict[str, None] = {}
        self._pods: dict[ClaimKey, None] = {}
        self._orphans: dict[ClaimKey, Pod] = {}
        self._unbound: dict[ClaimKey, None] = {}

    # Changes

    def on_add(self, obj: Any) -> None:
        """Record a new claim or volume, or a pod with ephemeral volumes."""
        match obj:
            case Pod():
                volumes = obj.spec.volumes
                if volumes and any(volume.ephemeral for volume in volumes):
                    self._pods[obj.namespace, obj.name] = None
            case PersistentVolumeClaim():
                self._claims[obj.namespace, obj.name] = None
            case PersistentVolume():
                self._index.set(obj)
                self._volumes[obj.name] = None
            case StorageClass():
                self._claims.update(self._unbound)

    def on_add_many(self, pods: Iterable[Pod]) -> None:
        """Record the pods with ephemeral volumes."""
        for pod in pods:
            if pod.spec.volumes:
                self.on_add(pod)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle an update like an addition."""
        if not isinstance(new, Pod):
            self._protection.on_update(old, new)
            self.on_add(new)

    def on_delete(self, obj: Any) -> None:
        """Record the counterpart of a deleted object."""
        self._protection.on_delete(obj)
        match obj:
            case PersistentVolumeClaim():
                key = obj.namespace, obj.name
                self._unbound.pop(key, None)
                self._volumes.update(dict.fromkeys(self._index.kept_for(key)))
            case PersistentVolume():
                self._index.remove(obj.name)
                self._provisioner.reclaim(obj)
                kept_for = obj.spec.claim_ref
                if kept_for is not None:
                    self._claims[kept_for.namespace, kept_for.name] = None
            case Pod():
                for volume in obj.spec.volumes or ():
                    name = claim_name_of(volume, obj.name)
                    if volume.ephemeral is not None and name is not None:
                        self._orphans[obj.namespace, name] = obj

    def run(self) -> None:
        """Do the recorded work until nothing is left."""
        while self.has_work:
            if self._protection.has_work:
                self._protection.run_once()
            orphans, self._orphans = self._orphans, {}
            for key, owner in orphans.items():
                self._collect(key, owner)
            pods, self._pods = self._pods, {}
            for key in pods:
                self._make_claims(self._cluster.get("Pod", *key))
            volumes, self._volumes = self._volumes, {}
            for name in volumes:
                self._sync_volume(self._cluster.get(VOLUME, "", name))
            claims, self._claims = self._claims, {}
            for key in claims:
                self._sync_claim(self._cluster.get(CLAIM, *key))

    run_once = run

    @property
    def has_work(self) -> bool:
        """Whether work is recorded."""
        noted = self._pods or self._orphans or self._volumes or self._claims
        return bool(noted) or self._protection.has_work

    def delete(self, obj: PersistentVolume | PersistentVolumeClaim, now: str) -> None:
        """Delete a volume or a claim as a user does: one in use is terminating from `now` on."""
        self._protection.delete(obj, now)
        self.run()

    # Ephemeral volumes

    def _make_claims(self, pod: Pod | None) -> None:
        """Create the claims of the pod's ephemeral volumes."""
        if pod is None or pod.is_terminating or pod.is_finished:
            return
        for volume in pod.spec.volumes or ():
            name = claim_name_of(volume, pod.name)
            if volume.ephemeral is None or name is None:
                continue
            if self._cluster.get(CLAIM, pod.namespace, name) is None:
                claim = make_claim(pod, volume.ephemeral, name)
                self._cluster.add(with_default_class(claim, self._cluster))

    def _collect(self, key: ClaimKey, owner: Pod) -> None:
        """Delete the ephemeral claims of a deleted pod."""
        claim = self._cluster.get(CLAIM, *key)
        if claim is not None and claim.is_made_for(owner):
            self._cluster.delete(claim)

    # Claims

    def _sync_claim(self, claim: PersistentVolumeClaim | None) -> None:
        if claim is None or claim.is_terminating:
            return
        key = claim.namespace, claim.name
        if BIND_COMPLETED in claim.annotations:
            self._unbound.pop(key, None)
            self._check_bound(claim)
            return
        self._unbound[key] = None
        if claim.spec.volume_name:
            volume: PersistentVolume | None = self._cluster.get(VOLUME, "", claim.spec.volume_name)
            if volume is not None and (volume.is_bound_to(claim) or _may_have(volume, claim)):
                self._bind(volume, claim)
            else:
                self._set_phase(claim, PENDING)
        else:
            self._find_volume(claim)

    def _check_bound(self, claim: PersistentVolumeClaim) -> None:
        """Check whether a bound claim has lost its volume."""
        name = claim.spec.volume_name
        volume: PersistentVolume | None = self._cluster.get(VOLUME, "", name)
        if volume is None:
            if not name or self._cluster.was_deleted(VOLUME, "", name):
                self._set_phase(claim, LOST)
        elif volume.spec.claim_ref is None or volume.is_bound_to(claim):
            self._bind(volume, claim)
        elif _names(volume) != (claim.namespace, claim.name):
            self._set_phase(claim, LOST)

    def _find_volume(self, claim: PersistentVolumeClaim) -> None:
        """Bind to an existing volume, provision one, or leave that to the scheduler for now."""
        storage_class: StorageClass | None = self._cluster.get(
            "StorageClass", "", claim.storage_class_name
        )
        waits = storage_class is not None and storage_class.waits_for_consumer
        volume = self._index.find(claim, only_kept=waits)
        if volume is not None:
            self._bind(volume, claim)
            return
        defaulted = with_default_class(claim, self._cluster)
        if defaulted is not claim:
            self._cluster.update(defaulted)
            return
        if not claim.status.phase:
            claim = self._set_phase(claim, PENDING)
        if storage_class is not None and (not waits or SELECTED_NODE in claim.annotations):
            self._provisioner.provision(claim, storage_class)

    # Volumes

    def _sync_volume(self, volume: PersistentVolume | None) -> None:
        if volume is None:
            return
        kept_for = volume.spec.claim_ref
        if kept_for is None:
            self._set_volume_phase(volume, AVAILABLE)
            for unbound in self._unbound:
                claim = self._cluster.get(CLAIM, *unbound)
                if claim is not None and claim.storage_class_name == volume.storage_class_name:
                    self._claims[unbound] = None
            return
        key = kept_for.namespace, kept_for.name
        if not kept_for.uid:
            self._set_volume_phase(volume, AVAILABLE)
            self._claims[key] = None
            return
        claim = self._cluster.get(CLAIM, *key)
        if claim is None or claim.uid != kept_for.uid:
            if self._cluster.was_deleted(CLAIM, *key):
                self._release(volume)
        elif not claim.spec.volume_name:
            self._claims[key] = None
        elif claim.spec.volume_name == volume.name:
            if BIND_COMPLETED in claim.annotations:
                self._set_volume_phase(volume, BOUND)
            else:
                self._claims[key] = None
        else:
            self._take_back(volume)

    def _take_back(self, volume: PersistentVolume) -> None:
        """Release the volume of a claim that is bound to another one; delete it if it was provisioned for the claim."""
        policy = volume.spec.persistent_volume_reclaim_policy
        if PROVISIONED_BY in volume.annotations and policy == "Delete":
            self._release(volume)
            return
        kept_for = volume.spec.claim_ref
        assert kept_for is not None, "a released volume had a claim"
        if (
            BOUND_BY_CONTROLLER not in volume.annotations
        ):  # a user reserved it, so the reservation stays
            spec = replace(volume.spec, claim_ref=replace(kept_for, uid=""))
            self._write(
                volume, replace(volume, spec=spec, status=replace(volume.status, phase=AVAILABLE))
            )
            return
        self._free(volume)

    def _release(self, volume: PersistentVolume) -> None:
        """Apply the reclaim policy of a volume whose claim was deleted."""
        if volume.status.phase not in OVER:
            volume = self._set_volume_phase(volume, RELEASED)
        match volume.spec.persistent_volume_reclaim_policy:
            case "Delete":
                self._cluster.delete(volume)
            case "Recycle":
                self._free(volume)

    def _free(self, volume: PersistentVolume) -> None:
        """Make the volume available."""
        notes = {k: v for k, v in volume.annotations.items() if k != BOUND_BY_CONTROLLER}
        freed = replace(
            volume,
            metadata=replace(volume.metadata, annotations=notes or None),
            spec=replace(volume.spec, claim_ref=None),
            status=replace(volume.status, phase=AVAILABLE),
        )
        self._write(volume, freed)

    # Writing

    def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Write the binding on both."""
        bound = volume.bound_to(claim)
        self._write(volume, replace(bound, status=replace(bound.status, phase=BOUND)))
        made = claim
        if claim.spec.volume_name != volume.name:
            made = replace(claim, spec=replace(claim.spec, volume_name=volume.name))
            made = with_annotation(made, BOUND_BY_CONTROLLER, "yes")
        if BIND_COMPLETED not in made.annotations:
            made = with_annotation(made, BIND_COMPLETED, "yes")
        if not (claim.status.phase == BOUND and BIND_COMPLETED in claim.annotations):
            status = replace(
                claim.status,
                phase=BOUND,
                capacity=volume.spec.capacity,
                access_modes=volume.spec.access_modes,
            )
            made = replace(made, status=status)
        self._write(claim, made)

    def _set_phase(self, claim: PersistentVolumeClaim, phase: str) -> PersistentVolumeClaim:
        if claim.status.phase == phase:
            return claim
        status = replace(claim.status, phase=phase)
        if phase in (LOST, PENDING):
            status = replace(status, capacity=None, access_modes=None)
        return self._cluster.update(replace(claim, status=status))

    def _set_volume_phase(self, volume: PersistentVolume, phase: str) -> PersistentVolume:
        if volume.status.phase == phase:
            return volume
        return self._cluster.update(replace(volume, status=replace(volume.status, phase=phase)))

    def _write(self, old: PersistentVolume | PersistentVolumeClaim, new: Any) -> None:
        if new != old:
            self._cluster.update(new)


def make_claim(pod: Pod, ephemeral: EphemeralVolume, name: str) -> PersistentVolumeClaim:
    """The claim for an ephemeral volume of `pod`, which owns it."""
    template = ephemeral.volume_claim_template or PersistentVolumeClaimTemplate()
    metadata = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(owner_reference(pod),),
    )
    return PersistentVolumeClaim(metadata=metadata, spec=template.spec)


def _may_have(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume that a claim names is free and matches."""
    same_class = volume.storage_class_name == claim.storage_class_name
    return volume.spec.claim_ref is None and same_class and is_enough(volume, claim)


def _names(volume: PersistentVolume) -> ClaimKey | None:
    """The claim the volume is reserved for."""
    kept_for = volume.spec.claim_ref
    return None if kept_for is None else (kept_for.namespace, kept_for.name)


class VolumeIndex:
    """All volumes by class and by claim. `set` and `remove` keep it up to date.

    Mirrors pkg/controller/volume/persistentvolume/index.go. Unreserved volumes are sorted by size per
    class and access modes: a claim takes the first that matches.
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
