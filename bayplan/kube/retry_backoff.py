"""Retry backoff: exponential backoff with jitter.

As in k8s.io/apimachinery/pkg/util/wait, a step doubles up to a limit, jitter adds up to the whole of it, and a long
enough time without failures resets it. The limit is lower than client-go's 30 s, so that a scheduler continues a few
seconds after an API server is available again.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable


def loop_time() -> float:
    """The time of the running event loop, in seconds."""
    return asyncio.get_running_loop().time()


class Backoff:
    """The delays between retries against the API server."""

    def __init__(
        self,
        first_s: float = 0.4,
        limit_s: float = 1.6,
        peace_s: float = 120.0,
        *,
        now: Callable[[], float] = loop_time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._peace_s = peace_s
        self._now = now
        self._jitter = jitter
        self._step_s = first_s
        self._last = math.inf

    def reset(self) -> None:
        """Something worked: the next delay is the first one again."""
        self._step_s = self._first_s

    def next_s(self) -> float:
        """The next delay."""
        now = self._now()
        if now - self._last > self._peace_s:
            self._step_s = self._first_s
        self._last = now
        step = self._step_s
        self._step_s = min(step * 2, self._limit_s)
        return step * (1 + self._jitter())
