"""Processes: every run has one of its own, so that its memory is its own and none warms up another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")


def in_own_process(work: Callable[..., T], *args: Any) -> T:
    """Do `work` in a fresh process, and return what it returns."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()
