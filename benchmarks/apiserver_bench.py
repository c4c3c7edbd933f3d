"""Bench: pending pods bound on an API server, by Bayplan, kube-scheduler and a bare binder.

One API server with its nodes created once, a real one or the embedded one; for each contestant the
pods are recreated, then it is started. Measured are the moments at which a watch shows the first
and the last binding, and the processor time of all processes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tests.rig.live.client import LiveClient, Tree
from tests.rig.live.cluster import Server, node_tree, pod_tree
from tests.rig.live.control_plane import LiveControlPlane, find_asset
from tests.rig.live.embedded import EmbeddedServer
from tests.rig.live.follower import ListFollower
from tests.rig.live.kinds import path_of, with_head
from tests.rig.live.processes import Process
from tests.rig.live.schedulers import BAYPLAN, KUBE_SCHEDULER, make_config, start_scheduler

NAMESPACE, RUNNING = "bench", "running"
ZONES = 3
TIMEOUT_S = 900.0
EVENTS_S = 60.0
SETTLE_S = 1.0
"""Seconds between the deletion of all pods and reading the memory."""
DEFAULT_QPS = {"qps": 50, "burst": 100}
RAISED_QPS = {"qps": 5000, "burst": 10000}

Start = Callable[[Path, Path], Process]


class Contestant(NamedTuple):
    """A program that binds pods, started with a kubeconfig and its own folder."""

    name: str
    start: Start
    has_events: bool
    """Whether it records events."""


class Run(NamedTuple):
    """The result of one contestant."""

    name: str
    pods: int
    seconds: float
    """From the first binding to the last."""
    start_s: float
    """From its start to the first binding."""
    events: int
    own_cpu_s: float
    """Processor time of the contestant, from its start until all pods are bound and all events recorded."""
    cpu_s: dict[str, float]
    """Processor time from the first binding to the last, by process."""
    peak_mib: float

    @property
    def pods_per_s(self) -> float:
        return (self.pods - 1) / self.seconds if self.seconds else float("inf")


class BindingWatch:
    """Records when bindings are seen."""

    def __init__(self, client: LiveClient, total: int) -> None:
        self.moments: list[float] = []
        self.began, self.done = threading.Event(), threading.Event()
        self._total = total
        self._seen: set[str] = set()
        self._follower = ListFollower(client, path_of("Pod", NAMESPACE), self._on_pod)

    def close(self) -> None:
        """Stop watching."""
        self._follower.stop()

    def _on_pod(self, kind: str, pod: Tree) -> None:
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") and uid not in self._seen:
            self._seen.add(uid)
            self.moments.append(time.monotonic())
            self.began.set()
            if len(self._seen) == self._total:
                self.done.set()


def contestants() -> list[Contestant]:
    """All contestants that can run here."""
    found = []
    for name in (BAYPLAN, KUBE_SCHEDULER):
        if name == KUBE_SCHEDULER and find_asset(name) is None:
            continue
        found.append(Contestant(name, _scheduler(name, RAISED_QPS), True))
        found.append(Contestant(f"{name}, default qps", _scheduler(name, DEFAULT_QPS), True))
    found.append(Contestant("binder", _binder("--events"), True))
    found.append(Contestant("binder, no events", _binder(), False))
    return found


def _scheduler(name: str, limits: dict[str, int]) -> Start:
    def start(kubeconfig: Path, folder: Path) -> Process:
        connection = {"kubeconfig": str(kubeconfig), **limits}
        return start_scheduler(name, make_config(kubeconfig, clientConnection=connection), folder)

    return start


def _binder(*options: str) -> Start:
    def start(kubeconfig: Path, folder: Path) -> Process:
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "benchmarks.binder", str(kubeconfig), *options]
        return Process(command, folder / "binder.log")

    return start


class Arena:
    """An API server with nodes, on which contestants are measured one after the other."""

    def __init__(self, plane: Server, nodes: int, pods: int, running: int) -> None:
        self._plane = plane
        self._client = LiveClient(plane.kubeconfig)
        self._pods = pods
        self._count = 0
        for name in (NAMESPACE, RUNNING):
            self._client.create(path_of("Namespace"), {"metadata": {"name": name}})
        self._client.create_all(path_of("Node"), (make_node(number) for number in range(nodes)))
        placed = (make_running_pod(number, number % nodes) for number in range(running))
        self._client.create_all(path_of("Pod", RUNNING), placed)

    def measure(self, contestant: Contestant) -> Run:
        """Create the pods, let the contestant bind them, and delete them."""
        self._make_pods()
        watch = BindingWatch(self._client, self._pods)
        self._count += 1
        folder = self._plane.folder / f"run-{self._count}"
        started = time.monotonic()
        process = contestant.start(self._plane.kubeconfig, folder)
        processes = {contestant.name.partition(",")[0]: process, **self._servers()}
        try:
            watch.began.wait(TIMEOUT_S)
            before = {name: one.cpu_s() for name, one in processes.items()}
            is_done = watch.done.wait(TIMEOUT_S)
            assert is_done, f"{contestant.name}: {len(watch.moments)} bound. {process.last_words()}"
            cpu_s = {name: one.cpu_s() - before[name] for name, one in processes.items()}
            peak = process.memory_mib()["peak"]
            events = self._wait_events() if contestant.has_events else 0
            own_cpu_s = process.cpu_s()
        finally:
            watch.close()
            process.stop()
        first, last = watch.moments[0], watch.moments[-1]
        self._clear()
        return Run(
            contestant.name,
            pods=self._pods,
            seconds=last - first,
            start_s=first - started,
            events=events,
            own_cpu_s=own_cpu_s,
            cpu_s=cpu_s,
            peak_mib=peak,
        )

    def live_through(self, contestant: Contestant, waves: int) -> Iterator[float]:
        """Create the pods, let the contestant bind them and delete them, again and again; yield its MiB after each."""
        self._count += 1
        folder = self._plane.folder / f"run-{self._count}"
        process = contestant.start(self._plane.kubeconfig, folder)
        try:
            for _ in range(waves):
                watch = BindingWatch(self._client, self._pods)
                self._make_pods()
                is_done = watch.done.wait(TIMEOUT_S)
                watch.close()
                assert is_done, f"{len(watch.moments)} bound. {process.last_words()}"
                self._clear()
                time.sleep(SETTLE_S)
                yield process.memory_mib()["rss"]
        finally:
            process.stop()

    def _servers(self) -> dict[str, Process]:
        servers = {"API server": self._plane.api_server}
        if isinstance(self._plane, LiveControlPlane):
            servers["etcd"] = self._plane.etcd
        return servers

    def _make_pods(self) -> None:
        trees = (
            with_head("Pod", pod_tree(f"p-{number}", {"cpu": "100m", "memory": "200Mi"}))
            for number in range(self._pods)
        )
        self._client.create_all(path_of("Pod", NAMESPACE), trees)

    def _wait_events(self) -> int:
        """The number of events, when all have arrived or no more arrive."""
        deadline = time.monotonic() + EVENTS_S
        while (count := self._count_events()) < self._pods and time.monotonic() < deadline:
            time.sleep(1)
        return count

    def _count_events(self) -> int:
        found = self._client.get(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events?limit=1")
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))

    def _clear(self) -> None:
        for path in (path_of("Pod", NAMESPACE), f"/api/v1/namespaces/{NAMESPACE}/events"):
            self._client.request("DELETE", path, {"gracePeriodSeconds": 0})
            while names := self._client.get(f"{path}?limit=500")["items"]:
                self._client.delete_all(f"{path}/{item['metadata']['name']}" for item in names)


def make_node(number: int) -> Tree:
    """One of many nodes, in one of three zones."""
    name = f"node-{number}"
    labels = {"topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    tree = node_tree(name, labels, {"cpu": "32", "memory": "128Gi"})
    return with_head("Node", tree)


def make_running_pod(number: int, node: int) -> Tree:
    """A pod with a node: one of twenty per owner."""
    app = f"app-{number // 20}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "controller": True}
    tree = pod_tree(
        f"r-{number}",
        {"cpu": "100m", "memory": "200Mi"},
        {"app": app, "pod-template-hash": f"{number // 20:x}"},
        nodeName=f"node-{node}",
    )
    tree["metadata"]["ownerReferences"] = [{**owner, "uid": str(UUID(int=number // 20 + 1))}]
    return with_head("Pod", tree)


@contextmanager
def arena(
    folder: Path, nodes: int, pods: int, running: int = 0, *, is_embedded: bool = False
) -> Iterator[Arena]:
    """A server with this many nodes and running pods, for this many pods at a time."""
    plane: Server = (
        EmbeddedServer(folder)
        if is_embedded
        else LiveControlPlane(folder, "--delete-collection-workers=8")
    )
    try:
        yield Arena(plane, nodes, pods, running)
    finally:
        plane.stop()
