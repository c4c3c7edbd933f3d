"""Cluster: a cluster for one test on a server that many tests share. Its objects are removed afterwards.

cluster.node("a", labels={"disk": "fast"})
cluster.start_scheduler()
cluster.pod("web", nodeSelector={"disk": "fast"})
assert cluster.wait_bound("web") == "a"
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from .client import LiveClient, RefusedError, Tree
from .control_plane import gate_arguments
from .follower import WAIT_S, Key, ListFollower, key_of
from .kinds import KINDS, path_of, with_head
from .kubelets import LiveKubelets
from .processes import Process
from .schedulers import make_config, scheduler_under_test, start_scheduler
from .volumes import Volumes

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


class Server(Protocol):
    """An API server that can be stopped and started again."""

    kubeconfig: Path
    folder: Path
    api_server: Process
    has_controllers: bool
    gates: tuple[str, ...]
    """The feature gates that are on."""

    def start_api_server(self) -> None: ...
    def kill_api_server(self) -> None: ...
    def stop(self) -> None: ...


class Bindings:
    """The nodes each pod was bound to, in order, from watching all pods."""

    def __init__(self) -> None:
        self.nodes: dict[str, list[str]] = {}
        self.versions: dict[Key, int] = {}
        """The resourceVersion at which a pod was first seen with a node."""

    def on_pod(self, kind: str, pod: Tree) -> None:
        """Record a pod."""
        seen = self.nodes.setdefault(pod["metadata"]["uid"], [])
        node = pod["spec"].get("nodeName", "")
        if node != (seen[-1] if seen else ""):
            seen.append(node)
            self.versions[key_of(pod)] = int(pod["metadata"]["resourceVersion"])

    def moved(self) -> dict[str, list[str]]:
        """The pods that changed their node, by uid; must be empty."""
        return {uid: nodes for uid, nodes in self.nodes.items() if len(nodes) > 1}


class ClusterUnderTest:
    """The cluster of one test: its own namespace, and cluster-scoped objects."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.client = LiveClient(server.kubeconfig)
        self.namespace = f"test-{uuid4().hex[:8]}"
        self.bindings = Bindings()
        self._folder = folder
        self._count = itertools.count()
        self._made: list[str] = []
        self._schedulers: list[Process] = []
        self.client.create(path_of("Namespace"), {"metadata": {"name": self.namespace}})
        self.pods = ListFollower(self.client, path_of("Pod"), self.bindings.on_pod)
        self._players: list[LiveKubelets | Volumes] = []
        if not server.has_controllers:
            self._players = [LiveKubelets(self.client), Volumes(self.client)]

    def close(self) -> None:
        """Stop the schedulers of the test and delete its objects."""
        for process in self._schedulers:
            process.kill()
        # From the server, because the follower may not know the last ones yet.
        pods = self.client.get(path_of("Pod"))["items"]
        self.client.delete_all(path_of("Pod", *key_of(pod)) for pod in pods)
        for path in reversed(self._made):
            self._remove(path)
        self.pods.wait(lambda pods: not pods, "no pods are left")
        for player in self._players:
            player.stop()
        self.pods.stop()

    # Objects

    def make(self, kind: str, name: str, **tree: Any) -> Tree:
        """Create an object of any kind."""
        metadata = {"name": name, **tree.pop("metadata", {})}
        body = with_head(kind, {"metadata": metadata, **tree})
        made: Tree = self.client.create(self.path(kind), body)
        if kind != "Pod":
            self._made.append(self.path(kind, name))
        return made

    def path(self, kind: str, name: str = "") -> str:
        """The path of objects of a kind, in the namespace of the test."""
        return path_of(kind, self.namespace if KINDS[kind][2] else "", name)

    def node(
        self,
        name: str,
        labels: dict[str, str] | None = None,
        room: dict[str, str] | None = None,
        images: list[Tree] | None = None,
        **spec: Any,
    ) -> None:
        """A ready node with a hostname label."""
        tree = node_tree(name, labels, room, **spec)
        if images:
            tree["status"]["images"] = images
        self.make("Node", name, **tree)

    def pod(
        self,
        name: str,
        requests: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Tree:
        """A pod, with grace period 0 unless its spec overrides it."""
        tree = pod_tree(name, requests, labels, **spec)
        return self.make("Pod", name, metadata=tree["metadata"], spec=tree["spec"])

    def pods_like(self, tree: Tree, names: Iterable[str]) -> None:
        """Many pods at once, like `tree` except for their names."""
        trees = (
            with_head("Pod", {**tree, "metadata": {**tree["metadata"], "name": name}})
            for name in names
        )
        self.client.create_all(self.path("Pod"), trees)

    # Events

    def start_scheduler(self, *arguments: str, **settings: Any) -> Process:
        """Start the scheduler under test, with the server's feature gates.

        `settings` are fields of its configuration.
        """
        name = scheduler_under_test()
        config = make_config(self.server.kubeconfig, **settings)
        folder = self._folder / f"scheduler-{next(self._count)}"
        given = [*gate_arguments(self.server.gates), *arguments]
        process = start_scheduler(name, config, folder, *given)
        self._schedulers.append(process)
        return process

    def wait_bound(self, name: str, timeout_s: float = WAIT_S) -> str:
        """Wait until the pod has a node, and return its name."""

        def look(pods: dict[Key, Tree]) -> str:
            node: str = pods.get(self._key(name), {}).get("spec", {}).get("nodeName", "")
            return node

        return self.pods.wait(look, f"pod {name} is bound", timeout_s)

    def wait_all_bound(self, count: int, timeout_s: float = WAIT_S) -> dict[str, str]:
        """Wait until this many pods of the test have a node; return the nodes by pod."""

        def look(pods: dict[Key, Tree]) -> dict[str, str]:
            nodes = {
                key[1]: pod["spec"]["nodeName"]
                for key, pod in pods.items()
                if key[0] == self.namespace and pod["spec"].get("nodeName")
            }
            return nodes if len(nodes) >= count else {}

        return self.pods.wait(look, f"{count} pods are bound", timeout_s)

    def wait_refused(self, name: str, words: str = "", timeout_s: float = WAIT_S) -> str:
        """Wait until the scheduler reported the pod as unschedulable with this text; return the
        whole message."""

        def look(pods: dict[Key, Tree]) -> str:
            message = condition(pods.get(self._key(name), {}), "PodScheduled", "False")
            return message if words in message else ""

        what = f"pod {name} is refused with {words!r}"
        return self.pods.wait(look, what, timeout_s)

    def wait_gone(self, name: str, timeout_s: float = WAIT_S) -> None:
        """Wait until the pod is deleted."""
        key = self._key(name)
        self.pods.wait(lambda pods: key not in pods, f"pod {name} is gone", timeout_s)

    def wait_event(self, name: str, reason: str, timeout_s: float = WAIT_S) -> Tree:
        """Wait for an event about the pod with that reason, and return it."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"

        def look(events: dict[Key, Tree]) -> Tree:
            for event in events.values():
                if (event["regarding"].get("name"), event.get("reason")) == (name, reason):
                    return event
            return {}

        events = ListFollower(self.client, path)
        try:
            return events.wait(look, f"{reason} of pod {name}", timeout_s)
        finally:
            events.stop()

    def node_of(self, name: str) -> str:
        """The last known node of a pod; empty if it has none."""
        node: str = self.pods.objects[self._key(name)]["spec"].get("nodeName", "")
        return node

    def _key(self, name: str) -> Key:
        return self.namespace, name

    def _remove(self, path: str) -> None:
        """Delete an object, removing its finalizers."""
        self.client.delete(path, gracePeriodSeconds=0)
        with suppress(RefusedError):
            if self.client.find(path) is not None:
                self.client.patch(path, {"metadata": {"finalizers": None}})


def node_tree(
    name: str,
    labels: dict[str, str] | None = None,
    room: dict[str, str] | None = None,
    **spec: Any,
) -> Tree:
    """A ready node."""
    offers = {**ROOM, **(room or {})}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": offers, "allocatable": offers, "conditions": conditions},
    }


def pod_tree(
    name: str,
    requests: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Tree:
    """A pod of one container with `requests`; limits are equal where they are required."""
    asked = requests or {}
    resources = {"requests": asked, "limits": {k: v for k, v in asked.items() if "/" in k}}
    container = {"name": "main", "image": "app:1", "resources": resources}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def condition(tree: Tree, kind: str, status: str) -> str:
    """The message of a condition, if it has that status; empty otherwise."""
    for entry in (tree.get("status") or {}).get("conditions") or ():
        if (entry["type"], entry["status"]) == (kind, status):
            message: str = entry.get("message", "")
            return message
    return ""
