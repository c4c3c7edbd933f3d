"""Kubelets: fake kubelets that start bound pods and remove terminating ones after their grace period.

Nothing is run: statuses are written as a kubelet would. `bayplan.dev/duration` says whether a pod
ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ....api.node import Node
from ....api.pod import Pod
from ....clock import Clock
from ...memory import Kubelets
from ...objects import Later
from ..registry.pods import PODS, set_condition
from ..registry.registry import DeleteOptions, ObjectRegistry
from .cluster import LiveCluster

Tree = dict[str, Any]

BATCH = 500
"""Number of pods started per step, so that clients are served in between."""


class NodeAgents(Kubelets):
    """The kubelets of all nodes. Watches the cluster; `run_once` starts the new pods."""

    def __init__(
        self, cluster: LiveCluster, registry: ObjectRegistry, clock: Clock, timers: Later
    ) -> None:
        super().__init__(cluster, clock, timers)
        self._registry = registry
        self._arrived: dict[tuple[str, str], None] = {}
        self._silent: list[str] = []

    def on_add(self, obj: Any) -> None:
        """Handle a pod that already has a node or is terminating since before the start.

        A node without conditions gets a kubelet that reports them.
        """
        super().on_add(obj)
        if isinstance(obj, Node) and not any(c.type == "Ready" for c in obj.conditions):
            self._silent.append(obj.name)
        if isinstance(obj, Pod) and obj.node_name:
            self._arrived[obj.namespace, obj.name] = None
            if obj.is_terminating:
                self._expect_end(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a bound or terminating pod."""
        super().on_update(old, new)
        if not isinstance(new, Pod) or not new.node_name:
            return
        if not old.node_name:
            self._arrived[new.namespace, new.name] = None
        if new.is_terminating and new.deletion_timestamp != old.deletion_timestamp:
            self._expect_end(new)

    @property
    def has_work(self) -> bool:
        """Whether pods wait to be started."""
        return bool(self._arrived or self._silent)

    def run_once(self) -> None:
        """Start some of the bound pods."""
        silent, self._silent = self._silent, []
        for name in silent:
            self._report_ready(name)
        keys = list(self._arrived)[:BATCH]
        for key in keys:
            del self._arrived[key]
            pod: Pod | None = self._cluster.get("Pod", *key)
            if pod is not None and pod.status.phase == "Pending" and not pod.is_terminating:
                self._write(pod, self._start)

    def _report_ready(self, name: str) -> None:
        store = self._registry.store
        record = store.get("nodes", ("", name))
        if record is None:
            return
        tree, now = record.decode(), self._registry.now()
        status = tree.setdefault("status", {})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        status["conditions"] = [*(status.get("conditions") or ()), {**ready, **times}]
        store.put("nodes", record.key, tree)

    def _expect_end(self, pod: Pod) -> None:
        """Remove the pod when its grace period is over."""

        def leave() -> None:
            stored: Pod | None = self._cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None and (stored.uid, stored.deletion_timestamp) == (
                pod.uid,
                pod.deletion_timestamp,
            ):
                self._leave(stored)

        leaves = datetime.fromisoformat(pod.deletion_timestamp or "")
        self._timers.after(max((leaves - self._clock.now()).total_seconds(), 0), leave)

    def _leave(self, pod: Pod) -> None:
        options = DeleteOptions(grace_s=0, uid=pod.uid)
        self._registry.delete(PODS, pod.namespace, pod.name, options)

    def _finish(self, pod: Pod) -> None:
        """Finish the pod."""
        stored: Pod | None = self._cluster.get("Pod", pod.namespace, pod.name)
        if stored is None or stored.uid != pod.uid or stored.is_finished:
            return
        if stored.is_terminating:
            self._leave(stored)
        else:
            self._write(stored, self._end)

    def _write(self, pod: Pod, edit: Callable[[Tree], Tree]) -> None:
        """Write the status of an existing pod, bypassing the rules of the API."""
        store, key = self._registry.store, (pod.namespace, pod.name)
        record = store.get(PODS.storage, key)
        if record is not None:
            store.put(PODS.storage, key, edit(record.decode()))

    def _start(self, tree: Tree) -> Tree:
        """The status of a running and ready pod."""
        now, spec = self._registry.now(), tree["spec"]
        status = {**(tree.get("status") or {}), "phase": "Running"}
        address = make_address("10.244", tree["metadata"]["uid"])
        host = make_address("10.0", spec["nodeName"])
        status |= {
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "podIP": host if spec.get("hostNetwork") else address,
            "startTime": now,
            "observedGeneration": tree["metadata"].get("generation", 1),
        }
        status["podIPs"] = [{"ip": status["podIP"]}]
        status.pop("nominatedNodeName", None)
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
            set_condition(status, {"type": kind, "status": "True"}, now)
        set_condition(status, {"type": "PodScheduled", "status": "True"}, now)
        status["containerStatuses"] = [
            _container_status(container, {"running": {"startedAt": now}})
            for container in spec.get("containers") or ()
        ]
        done = {"reason": "Completed", "exitCode": 0, "startedAt": now, "finishedAt": now}
        first = [
            _container_status(c, {"terminated": done}) for c in spec.get("initContainers") or ()
        ]
        if first:
            status["initContainerStatuses"] = first
        return {**tree, "status": status}

    def _end(self, tree: Tree) -> Tree:
        """The status of a succeeded pod."""
        now = self._registry.now()
        status = {**(tree.get("status") or {}), "phase": "Succeeded"}
        over = {"status": "False", "reason": "PodCompleted"}
        for kind in ("Ready", "ContainersReady"):
            set_condition(status, {"type": kind, **over}, now)
        for container in status.get("containerStatuses") or ():
            began = ((container.get("state") or {}).get("running") or {}).get("startedAt")
            done = {"reason": "Completed", "exitCode": 0, "startedAt": began, "finishedAt": now}
            container.update(state={"terminated": done}, ready=False, started=False)
        return {**tree, "status": status}


def _container_status(container: Tree, state: Tree) -> Tree:
    image = str(container.get("image") or "")
    return {
        "name": container.get("name"),
        "state": state,
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": image,
        "imageID": f"pretend://{image}",
        "containerID": f"pretend://{blake2b(image.encode(), digest_size=16).hexdigest()}",
        "started": "running" in state,
    }


def make_address(network: str, name: str) -> str:
    """A deterministic address for `name` in `network`, the first two of its four numbers."""
    third, fourth = blake2b(name.encode(), digest_size=2).digest()
    return f"{network}.{third}.{fourth or 1}"
