"""Checks: invariants of every moment of a history, and of its settled state.

They read the store of the simulated API server and do their own arithmetic; nothing of the scheduler decides here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from bayplan.drivers.kube_driver import KubeDriver
from bayplan.scheduler.debugger import differences
from tests.rig.simulated import SimulatedApi, VersionedStore
from tests.rig.simulated.api import BindingRequest
from tests.rig.simulated.store import DELETED, LoggedChange, is_finished

from .workload import FOREIGN

Tree = dict[str, Any]

KINDS = {"namespaces": "Namespace", "nodes": "Node", "pods": "Pod"}
"""Fields in which the scheduler's caches are compared."""


class Watchdog:
    """Follows the bindings: no node is overcommitted, and no pod is given a second node."""

    def __init__(self, api: SimulatedApi) -> None:
        self.problems: list[str] = []
        self.bound = 0
        self._store = api.store
        self._nodes: dict[str, str] = {}
        """The node of each pod that the scheduler has bound, by uid."""
        api.on_binding = self._on_binding
        api.on_status = self._on_status
        api.store.on_change.append(self._on_change)

    def _on_binding(self, binding: BindingRequest) -> None:
        before = self._nodes.get(binding.uid, binding.node_name)
        if before != binding.node_name:
            self.problems.append(
                f"pod {binding.name} was bound to {before}, and is to be bound to {binding.node_name}"
            )
        if binding.is_written:
            self._nodes[binding.uid] = binding.node_name
            self.bound += 1

    def _on_status(self, pod: Tree, status: Tree) -> None:
        """A pod that was bound is not reported as one that could not be."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        is_refused = any(
            condition["type"] == "PodScheduled" and condition["status"] == "False"
            for condition in status.get("conditions", ())
        )
        if uid in self._nodes and (is_refused or status.get("nominatedNodeName")):
            self.problems.append(f"pod {name} is bound, and its status says that it is not")

    def _on_change(self, plural: str, change: LoggedChange) -> None:
        if plural != "pods":
            return
        if change.type == DELETED:
            self._nodes.pop(change.stored.tree["metadata"]["uid"], None)
            return
        name = change.stored.tree["spec"].get("nodeName", "")
        if not name or name == change.before.get("spec", {}).get("nodeName") or name == FOREIGN:
            return
        node = self._store.get("nodes", "", name)
        if node is not None and free_milli_cpu(self._store)[name] < 0:
            pods = [p["metadata"]["name"] for p in pods_on(self._store, name)]
            self.problems.append(f"node {name} is overcommitted by the pods {', '.join(pods)}")


def pods_on(store: VersionedStore, node_name: str) -> list[Tree]:
    """The pods that use a node."""
    return [
        pod
        for pod in store.trees("pods")
        if pod["spec"].get("nodeName") == node_name and not is_finished(pod)
    ]


def milli_cpu(pod: Tree) -> int:
    """Requests of a pod."""
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


def free_milli_cpu(store: VersionedStore, priority: int | None = None) -> Counter[str]:
    """Free amounts of each node; with a priority, those without the pods of lower ones."""
    free = Counter(
        {
            node["metadata"]["name"]: int(node["status"]["allocatable"]["cpu"]) * 1000
            for node in store.trees("nodes")
        }
    )
    for pod in store.trees("pods"):
        node_name = pod["spec"].get("nodeName")
        is_counted = priority is None or pod["spec"].get("priority", 0) >= priority
        if node_name in free and is_counted and not is_finished(pod):
            free[node_name] -= milli_cpu(pod)
    return free


def pending(store: VersionedStore) -> list[Tree]:
    """The pods that wait for a node."""
    return [p for p in store.trees("pods") if not p["spec"].get("nodeName") and not is_finished(p)]


def not_bound(store: VersionedStore, with_preemption: bool) -> Iterator[str]:
    """Pods that wait although there is room, or would be by preemption."""
    usable = [
        node["metadata"]["name"]
        for node in store.trees("nodes")
        if not node["spec"].get("unschedulable") and not node["spec"].get("taints")
    ]
    for pod in pending(store):
        priority = pod["spec"].get("priority", 0) if with_preemption else None
        free = free_milli_cpu(store, priority)
        roomy = [name for name in usable if free[name] >= milli_cpu(pod)]
        if roomy:
            how = " by preemption" if with_preemption else ""
            yield f"pod {pod['metadata']['name']} waits although it fits on {roomy[0]}{how}"


def differs(driver: KubeDriver, store: VersionedStore) -> Iterator[str]:
    """Differences of the scheduler's caches from the server."""
    scheduler = driver.scheduler
    assert scheduler is not None, "the driver runs"
    yield from differences(scheduler)
    for plural, kind in KINDS.items():
        trees = [tree for tree in store.trees(plural) if not is_finished(tree)]
        stored = {_identity(tree["metadata"]) for tree in trees}
        known = {
            (obj.namespace, obj.name, obj.uid, obj.resource_version)
            for obj in driver.cluster.list(kind)
        }
        for one in sorted(stored ^ known):
            where = "the server alone" if one in stored else "the scheduler alone"
            yield f"{kind} {one[1]} at version {one[3]} is in {where}"
    table = scheduler.cache.table
    free = free_milli_cpu(store)
    for name, row in table.row_of.items():
        node = table.nodes[row]
        if node is None:
            continue
        requested = table.requested.at(row).get("cpu", 0)
        left = table.allocatable.at(row)["cpu"] - requested
        if left != free[name]:
            yield f"node {name} has {free[name]}m free, and {left}m in the cache"
    assumed = scheduler.cache.sizes()["assumed_pods"]
    if assumed:
        yield f"{assumed} pods are still assumed"
    waiting = {pod["metadata"]["uid"] for pod in pending(store)}
    if len(scheduler.queue) != len(waiting):
        yield f"{len(waiting)} pods wait, and {len(scheduler.queue)} are in the queue"


def _identity(metadata: Tree) -> tuple[str, str, str, str]:
    return (
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        metadata["resourceVersion"],
    )
