"""Bench: how many pods a second the whole way of a pod allows, and how much memory it takes.

Every run is a process of its own, so that its peak memory is its own. All nodes are judged for every pod.
"""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

from ..clock import ManualClock
from ..cluster.memory import MemoryCluster
from ..config import default_config
from ..scheduler import Outcome, build_scheduler
from .workloads import WORKLOADS


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
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, workload, nodes, pods).result()


def measure(workload: str, nodes: int, pods: int) -> BenchRun:
    """Measure one workload in this process: only the scheduling counts, not the making of objects."""
    cluster = MemoryCluster()
    scheduler = build_scheduler(default_config(), cluster, clock=ManualClock(), seed=0)
    for obj in WORKLOADS[workload].objects(nodes, pods):
        cluster.add(obj)
    cluster.watch(scheduler)
    attempts = placed = 0
    start = time.perf_counter()
    while (attempt := scheduler.schedule_one()) is not None:
        attempts += 1
        placed += attempt.outcome is Outcome.BOUND
    seconds = time.perf_counter() - start
    return BenchRun(
        workload=workload,
        nodes=nodes,
        pods=pods,
        placed=placed,
        seconds=round(seconds, 4),
        pods_per_s=round(attempts / seconds, 1),
        us_per_pod=round(1e6 * seconds / max(attempts, 1), 1),
        peak_mib=round(peak_mib(), 1),
    )


def peak_mib() -> float:
    """The most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024) if sys.platform == "darwin" else peak / 1024
