"""Owners: whether an evicted pod is recreated, and with which spec.

A dump of a cluster often has pods without their workloads; a pod that names a controller is
recreated even so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.pod import EMPTY_STATUS, Pod
from ..cluster.memory import MemoryCluster

MIRROR = "kubernetes.io/config.mirror"
DAEMON_SET, NODE = "DaemonSet", "Node"


def is_daemon(pod: Pod) -> bool:
    """Whether the pod is bound to its node by a DaemonSet."""
    owner = pod.controller
    return owner is not None and owner.kind == DAEMON_SET


def is_static(pod: Pod) -> bool:
    """Whether the kubelet runs the pod from a static manifest; the API server's object is a mirror."""
    owner = pod.controller
    return MIRROR in pod.annotations or (owner is not None and owner.kind == NODE)


def is_bare(pod: Pod) -> bool:
    """Whether no controller would recreate the pod."""
    return pod.controller is None


def is_there(pod: Pod) -> bool:
    """Whether the pod is neither finished nor terminating."""
    return not pod.is_finished and not pod.is_terminating


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


class AbsentOwners:
    """Recreates deleted pods for controllers that are not among the cluster's objects.

    Daemons and static pods are deleted with their node. This watcher must be registered before
    others, so that it handles a deletion before the replacement is added.
    """

    def __init__(self, cluster: MemoryCluster, add: Callable[[Pod], None]) -> None:
        self._cluster = cluster
        self._add = add

    def on_add(self, obj: Any) -> None:
        """Nothing to do."""

    def on_update(self, old: Any, new: Any) -> None:
        """Nothing to do."""

    def on_delete(self, obj: Any) -> None:
        """Recreate a deleted pod whose controller is not in the cluster."""
        if isinstance(obj, Pod) and self._is_missed(obj):
            self._add(successor_of(obj))

    def _is_missed(self, pod: Pod) -> bool:
        owner = pod.controller
        if owner is None or pod.is_finished or is_daemon(pod) or is_static(pod):
            return False
        key = owner.kind, pod.namespace, owner.name
        return self._cluster.get(*key) is None and not self._cluster.was_deleted(*key)
