"""Processes: every run has one of its own, so that its memory is its own and none warms up another."""

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
    """Do `work` in a fresh process, and return what it returns; BayplanError if the process is killed."""
    with ProcessPoolExecutor(1, get_context("spawn"), _die_on_interrupt) as pool:
        try:
            return pool.submit(work, *args).result()
        except BrokenProcessPool:
            raise BayplanError(
                "bench: expected the process of the run to end by itself; it was killed, as for want of memory"
            ) from None


def _die_on_interrupt() -> None:
    """Leave it to the parent to say that Ctrl-C was pressed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
