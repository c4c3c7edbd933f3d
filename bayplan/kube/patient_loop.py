"""Patient loop: an event loop that batches events under load.

Under load a response arrives every few milliseconds or faster, and waking up for each costs more than the response. A
loop that stays busy waits longer and longer for more events, until some come at a time: the slower the server, the
longer the wait. One that has been idle responds at once. Neither does it wait long while much is read: a connection
gives a few hundred KiB at a time, so a long wait before each piece would limit the rate.
"""

from __future__ import annotations

import asyncio
import selectors
import time

FIRST_WAIT_S, MAX_WAIT_S = 0.002, 0.04
"""Seconds that a busy loop waits for more events."""
ENOUGH = 12
"""Number of events at a time from which waiting longer gains little."""
QUIET_S = 0.02
"""A loop that was idle for this long is not busy."""
MUCH = 1 << 16
"""Bytes at a time after which more are expected at once."""


class PatientSelector(selectors.DefaultSelector):
    """A selector that waits a little longer shortly after the last call."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0
        self.wait_s = FIRST_WAIT_S
        """Seconds that the next call waits if the loop is busy."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready events."""
        ready = super().select(timeout)
        if not ready:
            return ready
        if time.monotonic() - self._last > QUIET_S:
            self.wait_s = FIRST_WAIT_S
        elif len(ready) < ENOUGH:
            time.sleep(self.wait_s)
            ready = super().select(0)
            factor = 2 if len(ready) < ENOUGH else 0.5
            self.wait_s = min(max(self.wait_s * factor, FIRST_WAIT_S), MAX_WAIT_S)
        self._last = time.monotonic()
        return ready


class PatientLoop(asyncio.SelectorEventLoop):
    """The loop with such a selector."""

    def __init__(self) -> None:
        self.patience = PatientSelector()
        super().__init__(self.patience)

    def has_read(self, size: int) -> None:
        """Note that a connection gave `size` bytes at a time: after many, the next wait is short."""
        if size >= MUCH:
            self.patience.wait_s = FIRST_WAIT_S
