"""Bench: how many pods a second the whole way of a pod allows, and how much memory it takes.

Every run is a process of its own, so that its peak memory is its own. All nodes are judged for every pod.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any, TypeVar

import msgspec

from ..api.decode import decode_object
from ..clock import ManualClock
from ..cluster.memory import MemoryCluster
from ..config import SchedulerConfiguration, default_config
from ..config.types import PluginRef, PluginSet
from ..scheduler import Attempt, Outcome, Scheduler, build_scheduler
from .workloads import WORKLOADS, Workload, plain_node, service

T = TypeVar("T")

CHURN_EVERY = 10
NODE_CHURN_EVERY = 100


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One measured run."""

    workload: str
    nodes: int
    pods: int
    placed: int
    seconds: float
    pods_per_s: float
    us_per_pod: float
    peak_mib: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_bench(workload: str, nodes: int, pods: int) -> BenchRun:
    """Measure one workload in a process of its own."""
    return in_own_process(measure, workload, nodes, pods)


def in_own_process(work: Callable[..., T], *args: Any) -> T:
    """Do `work` in a fresh process, and return what it returns."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def measure(name: str, nodes: int, pods: int) -> BenchRun:
    """Measure one workload in this process: only the scheduling counts, not the making of objects."""
    workload = WORKLOADS[name]
    bench = Bench(workload)
    bench.add(workload.cluster_objects(nodes))
    bench.add(workload.obstacles(pods))
    bench.schedule_all()
    bench.add(workload.pods(pods))
    before = bench.placed
    start = time.perf_counter()
    bench.schedule_all()
    seconds = time.perf_counter() - start
    placed = bench.placed - before
    return BenchRun(
        workload=name,
        nodes=nodes,
        pods=workload.count(pods),
        placed=placed,
        seconds=round(seconds, 4),
        pods_per_s=round(placed / seconds, 1),
        us_per_pod=round(1e6 * seconds / max(placed, 1), 1),
        peak_mib=round(peak_mib(), 1),
    )


class Bench:
    """A cluster and a scheduler to measure; deleted pods go at once, and no time passes."""

    def __init__(self, workload: Workload | None = None) -> None:
        self.cluster = MemoryCluster()
        self.placed = 0
        self._churn = Churn(self.cluster) if workload is not None and workload.churns else None
        config = with_plugins(default_config(), workload.plugins if workload else ())
        self.scheduler: Scheduler = build_scheduler(
            config, self.cluster, clock=ManualClock(), seed=0, ended=self._ended
        )
        self.cluster.watch(self.scheduler)

    def add(self, objects: Iterable[Any]) -> None:
        """Put objects into the cluster."""
        for obj in objects:
            self.cluster.add(obj)

    def schedule_all(self) -> None:
        """Schedule until no pod is ready."""
        while (attempt := self.scheduler.schedule_one()) is not None:
            if self._churn is not None:
                self._churn.step(attempt)

    def _ended(self, attempt: Attempt) -> None:
        self.placed += attempt.outcome is Outcome.BOUND


class Churn:
    """After every tenth pod another pod or service goes or comes, after every hundredth a node."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._steps = 0
        self._extra_nodes = 0

    def step(self, attempt: Attempt) -> None:
        """A pod was tried."""
        self._steps += 1
        if self._steps % CHURN_EVERY == 0:
            self._cluster.delete(attempt.pod)
            added: Any = decode_object(service(self._steps))
            self._cluster.add(added)
            if self._steps > 2 * CHURN_EVERY:
                old: Any = decode_object(service(self._steps - CHURN_EVERY))
                self._cluster.delete(old)
        if self._steps % NODE_CHURN_EVERY == 0:
            self._replace_node()

    def _replace_node(self) -> None:
        """Bring a node beyond the others, and take away the one that came so before."""
        number = 900_000 + self._extra_nodes
        added: Any = decode_object(plain_node(number))
        self._cluster.add(added)
        if self._extra_nodes:
            self._remove_node(f"node-{number - 1:06d}")
        self._extra_nodes += 1

    def _remove_node(self, name: str) -> None:
        node: Any = self._cluster.get("Node", "", name)
        self._cluster.delete(node)
        for pod in [pod for pod in self._cluster.list("Pod") if pod.node_name == name]:
            self._cluster.delete(pod)


def with_plugins(
    config: SchedulerConfiguration, plugins: tuple[str, ...]
) -> SchedulerConfiguration:
    """The configuration with further plugins on in its first profile."""
    if not plugins:
        return config
    profile = config.profiles[0]
    everywhere = profile.plugins.multi_point
    enabled = (*everywhere.enabled, *map(PluginRef, plugins))
    widened = msgspec.structs.replace(
        profile.plugins, multi_point=PluginSet(enabled, everywhere.disabled)
    )
    changed = msgspec.structs.replace(profile, plugins=widened)
    return msgspec.structs.replace(config, profiles=(changed, *config.profiles[1:]))


def peak_mib() -> float:
    """The most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024) if sys.platform == "darwin" else peak / 1024
