"""Memory: the memory of this process, and of its children."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from ...errors import BayplanError

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


def peak_mib() -> float:
    """Peak memory of the process; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MIB if sys.platform == "darwin" else peak / 1024


def children_peak_mib() -> float:
    """Peak memory of the largest child process that has ended; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak / _MIB if sys.platform == "darwin" else peak / 1024


def children_cpu_s() -> float:
    """Processor seconds of all child processes that have ended; 0 where the system does not report it."""
    times = os.times()
    return times.children_user + times.children_system


T = TypeVar("T")


def in_own_process(work: Callable[..., T], *args: Any) -> T:
    """Run `work` in a fresh process, and return its result; raises BayplanError if the process is
    killed."""
    with ProcessPoolExecutor(1, get_context("spawn"), _die_on_interrupt) as pool:
        try:
            return pool.submit(work, *args).result()
        except BrokenProcessPool:
            raise BayplanError(
                "bench: expected the process of the run to end by itself; it was killed, as for want of memory"
            ) from None


def _die_on_interrupt() -> None:
    """Ignore Ctrl-C, which the parent reports."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
