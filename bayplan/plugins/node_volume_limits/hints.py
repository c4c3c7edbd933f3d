"""Queueing hints: events after which a pod refused for its number of volumes may fit.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
"""

from typing import Any

from ...api.migration import inline_csi_driver, is_inline_migrated
from ...api.pod import Pod, PodSpec
from ...api.storage import CSINode, VolumeAttachment
from ...framework.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    ActionType,
    EventWithHint,
    required,
    uses_claim,
    wait_for,
)


def events() -> tuple[EventWithHint, ...]:
    """Events that a pod waits for."""
    return (
        wait_for(CSI_NODE, ActionType.Add),
        wait_for(CSI_NODE, ActionType.Update, helps=after_csi_node_updated),
        wait_for(POD, ActionType.Delete, helps=after_pod_deleted),
        wait_for(PERSISTENT_VOLUME_CLAIM, ActionType.Add, helps=uses_claim),
        wait_for(VOLUME_ATTACHMENT, ActionType.Delete, helps=after_attachment_deleted),
    )


def after_csi_node_updated(pod: Pod, before: Any, after: CSINode) -> bool:
    """Hint: the limit of some driver has grown; a driver without a limit counts as zero."""
    then = dict(_limits(required(CSINode, before)))
    return any(limit > then.get(driver, 0) for driver, limit in _limits(after))


def after_pod_deleted(pod: Pod, deleted: Pod, after: None) -> bool:
    """Hint: a pod with a volume that may have been attached was removed from a node."""
    return deleted.is_assigned_or_nominated and has_volumes(deleted.spec)


def has_volumes(spec: PodSpec) -> bool:
    """Whether pods of the spec use volumes that may have a CSI driver."""
    return any(
        volume.persistent_volume_claim or volume.ephemeral or is_inline_migrated(volume)
        for volume in spec.volumes or ()
    )


def after_attachment_deleted(pod: Pod, detached: VolumeAttachment, after: None) -> bool:
    """Hint: a volume was detached; pods without a claim are tried only if it is a volume of their driver."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return True
        driver = inline_csi_driver(volume)
        if driver is not None and driver == detached.spec.attacher:
            return True
    return False


def _limits(node: CSINode) -> list[tuple[str, int]]:
    """Each driver on the node with the volumes it can attach."""
    return [
        (driver.name, (driver.allocatable.count or 0) if driver.allocatable else 0)
        for driver in node.spec.drivers or ()
    ]
