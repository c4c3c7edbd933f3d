"""Run process: each run has its own process, so that memory and warm-up are not shared."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from ...errors import BayplanError

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
