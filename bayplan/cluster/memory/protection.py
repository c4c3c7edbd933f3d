"""Protection: claims in use by pods on nodes, bound volumes, and pod groups with members are deleted after their use.

Mirrors pkg/controller/volume/{pvcprotection,pvprotection} and pkg/controller/scheduling/podgroupprotection: until then
the object is terminating.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ...api.pod import Pod
from ...api.pod_groups import PodGroup, pod_group_of
from ...api.storage import PersistentVolume, PersistentVolumeClaim
from ..objects.object_index import ControllerCluster, WatchHandler

Protected = PersistentVolume | PersistentVolumeClaim | PodGroup


class Protection(WatchHandler):
    """Delays deletions. Notified by `on_update` and `on_delete`; `run_once` deletes unused terminating objects."""

    def __init__(self, cluster: ControllerCluster) -> None:
        self._cluster = cluster
        self._leaving: dict[tuple[str, str, str], None] = {}
        self.has_work = False
        """Whether an object may have become unused."""

    def delete(self, obj: Protected, now: str) -> None:
        """Delete `obj` if it is unused, else mark it as terminating since `now`."""
        if not is_used(self._cluster, obj):
            self._cluster.delete(obj)
        elif not obj.is_terminating:
            self._leaving[obj.kind, obj.namespace, obj.name] = None
            metadata = replace(obj.metadata, deletion_timestamp=now)
            self._cluster.update(replace(obj, metadata=metadata))

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a volume that may no longer be bound, or a finished pod."""
        if isinstance(new, Pod):
            self.has_work |= bool(self._leaving) and new.is_finished and not old.is_finished
        else:
            self.has_work |= (new.kind, new.namespace, new.name) in self._leaving

    def on_delete(self, obj: Any) -> None:
        """Handle a pod that no longer uses its claims and is in no group."""
        self._leaving.pop((obj.kind, obj.namespace, obj.name), None)
        self.has_work |= isinstance(obj, Pod) and bool(self._leaving)

    def run_once(self) -> None:
        """Delete the unused terminating objects."""
        self.has_work = False
        for key in list(self._leaving):
            obj = self._cluster.get(*key)
            if obj is not None and not is_used(self._cluster, obj):
                self._release(obj)

    def _release(self, obj: Protected) -> None:
        """Delete a terminating object that is no longer used."""
        self._cluster.delete(obj)


def is_used(cluster: ControllerCluster, obj: Protected) -> bool:
    """Whether a volume is bound, a pod on a node uses a claim, or a group has a member that has not finished."""
    if isinstance(obj, PersistentVolume):
        return obj.status.phase == "Bound"
    if isinstance(obj, PodGroup):
        pods = cluster.list("Pod", obj.namespace)
        return any(pod_group_of(pod) == obj.name and not pod.is_finished for pod in pods)
    return any(pod.node_name and obj.is_used_by(pod) for pod in cluster.list("Pod", obj.namespace))
