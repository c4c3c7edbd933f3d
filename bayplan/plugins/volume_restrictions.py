"""VolumeRestrictions: disks that only one pod, or only one node, may use.

Mirrors pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from ..api.pod import Pod, PodSpec
from ..api.storage import PersistentVolumeClaim, not_found
from ..api.volumes import Volume
from ..framework import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PreFilterExtensions,
    PreFilterPlugin,
    Settled,
    Status,
    Verdict,
    failure,
    unresolvable,
)
from ..framework.events import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    ActionType,
    EventWithHint,
    names_claim,
    wait_for,
)
from ..framework.handle import release_of
from ..framework.interface import NOT_SETTLED, SKIPS_PRE_FILTER
from ..table import NodeTable, Rows
from ..table.volumes import ClaimUse, disks_of

REASON_DISK = "node(s) had no available disk"
STATE = "PreFilterVolumeRestrictions"


class OnePodClaims(msgspec.Struct):
    """The claims of the pod that only one pod may use (ReadWriteOncePod), and the number of their uses on nodes."""

    names: frozenset[str]
    uses: int

    def clone(self) -> "OnePodClaims":
        """A copy for a what-if."""
        return OnePodClaims(self.names, self.uses)

    def count(self, other: Pod, change: int) -> None:
        """Count `other`, added to a node (`change` 1) or removed (-1). Like upstream, this does not compare
        namespaces.
        """
        for volume in other.spec.volumes or ():
            source = volume.persistent_volume_claim
            if source is not None and source.claim_name in self.names:
                self.uses += change


class VolumeRestrictions(PreFilterPlugin, PreFilterExtensions, FilterPlugin):
    """A claim for one pod is judged for the cluster as a whole: preempting its holder helps on any node.

    Which rows have which disk is in the table.
    """

    name = "VolumeRestrictions"

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            wait_for(POD, ActionType.Delete, helps=after_pod_deleted),
            wait_for(NODE, ActionType.Add),
            wait_for(PERSISTENT_VOLUME_CLAIM, ActionType.Add, helps=names_claim),
        )

    def settled(self, spec: PodSpec) -> Settled:
        is_used = any(v.persistent_volume_claim or _is_disk(v) for v in spec.volumes or ())
        return NOT_SETTLED if is_used else SKIPS_PRE_FILTER

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        names: set[str] = set()
        for volume in pod.spec.volumes or ():
            source = volume.persistent_volume_claim
            if source is None:
                continue
            kind, name = PersistentVolumeClaim.kind, source.claim_name
            claim: PersistentVolumeClaim | None = self.handle.lister.get(kind, pod.namespace, name)
            if claim is None:
                return unresolvable(not_found(kind, name))
            if claim.is_for_one_pod:
                names.add(claim.name)
        uses = sum(_is_used(table, pod.namespace, name) for name in names)
        if uses == 0 and not any(_is_disk(volume) for volume in pod.spec.volumes or ()):
            return SKIP
        state.write(STATE, OnePodClaims(frozenset(names), uses))
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        return self._count(state, added, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        return self._count(state, removed, -1)

    def _count(self, state: CycleState, other: Pod, change: int) -> Status:
        claims = state.get(STATE)
        if claims is None:
            return failure(f'cannot read "{STATE}" from cycleState')
        claims.count(other, change)
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        taken = table.volumes.conflicts(pod.spec.volumes or (), rows)
        verdict.reject(taken, REASON_DISK)
        claims = state.get(STATE)
        if claims is None:
            if not taken.all():
                verdict.error = failure(f'cannot read "{STATE}" from cycleState')
        elif claims.uses > 0:
            verdict.reject(
                ~taken, release_of(self).one_pod_claim_reason
            )  # only the first reason is given
        return verdict


def _is_disk(volume: Volume) -> bool:
    """Whether the volume is of a kind that pods on one node may not share."""
    return volume.rbd is not None or next(disks_of(volume), None) is not None


def _is_used(table: NodeTable, namespace: str, name: str) -> bool:
    """Whether a pod on some node uses the claim."""
    rows = list(table.volumes.refs.rows(ClaimUse(namespace, name)))
    return bool(rows) and bool(np.any(table.live[rows]))


def after_pod_deleted(pod: Pod, deleted: Pod, after: None) -> bool:
    """Hint: a pod of the same namespace released a disk or a claim that the pod needs, on any node."""
    if deleted.namespace != pod.namespace:
        return False
    freed = deleted.spec.volumes or ()
    wanted = pod.spec.volumes or ()
    return any(
        is_conflict(one, other) or is_same_claim(one, other) for one in wanted for other in freed
    )


def is_same_claim(one: Volume, other: Volume) -> bool:
    """Whether two volumes of pods in one namespace name the same claim."""
    first, second = one.persistent_volume_claim, other.persistent_volume_claim
    return first is not None and second is not None and first.claim_name == second.claim_name


def is_conflict(one: Volume, other: Volume) -> bool:
    """Whether two volumes share a disk that pods on the same node cannot share."""
    held = dict(disks_of(other))
    return any(disk in held and not (reads and held[disk]) for disk, reads in disks_of(one))
