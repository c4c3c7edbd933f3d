"""Owners: what becomes of a pod that is taken off its node: who makes another, and what that one is like.

A dump of a cluster often has pods without the workloads they belong to; a pod that names its controller is made anew
even so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.pod import EMPTY_STATUS, Pod
from ..cluster.memory import MemoryCluster

MIRROR = "kubernetes.io/config.mirror"
DAEMON_SET, NODE = "DaemonSet", "Node"


def is_daemon(pod: Pod) -> bool:
    """Whether the pod belongs to its node, as one of a DaemonSet."""
    owner = pod.controller
    return owner is not None and owner.kind == DAEMON_SET


def is_static(pod: Pod) -> bool:
    """Whether the kubelet runs the pod of its own accord; what the API server has is a mirror."""
    owner = pod.controller
    return MIRROR in pod.annotations or (owner is not None and owner.kind == NODE)


def is_bare(pod: Pod) -> bool:
    """Whether nobody makes another when the pod goes."""
    return pod.controller is None


def is_there(pod: Pod) -> bool:
    """Whether the pod counts: it is neither finished nor on its way out."""
    return not pod.is_finished and not pod.is_terminating


def successor_of(pod: Pod) -> Pod:
    """The pod that takes the place of one that is gone: the same wishes, and no node yet."""
    return pod.replace(
        uid="",
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
        node_name="",
        status=EMPTY_STATUS,
    )


class AbsentOwners:
    """Watches the cluster, and makes the pods that controllers would make that are not among its objects.

    Daemons and static pods go with their node. Whoever watches must have come before, so as to hear of the pod that
    goes before the one that comes.
    """

    def __init__(self, cluster: MemoryCluster, add: Callable[[Pod], None]) -> None:
        self._cluster = cluster
        self._add = add

    def on_add(self, obj: Any) -> None:
        """Nothing to do."""

    def on_update(self, old: Any, new: Any) -> None:
        """Nothing to do."""

    def on_delete(self, obj: Any) -> None:
        """A pod went: its controller, which we do not see, makes another."""
        if isinstance(obj, Pod) and self._is_missed(obj):
            self._add(successor_of(obj))

    def _is_missed(self, pod: Pod) -> bool:
        owner = pod.controller
        if owner is None or pod.is_finished or is_daemon(pod) or is_static(pod):
            return False
        key = owner.kind, pod.namespace, owner.name
        return self._cluster.get(*key) is None and not self._cluster.was_deleted(*key)
