"""Executor: runs the slow half of a pod's path, beside the scheduling of the next pods.

A driver with threads or an event loop brings its own. The one here runs plain code at once, and asyncio code on a loop
whose time is the scheduler's clock: in a simulation `asyncio.sleep(30)` takes thirty virtual seconds and no real one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..clock import Clock, Timers
from ..framework import Status, failure
from ..framework.handle import Executor

if TYPE_CHECKING:
    from .clock_loop import ClockLoop

Work = Callable[[], Status | Awaitable[Status]]
Finished = Callable[[Status], None]


class InlineExecutor:
    """Runs work on the scheduler's own thread; only for plugins that do not block."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._loop: ClockLoop | None = None

    def run(self, work: Work, finished: Finished) -> None:
        """Do `work` and call `finished` with its result, now or later."""
        try:
            answer = work()
        except Exception as error:  # a plugin may raise anything
            finished(failure(error))
            return
        if isinstance(answer, Status):
            finished(answer)
            return
        if self._loop is None:
            from .clock_loop import (
                ClockLoop,  # with asyncio, which most simulations need not import
            )

            self._loop = ClockLoop(self._clock, self._timers)
        self._loop.begin(answer, finished)

    def close(self) -> None:
        """Stop whatever still runs."""
        if self._loop is not None:
            self._loop.abandon()


class HoldingExecutor:
    """Passes work on to another executor; work that arrives while it is `held` is passed on at the end of the block."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._held: list[tuple[Work, Finished]] | None = None

    def run(self, work: Work, finished: Finished) -> None:
        """Do `work` and call `finished` with its result, now or later."""
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
