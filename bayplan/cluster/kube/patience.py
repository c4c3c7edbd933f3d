"""Patience: an event loop that batches events under load.

Under load a response arrives every half a millisecond, and waking up for each costs more than the
response. A loop that stays busy polls less and less often, up to every 16 ms; one that has been
idle responds at once.
"""

from __future__ import annotations

import asyncio
import selectors
import time

FIRST_WAIT_S, MAX_WAIT_S = 0.002, 0.016
"""How long a busy loop waits for more events: doubled each time it is still busy."""
QUIET_S = 0.01
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
        if time.monotonic() - self._last < QUIET_S:
            time.sleep(self._wait_s)
            self._wait_s = min(self._wait_s * 2, MAX_WAIT_S)
            ready = super().select(0)
        else:
            self._wait_s = FIRST_WAIT_S
        self._last = time.monotonic()
        return ready


def make_loop() -> asyncio.AbstractEventLoop:
    """An event loop with the batching selector."""
    return asyncio.SelectorEventLoop(PatientSelector())
