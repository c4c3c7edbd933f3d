"""Node controller: the consequences of cordoning, tainting and removing nodes.

Mirrors pkg/controller/nodelifecycle, pkg/controller/tainteviction and, without its delay,
pkg/controller/podgc; the annotation is that of pkg/controller/ttl.
"""

from __future__ import annotations

from typing import Any

from ...api.node import Node
from ...api.pod import Pod
from ...api.taints import NO_EXECUTE, Taint, tolerated
from ...cluster.objects.object_index import Later
from ..registry.object_registry import DeleteOptions
from ..registry.pods import PODS
from ..registry.resource_table import BY_STORAGE
from .embedded_cluster import LiveCluster
from .recorder import Reporter

TAINT_MANAGER = Reporter("taint-eviction-controller")
NODES = BY_STORAGE["nodes"]
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


TTL = "node.alpha.kubernetes.io/ttl"


TTL_STEPS = (
    (0, 100, 0),
    (90, 500, 15),
    (450, 1000, 30),
    (900, 2000, 60),
    (1800, float("inf"), 300),
)
"""Least and most nodes of a cluster, and the seconds that kubelets may keep objects there."""


class NodeController:
    """Watches the cluster; `run_once` does the pending work."""

    def __init__(self, cluster: LiveCluster, timers: Later) -> None:
        self._cluster = cluster
        self._registry = cluster.registry
        self._timers = timers
        self._changed: dict[str, None] = {}
        self._pods: dict[tuple[str, str], None] = {}
        self._ttl_step = 0

    def on_add(self, obj: Any) -> None:
        """Handle a new node with taints, or a new pod on a tainted node."""
        if isinstance(obj, Node):
            self._changed[obj.name] = None
        elif isinstance(obj, Pod) and obj.node_name:
            node: Node | None = self._cluster.get("Node", "", obj.node_name)
            if node is None or node.taints:
                self._pods[obj.namespace, obj.name] = None

    def on_update(self, old: Any, new: Any) -> None:
        """Handle changed taints and cordons."""
        if isinstance(new, Node):
            if old.taints != new.taints or old.unschedulable != new.unschedulable:
                self._changed[new.name] = None
        elif isinstance(new, Pod) and new.node_name != old.node_name:
            self.on_add(new)

    def on_delete(self, obj: Any) -> None:
        """Delete the pods of a deleted node."""
        if isinstance(obj, Node):
            self._changed[obj.name] = None

    @property
    def has_work(self) -> bool:
        """Whether work is pending."""
        return bool(self._changed or self._pods)

    def run_once(self) -> None:
        """Do the pending work."""
        changed, self._changed = self._changed, {}
        arrived, self._pods = self._pods, {}
        for name in changed:
            node = self._cluster.get("Node", "", name)
            if node is not None:
                self._taint(node)
                self._set_ttl(name)
        affected = (
            [pod for pod in self._cluster.list("Pod") if pod.node_name in changed]
            if changed
            else []
        )
        affected += filter(None, (self._cluster.get("Pod", *key) for key in arrived))
        for pod in affected:
            self._judge(pod)

    def _taint(self, node: Node) -> None:
        """Keep the taint of a cordoned node in sync."""
        has = any(taint.key == UNSCHEDULABLE["key"] for taint in node.taints)
        if has == node.unschedulable:
            return
        record = self._registry.get(NODES, "", node.name)
        tree = record.decode()
        spec = tree.setdefault("spec", {})
        others = [t for t in spec.get("taints") or () if t.get("key") != UNSCHEDULABLE["key"]]
        if node.unschedulable:
            others.append({**UNSCHEDULABLE, "timeAdded": self._registry.now()})
        if others:
            spec["taints"] = others
        else:
            spec.pop("taints", None)
        self._registry.write(NODES, record, tree)
        reason = "NodeNotSchedulable" if node.unschedulable else "NodeSchedulable"
        text = f"Node {node.name} status is now: {reason}"
        self._cluster.tell(node, Reporter("kubelet", node.name), ("Normal", reason), text)

    def _set_ttl(self, name: str) -> None:
        """Annotate the node with the seconds that its kubelet may keep Secrets, by the number of nodes."""
        count = self._registry.store.count(NODES.storage)
        while count > TTL_STEPS[self._ttl_step][1]:
            self._ttl_step += 1
        while count < TTL_STEPS[self._ttl_step][0]:
            self._ttl_step -= 1
        record = self._registry.get(NODES, "", name)
        tree, seconds = record.decode(), str(TTL_STEPS[self._ttl_step][2])
        notes = tree["metadata"].get("annotations") or {}
        if notes.get(TTL) != seconds:
            tree["metadata"]["annotations"] = {**notes, TTL: seconds}
            self._registry.write(NODES, record, tree)

    def _judge(self, pod: Pod) -> None:
        """Delete a pod whose node was deleted or evicts it by a taint, now or after its toleration seconds."""
        node: Node | None = self._cluster.get("Node", "", pod.node_name)
        if node is None:
            if self._cluster.was_deleted("Node", "", pod.node_name):
                self._delete(pod, 0)
            return
        taints = [taint for taint in node.taints if taint.effect == NO_EXECUTE]
        if not taints or pod.is_terminating or pod.is_finished:
            return
        patience_s = _patience_s(pod, taints)
        if patience_s is None:
            return
        if patience_s <= 0:
            self._evict(pod)
            return

        def run_out() -> None:
            again: Node | None = self._cluster.get("Node", "", pod.node_name)
            if again is not None and set(taints) & set(again.taints):
                self._evict(pod)

        self._timers.after(patience_s, run_out)

    def _evict(self, pod: Pod) -> None:
        text = f"Marking for deletion Pod {pod.namespace}/{pod.name}"
        self._cluster.tell(pod, TAINT_MANAGER, ("Normal", "TaintManagerEviction"), text)
        self._delete(pod, None)

    def _delete(self, pod: Pod, grace_s: int | None) -> None:
        options = DeleteOptions(grace_s=grace_s, uid=pod.uid)
        self._registry.delete_if_there(PODS, pod.namespace, pod.name, options)


def _patience_s(pod: Pod, taints: list[Taint]) -> float | None:
    """Seconds that the pod may stay; None if it is not limited."""
    patience: list[float] = []
    for taint in taints:
        matching = [t for t in pod.tolerations if tolerated(taint, (t,))]
        if not matching:
            return 0
        limits = [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
        if limits:
            patience.append(max(min(limits), 0))
    return min(patience, default=None)
