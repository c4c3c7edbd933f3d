"""Retry backoff: exponential backoff with jitter.

As in k8s.io/apimachinery/pkg/util/wait, a step doubles up to a limit, jitter adds up to the whole of it, and a long
enough time without failures resets it. The limit is lower than client-go's 30 s, so that a scheduler continues a few
seconds after an API server is available again.
"""

from __future__ import annotations

import asyncio
import math
import random
import selectors
import time
from collections.abc import Callable

# Patience: an event loop that batches events under load.
# Under load a response arrives every few milliseconds or faster, and waking up for each costs more than the
# response. A loop that stays busy waits longer and longer for more events, until some come at a time: the slower
# the server, the longer the wait. One that has been idle responds at once.

FIRST_WAIT_S, MAX_WAIT_S = 0.002, 0.04
"""Seconds that a busy loop waits for more events."""
ENOUGH = 12
"""Number of events at a time from which waiting longer gains little."""
QUIET_S = 0.02
"""A loop that was idle for this long is not busy."""


class PatientSelector(selectors.DefaultSelector):
    """A selector that waits a little longer shortly after the last call."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0
        self._wait_s = FIRST_WAIT_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready events."""
        ready = super().select(timeout)
        if not ready:
            return ready
        if time.monotonic() - self._last > QUIET_S:
            self._wait_s = FIRST_WAIT_S
        elif len(ready) < ENOUGH:
            time.sleep(self._wait_s)
            ready = super().select(0)
            factor = 2 if len(ready) < ENOUGH else 0.5
            self._wait_s = min(max(self._wait_s * factor, FIRST_WAIT_S), MAX_WAIT_S)
        self._last = time.monotonic()
        return ready


def make_loop() -> asyncio.AbstractEventLoop:
    """An event loop with the batching selector."""
    return asyncio.SelectorEventLoop(PatientSelector())


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
