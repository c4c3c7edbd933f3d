"""Claim sets: the claims of a pod, sorted by the remaining steps.

Mirrors podHasPVCs of pkg/scheduler/framework/plugins/volumebinding/volume_binding.go and GetPodVolumeClaims of
binder.go.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...api.pod import Pod, PodSpec
from ...api.storage import LOST, PersistentVolumeClaim, StorageClass, not_found
from ...api.volumes import claim_name_of
from ...framework import Status, failure, unresolvable
from ...framework.lister import Lister
from .assumed import AssumedObjects

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
CLAIM = "PersistentVolumeClaim"


class PodClaims(msgspec.Struct):
    """The claims of a pod that are `bound`, and those that are `delayed`: to be bound to a volume that suits the
    node.
    """

    bound: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)


def has_claims(spec: PodSpec) -> bool:
    """Whether some volume of pods of the spec is a claim."""
    for one in spec.volumes or ():  # noqa: SIM110 -- asked four times per pod, where `any` takes twice as long
        if one.persistent_volume_claim or one.ephemeral:
            return True
    return False


def check_claims(pod: Pod, lister: Lister) -> Status | None:
    """Reason why the pod cannot run on any node: a claim of it is missing, being deleted or not its own."""
    for name, is_ephemeral in _names(pod):
        claim = lister.get(CLAIM, pod.namespace, name)
        if claim is None and is_ephemeral:
            waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            return unresolvable(f'{waiting} "{name}"')
        if claim is None:
            return unresolvable(not_found(CLAIM, name))
        if claim.status.phase == LOST:
            volume = f'bound to non-existent persistentvolume "{claim.spec.volume_name}"'
            return unresolvable(f'persistentvolumeclaim "{name}" {volume}')
        if claim.is_terminating:
            return unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
        if is_ephemeral and not claim.is_made_for(pod):
            problem = f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
            return unresolvable(problem)
    return None


def sort_claims(
    pod: Pod, claims: AssumedObjects[PersistentVolumeClaim], lister: Lister
) -> PodClaims | Status:
    """The claims of the pod by their remaining steps; or a refusal, if a controller must bind one first."""
    sorted_claims, immediate = PodClaims(), False
    for name, _ in _names(pod):
        claim = claims.get(pod.namespace, name)
        if claim is None:
            text = f'{claims.plural} "{pod.namespace}/{name}" not found'
            return failure(f'error getting PVC "{pod.namespace}/{name}": {text}')
        if claim.is_fully_bound:
            sorted_claims.bound.append(claim)
            continue
        storage_class: StorageClass | None = None
        if claim.storage_class_name:
            storage_class = lister.get("StorageClass", "", claim.storage_class_name)
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return failure(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
        # A claim that names its volume waits for the volume controller, with any class.
        waits = storage_class is not None and storage_class.waits_for_consumer
        if waits and not claim.spec.volume_name:
            sorted_claims.delayed.append(claim)
        else:
            immediate = True
    return unresolvable(UNBOUND_IMMEDIATE) if immediate else sorted_claims


def are_bound(pod: Pod, claims: AssumedObjects[PersistentVolumeClaim]) -> bool:
    """Whether every claim of the pod has its volume."""
    for name, is_ephemeral in _names(pod):
        claim = claims.get(pod.namespace, name)
        if claim is None or not claim.is_fully_bound:
            return False
        if is_ephemeral and not claim.is_made_for(pod):
            return False
    return True


def _names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """The names of the pod's claims, and whether each is made for an ephemeral volume of it."""
    for volume in pod.spec.volumes or ():
        name = claim_name_of(volume, pod.name)
        if name is not None:
            yield name, volume.ephemeral is not None
