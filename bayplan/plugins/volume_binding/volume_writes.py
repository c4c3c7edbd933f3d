"""Volume writes: bind the volumes chosen for a pod to its claims, and wait until they are bound.

Mirrors AssumePodVolumes, BindPodVolumes and checkBindings of pkg/scheduler/framework/plugins/volumebinding/binder.go.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from ...api.meta import KubeObject, is_older
from ...api.pod import Pod
from ...api.storage import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    not_found,
    with_annotation,
)
from ...clock import whole_micros
from ...errors import BayplanError
from ...framework import Handle
from .assumed import AssumedObjects, OutOfSyncError
from .volume_columns import NONE
from .volume_search import Finder, FoundVolumes

POLL_S = 1.0
TIMED_OUT = "context deadline exceeded"
Object = TypeVar("Object", bound=KubeObject)


class VolumeBindingError(BayplanError):
    """The volumes of a pod cannot be bound."""


class PodVolumes(msgspec.Struct):
    """Volumes for a pod on its node: existing volumes for claims, and claims to be provisioned there."""

    bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = msgspec.field(
        default_factory=list
    )
    provisions: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)


@dataclass(slots=True, eq=False)
class Binder:
    """Assumes volumes and claims, reverts that, or writes them."""

    handle: Handle
    claims: AssumedObjects[PersistentVolumeClaim]
    volumes: AssumedObjects[PersistentVolume]
    finder: Finder
    timeout_s: float

    def assume(self, found: FoundVolumes, position: int, node_name: str) -> PodVolumes:
        """Assume the volumes that were found for one row. Assumes nothing if it raises OutOfSyncError."""
        given = PodVolumes()
        try:
            for binding in found.bindings:
                number = int(binding.numbers[position])
                if number == NONE:
                    continue
                volume = self.finder.columns.listed[number]
                assert volume is not None, "a chosen volume exists"
                bound = volume.bound_to(binding.claim)
                if bound is not volume:
                    self.volumes.assume(bound)
                given.bindings.append((bound, binding.claim))
            for provision in found.provisions:
                if provision.needed[position]:
                    claim = with_annotation(provision.claim, SELECTED_NODE, node_name)
                    self.claims.assume(claim)
                    given.provisions.append(claim)
        except OutOfSyncError:
            self.restore(given)
            raise
        return given

    def restore(self, given: PodVolumes) -> None:
        """Drop the assumptions that the cluster does not show yet."""
        for volume, _ in given.bindings:
            self.volumes.restore(volume)
        for claim in given.provisions:
            self.claims.restore(claim)

    async def bind(self, pod: Pod, given: PodVolumes) -> None:
        """Write, then wait until all claims are bound; raises when that fails, or takes too long."""
        await self._write(given)
        now = self.handle.clock.monotonic
        deadline = whole_micros(now() + self.timeout_s)  # rounded to the resolution of the clock
        while True:
            await self.handle.sleep(min(POLL_S, max(deadline - now(), 0)))
            if now() >= deadline:
                raise VolumeBindingError(f"binding volumes: {TIMED_OUT}")
            try:
                if self._check(pod, given):
                    return
            except BayplanError as error:
                raise VolumeBindingError(f"binding volumes: {error}") from error

    async def _write(self, given: PodVolumes) -> None:
        """Write volumes, then claims. When a write fails, earlier ones stay and the assumptions of the rest are
        dropped. Nothing is written back: the volume controller, or the next attempt, continues.
        """
        bindings = provisions = 0
        try:
            for bindings, (volume, claim) in enumerate(given.bindings):
                given.bindings[bindings] = await self._update(volume), claim
            bindings = len(given.bindings)
            for provisions, claim in enumerate(given.provisions):
                given.provisions[provisions] = await self._update(claim)
            provisions = len(given.provisions)
        finally:
            self.restore(PodVolumes(given.bindings[bindings:], given.provisions[provisions:]))

    async def _update(self, obj: Object) -> Object:
        answer: Object | Awaitable[Object] = self.handle.client.update(obj)
        if inspect.isawaitable(answer):
            return await answer
        return answer

    def _check(self, pod: Pod, given: PodVolumes) -> bool:
        """Whether all claims are bound; raises VolumeBindingError if they cannot be bound any more.

        Reads the cluster and not the assumptions, which may be another pod's by now.
        """
        if self._row_of(pod.node_name) is None:
            name = pod.node_name
            raise VolumeBindingError(f'failed to get node "{name}": {not_found("Node", name)}')
        if self.handle.lister.get("Pod", pod.namespace, pod.name) is None:
            raise VolumeBindingError(f"pod does not exist any more: {not_found('Pod', pod.name)}")
        return all(self._is_bound(pod, *pair) for pair in given.bindings) and all(
            self._is_provisioned(pod, claim) for claim in given.provisions
        )

    def _is_bound(self, pod: Pod, written: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        doing = "failed to check binding"
        volume = _listed(self.volumes, written, doing)
        seen = _listed(self.claims, claim, doing)
        if is_older(volume, written):
            return False  # the cluster does not show the write yet
        self._check_reach(pod, volume)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeBindingError(f'ClaimRef got reset for pv "{volume.name}"')
        return seen.is_fully_bound

    def _is_provisioned(self, pod: Pod, written: PersistentVolumeClaim) -> bool:
        claim = _listed(self.claims, written, "failed to check provisioning pvc")
        if is_older(claim, written):
            return False
        if not claim.annotations:
            raise VolumeBindingError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.annotations.get(SELECTED_NODE, "") != pod.node_name:
            # A provisioner that cannot make the volume removes the annotation.
            raise VolumeBindingError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self.volumes.listed("", claim.spec.volume_name)
            if volume is None:
                return False  # its event may not have arrived yet
            self._check_reach(pod, volume)
        return claim.is_fully_bound

    def _check_reach(self, pod: Pod, volume: PersistentVolume) -> None:
        table, row = self.handle.table, self._row_of(pod.node_name)
        assert row is not None, "the node was looked up before"
        if not self.finder.reached(volume, table, np.array([row], dtype=np.int64))[0]:
            where = f'pv "{volume.name}" node affinity doesn\'t match node "{pod.node_name}"'
            raise VolumeBindingError(f"{where}: no matching NodeSelectorTerms")

    def _row_of(self, node_name: str) -> int | None:
        table = self.handle.table
        row = table.row_of.get(node_name)
        return None if row is None or table.nodes[row] is None else row


def _listed(objects: AssumedObjects[Object], wanted: Object, doing: str) -> Object:
    listed = objects.listed(wanted.namespace, wanted.name)
    if listed is None:
        raise VolumeBindingError(f'{doing}: {objects.plural} "{wanted.key}" not found')
    return listed
