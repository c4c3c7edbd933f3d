"""Fake kubelets: fake kubelets that start bound pods, remove terminating ones, and complete new nodes.

Nothing is run: statuses are written as a kubelet would. Annotations and PodStages define how a pod starts and ends;
without them it runs at once and does not end.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

from ...api.node import Node
from ...api.pod import Pod
from ...api.pod_stages import PREFIX, PodStages, StageRule
from ...api.resources import pod_amounts, to_units
from ...clock import Clock, rfc3339
from ...cluster.memory.stages import StagePlayer, StageSink
from ...cluster.objects.object_index import Later, WatchHandler
from ...cluster.objects.pod_life import timestamp
from ..registry.object_registry import DeleteOptions
from ..registry.pods import PODS, set_conditions
from ..store.store import Store
from . import kubelet_statuses
from .embedded_cluster import LiveCluster
from .kubelet_statuses import KubeletEvents, missing_status

Tree = dict[str, Any]

BATCH = 50
"""Number of pods started per step, some 5 ms, so that clients are served in between."""


class NodeAgents(StageSink, WatchHandler):
    """The kubelets of all nodes. Watches the cluster; `run_once` starts the new pods.

    Terminating pods are removed after their grace period, or at once without `grace`. `rules` are
    the stages of pods that documents give.
    """

    def __init__(
        self,
        cluster: LiveCluster,
        clock: Clock,
        timers: Later,
        *,
        grace: bool = True,
        rules: Sequence[StageRule] = (),
    ) -> None:
        self._cluster = cluster
        self._registry = cluster.registry
        self._clock = clock
        self._timers = timers
        self._grace = grace
        self._events = KubeletEvents(cluster, clock)
        self._stages = StagePlayer(self, cluster, timers, rules)
        self._resizer = PodResizer(self, cluster, self._events, timers)
        self._leases = NodeLeases(cluster.registry.store, clock, timers)
        self._arrived: dict[tuple[str, str], None] = {}
        self._changed: dict[tuple[str, str], None] = {}
        self._new_nodes: list[str] = []
        self._stopping: list[Pod] = []

    def on_add(self, obj: Any) -> None:
        """Handle a pod that already has a node or is terminating since before the start, and a node."""
        if isinstance(obj, Node):
            self._new_nodes.append(obj.name)
        if isinstance(obj, Pod) and obj.node_name:
            self._arrived[obj.namespace, obj.name] = None
            if obj.is_terminating:
                self._expect_end(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle a bound, resized or terminating pod."""
        if not isinstance(new, Pod) or not new.node_name:
            return
        if not old.node_name:
            self._arrived[new.namespace, new.name] = None
        elif new.spec is not old.spec:
            self._changed[new.namespace, new.name] = None
        if new.is_terminating and new.deletion_timestamp != old.deletion_timestamp:
            self._expect_end(new)
            if not old.is_terminating:
                self._stopping.append(new)

    @property
    def has_work(self) -> bool:
        """Whether pods wait to be started or stopped, or nodes to be completed."""
        return bool(self._arrived or self._changed or self._new_nodes or self._stopping)

    def run_once(self) -> None:
        """Start some of the bound pods."""
        names, self._new_nodes = self._new_nodes, []
        for name in names:
            self._complete_node(name)
        stopping, self._stopping = self._stopping, []
        for stopped in stopping:
            self._events.stopping(stopped)
        changed, self._changed = self._changed, {}
        for key in changed:
            resized: Pod | None = self._cluster.get("Pod", *key)
            if resized is not None and not resized.is_finished:
                self._resizer.consider(resized)
        keys = list(self._arrived)[:BATCH]
        for key in keys:
            del self._arrived[key]
            pod: Pod | None = self._cluster.get("Pod", *key)
            if pod is not None and not pod.is_finished:
                self._take_on(pod)

    def _take_on(self, pod: Pod) -> None:
        """Start a new pod; continue a pod that runs since before a restart of the server."""
        stages = self._stages.of(pod)
        if pod.status.phase != "Pending":
            self._resizer.consider(pod)
            if stages is not None:
                self._resume(pod, stages)
        elif not pod.is_terminating:
            if stages is None:
                self.write(pod, kubelet_statuses.running)
                self._events.starting(pod)
            else:
                self._stages.start(pod, stages)

    def _resume(self, pod: Pod, stages: PodStages) -> None:
        """Go on with a pod that ran before the server was started again."""
        record = self._registry.store.get("pods", (pod.namespace, pod.name))
        tree = record.decode() if record is not None else {}
        started, stopped = kubelet_statuses.times(tree)
        if started or stopped:
            passed = self._clock.now() - datetime.fromisoformat(started or stopped)
            go_on = self._stages.expect if started else self._stages.expect_restart
            go_on(pod, stages, kubelet_statuses.restarts(tree), max(passed.total_seconds(), 0))

    def _complete_node(self, name: str) -> None:
        """Write the fields that the node's kubelet would report and its manifest lacks."""
        store = self._registry.store
        record = store.get("nodes", ("", name))
        if record is None:
            return
        tree = record.decode()
        status = tree.get("status") or {}
        missing = missing_status(tree, self._registry.now())
        if missing:
            store.put("nodes", record.key, {**tree, "status": {**status, **missing}})
        self._leases.add(name)

    def _expect_end(self, pod: Pod) -> None:
        """Remove the pod when its grace period is over; without `grace`, at the next step."""

        def leave() -> None:
            stored: Pod | None = self._cluster.get("Pod", pod.namespace, pod.name)
            if stored is not None and (stored.uid, stored.deletion_timestamp) == (
                pod.uid,
                pod.deletion_timestamp,
            ):
                self.remove(stored)

        left_s = 0.0
        if self._grace:
            leaves = datetime.fromisoformat(pod.deletion_timestamp or "")
            left_s = max((leaves - self._clock.now()).total_seconds(), 0)
        self._timers.after(left_s, leave)

    def remove(self, pod: Pod) -> None:
        """Remove a terminating pod."""
        options = DeleteOptions(grace_s=0, uid=pod.uid)
        self._registry.delete(PODS, pod.namespace, pod.name, options)

    def write(self, pod: Pod, edit: Callable[[Tree, str], Tree]) -> Tree | None:
        """Write the status of an existing pod, bypassing the rules of the API; returns the pod."""
        store, key = self._registry.store, (pod.namespace, pod.name)
        record = store.get(PODS.storage, key)
        if record is None:
            return None
        tree = edit(record.decode(), self._registry.now())
        store.put(PODS.storage, key, tree)
        return tree

    # Stages of pods

    def create_containers(self, pod: Pod) -> None:
        """The containers are being created."""
        begins = {"reason": "ContainerCreating"}
        self.write(pod, lambda tree, now: kubelet_statuses.waiting(tree, begins, now))

    def fail_to_pull(self, pod: Pod, image: str) -> None:
        """An attempt to pull an image has failed."""
        note = f"{PREFIX}image-pull-error"
        failed = {"reason": "ErrImagePull", "message": f'failed to pull image "{image}": {note}'}
        self.write(pod, lambda tree, now: kubelet_statuses.waiting(tree, failed, now))
        self._events.not_pulled(pod, image, note)

    def wait_to_pull(self, pod: Pod, image: str) -> None:
        """The next attempt to pull an image waits."""
        waits = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
        self.write(pod, lambda tree, now: kubelet_statuses.waiting(tree, waits, now))
        self._events.waits_to_pull(pod, image)

    def run(self, pod: Pod, is_ready: bool, restarts: int) -> None:
        """Write that the containers run, after `restarts` restarts."""
        edit = kubelet_statuses.restarted if restarts else kubelet_statuses.running
        self.write(pod, lambda tree, now: edit(tree, now, is_ready))
        self._events.starting(pod)
        if not is_ready:
            self._events.unhealthy(pod, f"{PREFIX}ready-after")

    def make_ready(self, pod: Pod) -> None:
        """The running pod is ready."""
        self.write(pod, kubelet_statuses.ready)

    def crash(self, pod: Pod, exit_code: int, wait_s: float) -> None:
        """Write that the containers have ended and are started again in `wait_s`."""
        self.write(pod, lambda tree, now: kubelet_statuses.crashed(tree, exit_code, now))
        if wait_s:
            self._events.waits_to_restart(pod)

    def end(self, pod: Pod, exit_code: int) -> None:
        """Write that the containers have ended and are not restarted."""
        self.write(pod, lambda tree, now: kubelet_statuses.ended(tree, exit_code, now))

    def refuse(self, pod: Pod, annotation: str, fault: str) -> None:
        """An annotation of the pod is wrong and is ignored."""
        text = f"metadata.annotations[{annotation}]: {fault}"
        self._events.warn(pod, "InvalidAnnotation", text)


