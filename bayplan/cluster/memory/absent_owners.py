"""Absent owners: recreate deleted pods whose controller is not among the cluster's objects.

A dump of a cluster often has pods without their workloads; a pod that names a controller is
recreated even so.
"""

from __future__ import annotations

from typing import Any

from ...api.pod import EMPTY_STATUS, Pod
from ..objects.object_index import WatchHandler
from .object_store import MemoryCluster

MIRROR, SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"
KUBELET_SOURCES = ("file", "http")
"""Folders that the kubelet reads static pods from; the source of all others is `api`."""
DAEMON_SET, NODE = "DaemonSet", "Node"


def is_daemon(pod: Pod) -> bool:
    """Whether the pod is bound to its node by a DaemonSet."""
    owner = pod.controller
    return owner is not None and owner.kind == DAEMON_SET


def is_static(pod: Pod) -> bool:
    """Whether the kubelet runs the pod from a static manifest; the API server's object is a mirror."""
    if MIRROR in pod.annotations or pod.annotations.get(SOURCE) in KUBELET_SOURCES:
        return True
    return any(owner.kind == NODE for owner in pod.owner_references)


def stays_with_node(pod: Pod) -> bool:
    """Whether the pod belongs to its node, which is empty without it: of a DaemonSet, or static."""
    return is_daemon(pod) or is_static(pod)


def has_local_storage(pod: Pod) -> bool:
    """Whether the pod has an emptyDir, which is deleted with it."""
    return any(volume.empty_dir is not None for volume in pod.spec.volumes or ())


def is_bare(pod: Pod) -> bool:
    """Whether no controller would recreate the pod."""
    return pod.controller is None


def successor_of(pod: Pod) -> Pod:
    """The replacement of a deleted pod: the same spec, without a node."""
    return pod.replace(
        uid="",
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
        node_name="",
        status=EMPTY_STATUS,
    )


class AbsentOwners(WatchHandler):
    """Stands in for controllers that are not among the cluster's objects. Watches the cluster.

    Daemons and static pods are deleted with their node.
    """

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._missed: list[Pod] = []

    def on_delete(self, obj: Any) -> None:
        """Record a deleted pod."""
        if isinstance(obj, Pod) and obj.controller is not None and not obj.is_finished:
            self._missed.append(obj)

    @property
    def has_work(self) -> bool:
        """Whether pods were deleted."""
        return bool(self._missed)

    def take_missing(self) -> list[Pod]:
        """The replacements of the deleted pods that no controller recreates; each is returned once."""
        missed, self._missed = self._missed, []
        return [successor_of(pod) for pod in missed if self._is_missing(pod)]

    def _is_missing(self, pod: Pod) -> bool:
        owner = pod.controller
        if owner is None or stays_with_node(pod):
            return False
        key = owner.kind, pod.namespace, owner.name
        return (
            self._cluster.get(*key) is None
            and not self._cluster.was_deleted(*key)
            and self._cluster.get("Pod", pod.namespace, pod.name) is None
            and self._cluster.get("Namespace", "", pod.namespace) is not None
        )
