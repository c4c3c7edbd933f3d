"""Hints: which events may let the claims of a pod find volumes.

Mirrors the queueing hints of pkg/scheduler/framework/plugins/volumebinding/volume_binding.go.
"""

from typing import Any

from ...api.meta import is_equal
from ...api.pod import Pod
from ...api.storage import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from ...api.volumes import claim_name_of
from ...framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    EventWithHint,
    Hint,
    required,
    typed,
    wait_for,
)


def events() -> tuple[EventWithHint, ...]:
    """Events that a pod waits for."""
    changes = ActionType.Add | ActionType.Update
    return (
        wait_for(STORAGE_CLASS, changes, after_class_change),
        wait_for(PERSISTENT_VOLUME_CLAIM, changes, after_claim_change),
        wait_for(PERSISTENT_VOLUME, changes),
        wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel),
        wait_for(CSI_NODE, changes, after_csi_node_change),
        wait_for(CSI_DRIVER, ActionType.Update, after_driver_change),
        wait_for(CSI_STORAGE_CAPACITY, changes, after_capacity_change),
    )


def after_class_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A class came, or volumes of it may be made elsewhere than before."""
    before, after = typed(StorageClass, old), required(StorageClass, new)
    same = before is not None and is_equal(before.allowed_topologies, after.allowed_topologies)
    return Hint.SKIP if same else Hint.QUEUE


def after_claim_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A claim that the pod uses came or changed."""
    typed(PersistentVolumeClaim, old)
    claim = required(PersistentVolumeClaim, new)
    helps = claim.namespace == pod.namespace and any(
        claim_name_of(volume, pod.name) == claim.name for volume in pod.spec.volumes or ()
    )
    return Hint.QUEUE if helps else Hint.SKIP


def after_csi_node_change(pod: Pod, old: Any, new: Any) -> Hint:
    """A node has drivers now, or other volumes were handed over to drivers there."""
    if old is None:
        return Hint.QUEUE
    before, after = required(CSINode, old), required(CSINode, new)
    then, now = (node.annotations.get(MIGRATED_PLUGINS, "") for node in (before, after))
    return Hint.QUEUE if then != now else Hint.SKIP


def after_driver_change(pod: Pod, old: Any, new: Any) -> Hint:
    """The driver of a volume written into the pod no longer publishes its capacity."""
    before, after = required(CSIDriver, old), required(CSIDriver, new)
    ended = bool(before.spec.storage_capacity) and not after.spec.storage_capacity
    uses = any(v.csi is not None and v.csi.driver == after.name for v in pod.spec.volumes or ())
    return Hint.QUEUE if ended and uses else Hint.SKIP


def after_capacity_change(pod: Pod, old: Any, new: Any) -> Hint:
    """Room was announced, or more of it."""
    before, after = typed(CSIStorageCapacity, old), required(CSIStorageCapacity, new)
    if before is None:
        return Hint.QUEUE
    then, now = before.limit_bytes, after.limit_bytes
    return Hint.QUEUE if now is not None and (then is None or now > then) else Hint.SKIP