LEASES, NODE_LEASES = "leases.coordination.k8s.io", "kube-node-lease"
VALID_S, RENEW_S = 40, 10
MAX_PER_S = 200
"""Most renewals in a second of the machine; with more than 2,000 nodes, leases are renewed less often."""


class NodeLeases:
    """Makes the leases of new nodes, and renews a share of all leases every second."""

    def __init__(self, store: Store, clock: Clock, timers: Later) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._names: OrderedDict[str, None] = OrderedDict()
        timers.after(clock.speed, self._renew_some)

    def add(self, name: str) -> None:
        """Create the lease of this node, and renew it; an existing lease is kept until its renewal is due."""
        self._names[name] = None
        if self._store.get(LEASES, (NODE_LEASES, name)) is None:
            self._renew(name, self._renewed())

    def _renew_some(self) -> None:
        renewed = self._renewed()
        for _ in range(min(math.ceil(len(self._names) / RENEW_S), MAX_PER_S)):
            name = next(iter(self._names))
            self._names.move_to_end(name)
            self._renew(name, renewed)
        self._timers.after(self._clock.speed, self._renew_some)

    def _renew(self, name: str, renewed: Tree) -> None:
        node = self._store.get("nodes", ("", name))
        if node is None:
            del self._names[name]
            return
        record = self._store.get(LEASES, (NODE_LEASES, name))
        tree = self._make(name, node.uid) if record is None else record.decode()
        tree["spec"] = {**(tree.get("spec") or {}), **renewed}
        self._store.put(LEASES, (NODE_LEASES, name), tree)

    def _make(self, name: str, uid: str) -> Tree:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        metadata = {
            "name": name,
            "namespace": NODE_LEASES,
            "uid": str(uuid4()),
            "creationTimestamp": timestamp(self._clock),
            "ownerReferences": [owner],
        }
        return {"metadata": metadata, "spec": {"holderIdentity": name}}

    def _renewed(self) -> Tree:
        valid_s = math.ceil(VALID_S * self._clock.speed)
        now = rfc3339(self._clock.now(), "microseconds")
        return {"leaseDurationSeconds": valid_s, "renewTime": now}


PENDING = "PodResizePending"
RETRY_S = 10.0
RESIZED = ("cpu", "memory")


class PodResizer:
    """Grants resizes, through `sink`."""

    def __init__(
        self, sink: NodeAgents, cluster: LiveCluster, events: KubeletEvents, timers: Later
    ) -> None:
        self._sink = sink
        self._cluster = cluster
        self._events = events
        self._timers = timers

    def consider(self, pod: Pod) -> None:
        """Grant the resources that the pod's spec requests beyond its allocation, or write why not."""
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
        """Reason why the node cannot grant it now; empty if it can."""
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
