"""Core: the scheduler on an event loop; `CoreThread`: on a thread and an event loop of its own.

Asynchronous work of plugins runs here, too, between the attempts, so it may read the scheduler's state. Input from
outside (changes in the cluster, answers) arrives in batches; output is handed to another loop.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ..clock import Clock, LoopAlarm
from ..framework import Status
from ..scheduler.collector import rare_collections
from ..scheduler.cycle import Scheduler
from .loop_driver import LoopExecutor

log = logging.getLogger(__name__)

SLICE_S = 0.005
"""Seconds for which pods are scheduled before other work has its turn."""

CATCH_UP_TURNS = 5
"""Turns of the loop after which an answer has passed through all coroutines that wait for it."""
CATCH_UP_S = 5.0
MAX_THREADS = 64
"""Number of plugins that may block at the same time."""

Result = TypeVar("Result")
Item = TypeVar("Item")
"""A batch of changes (a list), an answer (a tuple), or something to be called."""


class Crossing(Generic[Item]):
    """Passes items to `take`, on `loop`, in batches and in order. `put` may be called on any thread.

    Waking a thread costs more than most items, and the two threads take turns anyway: a short delay lets more items
    form a batch.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, take: Callable[[deque[Item]], None]
    ) -> None:
        self._loop = loop
        self._take = take
        self._items: deque[Item] = deque()
        self._is_announced = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        """Pass one item."""
        self._items.append(item)
        # The receiver clears the flag first: if it is still set, this item will be included.
        if not self._is_announced:
            self._is_announced = True
            self._announce()

    def _announce(self) -> None:
        with suppress(RuntimeError):  # the receiving loop is closed: the item is dropped
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_announced = False
        self._take(self._items)


