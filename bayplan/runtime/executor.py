"""Executor: runs the slow half of a pod's path, beside the scheduling of the next pods.

A driver with threads or an event loop brings its own. The one here runs plain code at once, and asyncio code on a loop
whose time is the scheduler's clock: in a simulation `asyncio.sleep(30)` takes thirty virtual seconds and no real one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from ..clock import Clock, Timers, whole_micros
from ..framework import Executor, Status, failure

Work = Callable[[], Status | Awaitable[Status]]
Finished = Callable[[Status], None]


class InlineExecutor:
    """Runs work on the scheduler's own thread; only for plugins that do not block."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._loop: ClockLoop | None = None

    def run(self, work: Work, finished: Finished) -> None:
        """Do `work` and tell `finished` what came of it, now or later."""
        try:
            answer = work()
        except Exception as error:
            finished(failure(error))
            return
        if isinstance(answer, Status):
            finished(answer)
            return
        if self._loop is None:
            self._loop = ClockLoop(self._clock, self._timers)
        self._loop.begin(answer, finished)

    def close(self) -> None:
        """Stop whatever still runs."""
        if self._loop is not None:
            self._loop.abandon()


class HoldingExecutor:
    """Hands work on to another executor; what comes while it is `held` is handed on at the end of that."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._held: list[tuple[Work, Finished]] | None = None

    def run(self, work: Work, finished: Finished) -> None:
        """Do `work` and tell `finished` what came of it, now or later."""
        if self._held is not None:
            self._held.append((work, finished))
        else:
            self._executor.run(work, finished)

    def close(self) -> None:
        """Stop whatever still runs, if the executor can."""
        close = getattr(self._executor, "close", None)
        if close is not None:
            close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Begin no work before the end of the block."""
        assert self._held is None, "work is held already"
        held = self._held = []
        try:
            yield
        finally:
            self._held = None
            for work, finished in held:
                self._executor.run(work, finished)


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop that lives by a Clock and is pumped by Timers; it never waits for anything else."""

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
        when = whole_micros(when)  # as the timer, or the loop would find nothing to do yet
        handle = super().call_at(when, callback, *args, context=context)
        self._timers.at(when, self._pump)
        return handle

    def call_soon(  # type: ignore[override]  # as above
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._under_way and not self._pumping:  # made ready from outside, as by a cancellation
            self._timers.at(self.time(), self._pump)
        return super().call_soon(callback, *args, context=context)

    def begin(self, work: Awaitable[Status], finished: Finished) -> None:
        """Start `work` and run as far as it goes without waiting."""

        async def watch() -> None:
            try:
                status = await work
            except Exception as error:
                status = failure(error)
            finished(status)

        task = self.create_task(watch())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        self._pump()

    def abandon(self) -> None:
        """Cancel what has not ended."""
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
