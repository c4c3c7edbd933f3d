"""Cancellation: cancels the PreBind plugins of a pod that will not be bound after all.

The counterpart of a cancelled context in kube-scheduler. An `async def pre_bind` is cancelled where it awaits; one that
blocks its thread reads `state.cancellation`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable

from .status import Status

CANCELLED = "context canceled"
"""The error of kube-scheduler's plugins when their context was cancelled."""


def cancelled_error() -> type[BaseException]:
    """`asyncio.CancelledError`; asyncio is imported only when it is needed."""
    from asyncio import CancelledError

    return CancelledError


class Cancellation:
    """Set at most once, on the scheduler's thread; read on any thread."""

    __slots__ = ("_stops", "is_set", "reason")

    def __init__(self) -> None:
        self.is_set = False
        """Whether the pod will not be bound; `reason` is the cause."""
        self._stops: list[Callable[[], object]] = []
        self.reason = ""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait, on a thread of a blocking plugin, until it is set or the time is over; returns `is_set`."""
        event = threading.Event()
        self._stops.append(event.set)
        if not self.is_set:  # in this order: `set` calls the callbacks that were appended before
            event.wait(timeout_s)
        return self.is_set

    def set(self, reason: str) -> None:
        """Stop the work; only the first reason counts."""
        if self.is_set:
            return
        self.reason = reason
        self.is_set = True
        for stop in list(self._stops):
            stop()

    async def stops(self, work: Awaitable[Status]) -> Status:
        """The result of `work`, which gets CancelledError where it awaits when this is set."""
        import asyncio

        task = asyncio.ensure_future(work)
        self._stops.append(task.cancel)
        if self.is_set:
            task.cancel()
        try:
            return await task
        finally:
            self._stops.remove(task.cancel)
            task.cancel()  # where this very call is cancelled


NEVER_CANCELLED = Cancellation()
"""The cancellation of pods whose PreBind has not begun."""