class PatientCrossing(Crossing[Item]):
    """Crossing from one loop to another: items put on `source` cross `patience_s` after the first of them.

    With no patience that is at the end of the current iteration.
    """

    def __init__(
        self,
        source: asyncio.AbstractEventLoop,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[deque[Item]], None],
        patience_s: float = 0.0,
    ) -> None:
        super().__init__(loop, take)
        self._source = source
        self._patience_s = patience_s

    def _announce(self) -> None:
        if not self._is_on_source():
            super()._announce()
        elif self._patience_s:
            self._source.call_later(self._patience_s, super()._announce)
        else:
            self._source.call_soon(super()._announce)

    def _is_on_source(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._source
        except RuntimeError:
            return False


class Core:
    """Runs a scheduler on `loop`, for the event loop it was made on, which may be the same one.

    `failed` is called, on any thread, if it cannot go on.
    """

    def __init__(
        self,
        clock: Clock,
        failed: Callable[[BaseException], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        source = asyncio.get_running_loop()
        self._clock = clock
        self._failed = failed
        self.loop = loop or source
        self.inbox: Crossing[Any] = PatientCrossing(source, self.loop, self._take)
        self.executor = LoopExecutor(self.wake)
        self._apply: Callable[[Any], None] = lambda batch: None
        self._answer: Callable[[Any], None] = lambda result: None
        self._scheduler: Scheduler | None = None
        self._may_schedule = False
        self._is_turn_due = False
        self._alarm = LoopAlarm(clock, self.wake)

    @property
    def is_running(self) -> bool:
        """Whether it takes input."""
        return self.loop.is_running()

    def start(self, apply: Callable[[Any], None], answer: Callable[[Any], None]) -> None:
        """Begin; `apply` is given the batches that come in, `answer` the answers."""
        self._apply, self._answer = apply, answer

    async def call(self, work: Callable[[], Result]) -> Result:
        """Run a function on the scheduler's thread, between two attempts, and return its result."""
        caller = asyncio.get_running_loop()
        future: asyncio.Future[Result] = caller.create_future()

        def reply(value: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)

        def do() -> None:
            value, problem = None, None
            try:
                value = work()
            except Exception as error:  # raised again in the caller
                problem = error
            with suppress(RuntimeError):  # the caller's loop is closed
                caller.call_soon_threadsafe(reply, value, problem)

        self.inbox.put(do)
        return await future

    async def run_blocking(self, work: Callable[[], Status | Awaitable[Status]]) -> Status:
        """Do work of a plugin that may block."""
        answer = work()
        return answer if isinstance(answer, Status) else await answer

    def drive(self, scheduler: Scheduler) -> None:
        """From now on look after the timers of `scheduler`, and its pods while allowed. On its thread only."""
        self._scheduler = scheduler
        self.wake()

    def allow(self, may_schedule: bool) -> None:
        """Whether pods may be scheduled."""

        def do() -> None:
            self._may_schedule = may_schedule

        self.inbox.put(do)

    async def catch_up(self) -> bool:
        """Return when all input was processed and the resulting output was delivered.

        False if that takes too long: a plugin does not return.
        """
        if not self.is_running:
            return True
        try:
            async with asyncio.timeout(CATCH_UP_S):
                for _ in range(CATCH_UP_TURNS):
                    await self.call(lambda: None)
        except TimeoutError:
            return False
        return True

    async def stop(self, timeout_s: float) -> None:
        """Stop scheduling, and abandon the work under way."""
        self._scheduler = None
        self._alarm.set(self.loop, None)
        self.executor.cancel()

    # On the scheduler's thread

    def wake(self) -> None:
        """Wake up: there may be work."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self.loop.call_soon(self._turn)

    def _take(self, items: deque[Any]) -> None:
        while items:
            item = items.popleft()
            if type(item) is list:
                self._apply(item)
            elif type(item) is tuple:
                self._answer(item)
            else:
                item()
        self.wake()

    def _turn(self) -> None:
        """Fire the timers that are due and schedule for a little while."""
        self._is_turn_due = False
        scheduler = self._scheduler
        if scheduler is None:
            return
        scheduler.run_timers()
        if self._may_schedule:
            end = self._clock.monotonic() + SLICE_S
            while scheduler.schedule_one() is not None:
                if self._clock.monotonic() > end:
                    self.wake()
                    return
        # Be woken when a wait or a backoff ends.
        self._alarm.set(self.loop, scheduler.next_timer())


class CoreThread(Core):
    """A core with a thread and an event loop of its own, so that a long search delays no watch."""

    def __init__(self, clock: Clock, failed: Callable[[BaseException], None]) -> None:
        super().__init__(clock, failed, asyncio.new_event_loop())
        self.loop.set_exception_handler(self._on_exception)
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="plugin")
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether it takes input."""
        return self._thread.is_alive()

    def start(self, apply: Callable[[Any], None], answer: Callable[[Any], None]) -> None:
        """Begin; `apply` is given the batches that come in, `answer` the answers."""
        super().start(apply, answer)
        self._thread.start()

    async def run_blocking(self, work: Callable[[], Status | Awaitable[Status]]) -> Status:
        """Do work of a plugin that may block, away from the scheduler's thread."""
        answer = await self.loop.run_in_executor(self._pool, work)
        return answer if isinstance(answer, Status) else await answer

    def drive(self, scheduler: Scheduler) -> None:
        """From now on look after the timers of `scheduler`, and its pods while allowed. On its thread only."""
        gc.freeze()  # the objects so far stay: no need to search them for garbage
        super().drive(scheduler)

    async def stop(self, timeout_s: float) -> None:
        """Stop scheduling, and end the thread."""
        if not self._thread.is_alive():
            return
        loop = asyncio.get_running_loop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.loop.call_soon_threadsafe(self.loop.stop)
        await loop.run_in_executor(None, self._thread.join, timeout_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        with rare_collections():
            self.loop.run_forever()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report an internal error and stop: the state may be inconsistent."""
        error = context.get("exception") or RuntimeError(context.get("message", "unknown"))
        log.critical("the scheduler failed: %s", context.get("message"), exc_info=error)
        self._may_schedule = False
        self._failed(error)
