"""Virtual time: asyncio on a manual clock that jumps when all tasks wait.

For tests of code with timeouts and retries: a minute takes no time, and runs are deterministic.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from bayplan.clock import ManualClock

Result = TypeVar("Result")
MICROS = 1_000_000


class JumpingSelector(selectors.SelectSelector):
    """A selector that never waits, and has no events: it moves the clock to the end of the loop's timeout."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "all tasks wait, and none for a timer"
        if timeout > 0:
            self._clock.advance(math.ceil(timeout * MICROS) / MICROS)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that uses `clock`."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(JumpingSelector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.monotonic()


def run_virtual(clock: ManualClock, work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(work)
