"""Queueing hints: events after which the claims of a pod may find volumes.

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
    StorageClass,
)
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
    required,
    uses_claim,
    wait_for,
)


def events() -> tuple[EventWithHint, ...]:
    """Events that a pod waits for."""
    changes = ActionType.Add | ActionType.Update
    return (
        wait_for(STORAGE_CLASS, changes, helps=after_class_change),
        wait_for(PERSISTENT_VOLUME_CLAIM, changes, helps=uses_claim),
        wait_for(PERSISTENT_VOLUME, changes),
        wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel),
        wait_for(CSI_NODE, changes, helps=after_csi_node_change),
        wait_for(CSI_DRIVER, ActionType.Update, helps=after_driver_change),
        wait_for(CSI_STORAGE_CAPACITY, changes, helps=after_capacity_change),
    )


def after_class_change(pod: Pod, before: StorageClass | None, after: StorageClass) -> bool:
    """Hint: a class was added, or its allowed topologies changed."""
    return before is None or not is_equal(before.allowed_topologies, after.allowed_topologies)


def after_csi_node_change(pod: Pod, before: CSINode | None, after: CSINode) -> bool:
    """Hint: drivers were registered on a node, or other in-tree volumes were migrated there."""
    if before is None:
        return True
    then, now = (node.annotations.get(MIGRATED_PLUGINS, "") for node in (before, after))
    return then != now


def after_driver_change(pod: Pod, before: Any, after: CSIDriver) -> bool:
    """Hint: the driver of an inline volume of the pod no longer publishes its capacity."""
    if not required(CSIDriver, before).spec.storage_capacity or after.spec.storage_capacity:
        return False
    return any(v.csi is not None and v.csi.driver == after.name for v in pod.spec.volumes or ())


def after_capacity_change(
    pod: Pod, before: CSIStorageCapacity | None, after: CSIStorageCapacity
) -> bool:
    """Hint: capacity was published, or has grown."""
    if before is None:
        return True
    then, now = before.limit_bytes, after.limit_bytes
    return now is not None and (then is None or now > then)
