"""Pod resizes: fake kubelets grant resizes of running pods, or say why they cannot.

Mirrors pkg/kubelet/allocation. A resize that does not fit is tried again until it does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ...api.node import Node
from ...api.pod import Pod
from ...api.resources import pod_amounts, to_units
from ...cluster.objects import Later
from ..registry.pods import set_conditions
from .embedded_cluster import LiveCluster
from .kubelet_events import KubeletEvents
from .stage_statuses import StatusSink

Tree = dict[str, Any]

PENDING = "PodResizePending"
RETRY_S = 10.0
RESIZED = ("cpu", "memory")


class PodResizer:
    """Grants resizes, through `sink`."""

    def __init__(
        self, sink: StatusSink, cluster: LiveCluster, events: KubeletEvents, timers: Later
    ) -> None:
        self._sink = sink
        self._cluster = cluster
        self._events = events
        self._timers = timers

    def consider(self, pod: Pod) -> None:
        """Grant what the pod's spec asks for beyond its allocation, or write why not."""
        statuses = pod.status.container_statuses or ()
        if all(one.resources is None for one in statuses):
            return  # it was never resized
        node: Node | None = self._cluster.get("Node", "", pod.node_name)
        refusal = "" if node is None else self._refusal(pod, node)
        if not refusal:
            self._sink.write(pod, _granted)
            return
        self._sink.write(pod, partial(_deferred, why=refusal))
        self._events.warn(pod, "ResizeDeferred", refusal)
        self._timers.after(RETRY_S, partial(self._retry, pod))

    def _retry(self, pod: Pod) -> None:
        stored: Pod | None = self._cluster.get("Pod", pod.namespace, pod.name)
        if stored is not None and stored.uid == pod.uid and not stored.is_finished:
            self.consider(stored)

    def _refusal(self, pod: Pod, node: Node) -> str:
        """Why the node cannot grant it now; empty if it can."""
        wanted = to_units(pod_amounts(pod.spec))
        others = [
            other
            for other in self._cluster.list("Pod")
            if other.node_name == node.name and other.uid != pod.uid and not other.is_finished
        ]
        for name in RESIZED:
            asked, room = wanted.get(name, 0), node.allocatable.get(name, 0)
            used = sum(other.requests.get(name, 0) for other in others)
            if asked > room - used:
                return (
                    f"Node didn't have enough resource: {name}, requested: {asked}, used: {used},"
                    f" capacity: {room}"
                )
        return ""


def _granted(tree: Tree, now: str) -> Tree:
    sizes = {c.get("name"): c.get("resources") or {} for c in tree["spec"].get("containers") or ()}
    status = dict(tree.get("status") or {})

    def grow(one: Tree) -> Tree:
        size = sizes.get(one.get("name")) or {}
        return {**one, "resources": size, "allocatedResources": size.get("requests") or {}}

    status["containerStatuses"] = [grow(one) for one in status.get("containerStatuses") or ()]
    status["conditions"] = [c for c in status.get("conditions") or () if c.get("type") != PENDING]
    status["observedGeneration"] = tree["metadata"].get("generation", 1)
    return {**tree, "status": status}


def _deferred(tree: Tree, now: str, why: str) -> Tree:
    status = dict(tree.get("status") or {})
    condition = {"type": PENDING, "status": "True", "reason": "Deferred", "message": why}
    set_conditions(status, [condition], now)
    return {**tree, "status": status}
