"""VolumeRestrictions: disks that only one pod, or only one node, may use.

Mirrors pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go. The rules are not there yet: a pod
they would apply to is refused.
"""

from collections.abc import Sequence
from typing import Any

from ..api.pod import Pod
from ..api.storage import PersistentVolumeClaim
from ..api.volumes import Volume
from ..framework import (
    SKIP,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    Status,
    Verdict,
    unresolvable,
)
from ..framework.events import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    ActionType,
    EventWithHint,
    Hint,
    required,
    typed,
    wait_for,
)
from ..table import NodeTable, Rows

NOT_THERE = "VolumeRestrictions does not judge disks and claims yet"


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    name = "VolumeRestrictions"

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            wait_for(POD, ActionType.Delete, after_pod_deleted),
            wait_for(NODE, ActionType.Add),
            wait_for(PERSISTENT_VOLUME_CLAIM, ActionType.Add, after_claim_added),
        )

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        restricted = any(
            volume.persistent_volume_claim
            or volume.gce_persistent_disk
            or volume.aws_elastic_block_store
            or volume.rbd
            or volume.iscsi
            for volume in pod.spec.volumes or ()
        )
        return unresolvable(NOT_THERE) if restricted else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.accept(table, rows)


def after_pod_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    """A pod of the same namespace let go of a disk or a claim that the pod needs, on whichever node."""
    typed(Pod, new)
    deleted = required(Pod, old)
    if deleted.namespace != pod.namespace:
        return Hint.SKIP
    freed = deleted.spec.volumes or ()
    wanted = pod.spec.volumes or ()
    helps = any(
        is_conflict(one, other) or is_same_claim(one, other) for one in wanted for other in freed
    )
    return Hint.QUEUE if helps else Hint.SKIP


def after_claim_added(pod: Pod, old: Any, new: Any) -> Hint:
    """A claim that the pod names came."""
    typed(PersistentVolumeClaim, old)
    claim = required(PersistentVolumeClaim, new)
    if claim.namespace != pod.namespace:
        return Hint.SKIP
    named = (volume.persistent_volume_claim for volume in pod.spec.volumes or ())
    helps = any(source is not None and source.claim_name == claim.name for source in named)
    return Hint.QUEUE if helps else Hint.SKIP


def is_same_claim(one: Volume, other: Volume) -> bool:
    """Whether two volumes of pods in one namespace name the same claim."""
    first, second = one.persistent_volume_claim, other.persistent_volume_claim
    return first is not None and second is not None and first.claim_name == second.claim_name


def is_conflict(one: Volume, other: Volume) -> bool:
    """Whether two volumes are one disk that pods on the same node cannot share."""
    return (
        _is_same_gce_disk(one, other)
        or _is_same_aws_disk(one, other)
        or _is_same_iscsi_disk(one, other)
        or _is_same_rbd_image(one, other)
    )


def _is_same_gce_disk(one: Volume, other: Volume) -> bool:
    disk, second = one.gce_persistent_disk, other.gce_persistent_disk
    if disk is None or second is None or (disk.read_only and second.read_only):
        return False
    return disk.pd_name == second.pd_name


def _is_same_aws_disk(one: Volume, other: Volume) -> bool:
    """Not even readers can share these."""
    disk, second = one.aws_elastic_block_store, other.aws_elastic_block_store
    return disk is not None and second is not None and disk.volume_id == second.volume_id


def _is_same_iscsi_disk(one: Volume, other: Volume) -> bool:
    """The name alone tells disks apart, whatever the portal and the unit."""
    disk, second = one.iscsi, other.iscsi
    if disk is None or second is None or (disk.read_only and second.read_only):
        return False
    return disk.iqn == second.iqn


def _is_same_rbd_image(one: Volume, other: Volume) -> bool:
    disk, second = one.rbd, other.rbd
    if disk is None or second is None or (disk.read_only and second.read_only):
        return False
    shares_monitor = not set(disk.monitors or ()).isdisjoint(second.monitors or ())
    return shares_monitor and (disk.pool, disk.image) == (second.pool, second.image)
