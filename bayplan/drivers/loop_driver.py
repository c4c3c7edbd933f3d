"""Loop driver: the scheduler on an event loop that it shares with others, such as the server of `bayplan up`.

It schedules for a little while whenever it is run, and requests a wake-up when there is work again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from ..api.pod import Pod
from ..clock import Clock, LoopAlarm, Timers
from ..config.types import SchedulerConfiguration
from ..framework import Status, failure
from ..scheduler.build import build_scheduler
from ..scheduler.parts import PluginSource, SchedulerSettings

SLICE_S = 0.005
"""Seconds of machine time for which pods are scheduled before other work has its turn."""


class LoopExecutor:
    """Runs plain work at once and asyncio work on the running loop; `done` is called when that has ended."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._under_way: set[asyncio.Task[None]] = set()

    def run(
        self, work: Callable[[], Status | Awaitable[Status]], finished: Callable[[Status], None]
    ) -> None:
        """Do `work`, then call `finished` with its result."""
        try:
            answer = work()
        except Exception as error:  # PreBind and Bind of plugins may raise anything
            finished(failure(error))
            return
        if isinstance(answer, Status):
            finished(answer)
            return

        async def wait() -> None:
            try:
                status = await answer
            except Exception as error:  # PreBind and Bind of plugins may raise anything
                status = failure(error)
            finished(status)
            self._done()

        task = asyncio.get_running_loop().create_task(wait())
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    @property
    def under_way(self) -> int:
        """Number of tasks that have not ended."""
        return len(self._under_way)

    def cancel(self) -> None:
        """Cancel the tasks that have not ended; `finished` is not called."""
        for task in self._under_way:
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # not of the work, but of the callback with its answer
            context = {
                "message": "what came of asynchronous work was not taken",
                "exception": error,
            }
            task.get_loop().call_exception_handler(context)


class LoopDriver:
    """Schedules the pods of `cluster`. The owner of the loop calls `run`, at least whenever `wake` was called.

    `take_first` gives pods that are tried before all others, each once: daemons that come with a new node.
    """

    def __init__(
        self,
        config: SchedulerConfiguration,
        cluster: Any,
        clock: Clock,
        timers: Timers,
        wake: Callable[[], None],
        *,
        plugins: Iterable[PluginSource] = (),
        feature_gates: Mapping[str, bool] | None = None,
        take_first: Callable[[], Sequence[Pod]] = tuple,
    ) -> None:
        self._clock = clock
        self._take_first = take_first
        self.scheduler = build_scheduler(
            config,
            cluster,
            SchedulerSettings(
                clock=clock,
                timers=timers,
                executor=LoopExecutor(wake),
                plugins=plugins,
                feature_gates=feature_gates,
            ),
        )
        self._alarm = LoopAlarm(clock, wake)
        cluster.watch(self.scheduler)

    def run(self) -> bool:
        """Schedule for a little while; returns whether pods are left that could be tried."""
        self.scheduler.run_timers()
        for pod in self._take_first():
            queued = self.scheduler.queue.pop_specific(pod)
            if queued is not None:
                self.scheduler.schedule_popped(queued)
        end = self._clock.monotonic() + SLICE_S * self._clock.speed
        while self.scheduler.schedule_one() is not None:
            if self._clock.monotonic() > end:
                return True
        # Be woken when a wait or a backoff ends.
        when = self.scheduler.next_timer()
        self._alarm.set(asyncio.get_running_loop() if when is not None else None, when)
        return False
