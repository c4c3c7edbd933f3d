"""Clock loop: an asyncio loop whose time is the scheduler's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from ..clock import Clock, Timers, whole_micros
from ..framework import Status, failure


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop with the time of a Clock, run by callbacks of Timers; it never blocks."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        super().__init__()
        self._clock = clock
        self._timers = timers
        self._pumping = False
        self._under_way: set[asyncio.Task[None]] = set()

    def time(self) -> float:
        return self._clock.monotonic()

    def call_at(  # type: ignore[override]  # looser about the callback's arguments
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        when = whole_micros(
            when
        )  # rounded as the timer is, or the loop would find nothing to do yet
        handle = super().call_at(when, callback, *args, context=context)
        self._timers.at(when, self._pump)
        return handle

    def call_soon(  # type: ignore[override]  # as above
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if (
            self._under_way and not self._pumping
        ):  # made ready from outside, such as by a cancellation
            self._timers.at(self.time(), self._pump)
        return super().call_soon(callback, *args, context=context)

    def begin(self, work: Awaitable[Status], finished: Callable[[Status], None]) -> None:
        """Start `work` and run as far as it goes without waiting."""

        async def watch() -> None:
            try:
                status = await work
            except Exception as error:  # a plugin may raise anything
                status = failure(error)
            finished(status)

        task = self.create_task(watch())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        self._pump()

    def abandon(self) -> None:
        """Cancel the tasks that have not ended."""
        for task in list(self._under_way):
            task.cancel()
        self._pump()
        self.close()

    def _pump(self) -> None:
        """Run everything that is ready, until nothing is."""
        if self._pumping or self.is_closed():
            return
        self._pumping = True
        try:
            while True:
                self.call_soon(self.stop)
                self.run_forever()  # one round: with something ready, the loop does not wait
                if not self._ready:  # type: ignore[attr-defined]  # asyncio has no public name for it
                    break
        finally:
            self._pumping = False
