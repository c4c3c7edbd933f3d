"""Measurement: the clock, the rounds and the memory of one measurement."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from ...api.pod import Pod
from ...errors import BayplanError
from ...stamped_cache import read_counts
from .driver import Driver
from .measurements import CacheUse, PodRun

T = TypeVar("T")


class Measurement:
    """Counts pods and time from its creation on; making objects is excluded from the time."""

    def __init__(
        self, name: str, driver: Driver, counts: Callable[[Pod], bool], threshold: float = 0.0
    ) -> None:
        self._name = name
        self._nodes = driver.cluster.count("Node")
        self._now = driver.now
        self._counts = counts
        self._threshold = threshold
        self._placed = 0
        self._created = 0
        self._wanted = 0
        self._ns = 0
        self._cpu_ns = 0
        self._left_out_ns = 0
        self.rounds = array("q")
        self._mib_before = resident_mib()

    def created(self, pod: Pod) -> None:
        """Count a created pod."""
        self._created += 1
        self._wanted += self._counts(pod)

    def bound(self, pod: Pod) -> None:
        """Count a placed pod."""
        self._placed += self._counts(pod)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the clock inside the block."""
        start, cpu_start = self._now(), time.process_time_ns()
        yield
        self._ns += self._now() - start
        self._cpu_ns += time.process_time_ns() - cpu_start

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Stop the clock inside the block."""
        start = self._now()
        yield
        self._left_out_ns += self._now() - start

    def timed(self, happen: Callable[[T], object]) -> Callable[[T], None]:
        """Run `happen` with the clock running."""

        def run(obj: T) -> None:
            with self.running():
                happen(obj)

        return run

    def result(self) -> PodRun:
        """The result."""
        grown = resident_mib() - self._mib_before
        seconds = max(self._ns - self._left_out_ns, 1) / 1e9
        in_order = sorted(self.rounds) or [0]
        half, most = (in_order[int(share * (len(in_order) - 1))] / 1e3 for share in (0.5, 0.99))
        return PodRun(
            workload=self._name,
            nodes=self._nodes,
            pods=self._wanted,
            placed=self._placed,
            rounds=len(self.rounds),
            seconds=round(seconds, 4),
            pods_per_s=round(self._placed / seconds, 1),
            us_per_pod=round(1e6 * seconds / max(self._placed, 1), 1),
            p50_us=round(half, 1),
            p99_us=round(most, 1),
            mib_per_10k_pods=round(grown * 10_000 / max(self._created, 1), 1),
            peak_mib=round(peak_mib(), 1),
            cpu_share=round(min(self._cpu_ns / max(self._ns, 1), 1.0), 3),
            threshold=self._threshold,
            caches={
                name: CacheUse(counts.hits, counts.misses, counts.drops)
                for name, counts in read_counts().items()
                if counts.hits or counts.misses
            },
        )


_STATM = Path("/proc/self/statm")
_MIB = 1 << 20


def resident_mib() -> float:
    """Current memory of the process, without garbage; the peak where the system does not report it."""
    gc.collect()
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return peak_mib()
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def peak_mib(*, of_children: bool = False) -> float:
    """Peak memory of the process, or of its largest child that has ended; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0.0
    import resource

    whose = resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF
    peak = resource.getrusage(whose).ru_maxrss
    return peak / _MIB if sys.platform == "darwin" else peak / 1024


def children_cpu_s() -> float:
    """Processor seconds of all child processes that have ended; 0 where the system does not report it."""
    times = os.times()
    return times.children_user + times.children_system


def in_own_process(work: Callable[..., T], *args: Any) -> T:
    """Run `work` in a fresh process, and return its result; raises BayplanError if the process is
    killed."""
    with ProcessPoolExecutor(1, get_context("spawn"), _die_on_interrupt) as pool:
        try:
            return pool.submit(work, *args).result()
        except BrokenProcessPool:
            raise BayplanError(
                "bench: expected the process of the run to end by itself; it was killed, possibly for lack of memory"
            ) from None


def _die_on_interrupt() -> None:
    """Ignore Ctrl-C, which the parent reports."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
