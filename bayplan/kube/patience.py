"""Patience: an event loop that batches events under load.

Under load a response arrives every few milliseconds or faster, and waking up for each costs more than
the response. A loop that stays busy waits longer and longer for more events, until some come at a
time: the slower the server, the longer the wait. One that has been idle responds at once.
"""

from __future__ import annotations

import asyncio
import selectors
import time

FIRST_WAIT_S, MAX_WAIT_S = 0.002, 0.04
"""How long a busy loop waits for more events."""
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
