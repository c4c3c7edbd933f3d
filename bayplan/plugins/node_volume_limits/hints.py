"""Hints: which events may let a pod onto a node that had too many volumes.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
"""

from typing import Any

from ...api.migration import inline_csi_driver, is_inline_migrated
from ...api.pod import Pod
from ...api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from ...api.volumes import claim_name_of
from ...framework.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    ActionType,
    EventWithHint,
    Hint,
    required,
    typed,
    wait_for,
)


def events() -> tuple[EventWithHint, ...]:
    """Events that a pod waits for."""
    return (
        wait_for(CSI_NODE, ActionType.Add),
        wait_for(CSI_NODE, ActionType.Update, after_csi_node_updated),
        wait_for(POD, ActionType.Delete, after_pod_deleted),
        wait_for(PERSISTENT_VOLUME_CLAIM, ActionType.Add, after_claim_added),
        wait_for(VOLUME_ATTACHMENT, ActionType.Delete, after_attachment_deleted),
    )


def after_csi_node_updated(pod: Pod, old: Any, new: Any) -> Hint:
    """The limit of some driver must have grown; a driver that names no limit counts as zero."""
    then, now = dict(_limits(required(CSINode, old))), _limits(required(CSINode, new))
    grown = any(limit > then.get(driver, 0) for driver, limit in now)
    return Hint.QUEUE if grown else Hint.SKIP


def after_pod_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    """A pod with a volume that may have been attached must have left a node."""
    typed(Pod, new)
    deleted = required(Pod, old)
    helps = deleted.is_assigned_or_nominated and any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or is_inline_migrated(volume)
        for volume in deleted.spec.volumes or ()
    )
    return Hint.QUEUE if helps else Hint.SKIP


def after_claim_added(pod: Pod, old: Any, new: Any) -> Hint:
    """A claim that the pod uses came."""
    typed(PersistentVolumeClaim, old)
    claim = required(PersistentVolumeClaim, new)
    helps = claim.namespace == pod.namespace and any(
        claim_name_of(volume, pod.name) == claim.name for volume in pod.spec.volumes or ()
    )
    return Hint.QUEUE if helps else Hint.SKIP


def after_attachment_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    """A volume was detached: any pod with a claim is tried, others only if it was their driver's."""
    typed(VolumeAttachment, new)
    attacher = required(VolumeAttachment, old).spec.attacher
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        driver = inline_csi_driver(volume)
        if driver is not None and driver == attacher:
            return Hint.QUEUE
    return Hint.SKIP


def _limits(node: CSINode) -> list[tuple[str, int]]:
    """Each driver on the node with the volumes it can attach."""
    return [
        (driver.name, (driver.allocatable.count or 0) if driver.allocatable else 0)
        for driver in node.spec.drivers or ()
    ]
