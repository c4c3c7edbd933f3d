"""Sender: what is written to the API server: so many requests at a time, so many per second.

Works on the event loop of the connection; what comes of a request is handed to `answered`. When nothing may be sent any
more, as after the loss of the lease, what waits fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ...errors import ApiError
from .connection import JSON, Connection, UnreachableError
from .throttle import TokenBucket

log = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"""How many requests are under way at the same time, at most."""
TRIES = 4
FIRST_WAIT_S = 0.01
WAIT_FACTOR = 5
"""How often and when a patch is tried again: k8s.io/client-go/util/retry.DefaultBackoff."""

Result = tuple["asyncio.Future[Any]", Any, ApiError | None]
Job = Callable[["Sender"], Awaitable[Any]]


class ClosedError(ApiError):
    """We are not, or no longer, the one who may write."""


class Order(NamedTuple):
    """Something to be sent, and who waits for what comes of it."""

    job: Job
    future: asyncio.Future[Any] | None
    what: str
    """For the log, if it fails and nobody waits."""


class Sender:
    """Sends what others ordered."""

    def __init__(
        self,
        connection: Connection,
        bucket: TokenBucket,
        answered: Callable[[Result], None],
        may_send: Callable[[], bool] = lambda: True,
    ) -> None:
        self._connection = connection
        self._bucket = bucket
        self._answered = answered
        self._may_send = may_send
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._under_way: set[asyncio.Task[None]] = set()

    def take(self, orders: deque[Order]) -> None:
        """Begin with all orders."""
        loop = asyncio.get_running_loop()
        while orders:
            task = loop.create_task(self._do(orders.popleft()))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def finish(self, timeout_s: float) -> None:
        """Wait until all that was begun has ended, or the time is over."""
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=timeout_s)

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> bytes:
        """Send one request when it is its turn; raises ApiError."""
        wait_s = self._bucket.take()
        if wait_s:
            await asyncio.sleep(wait_s)
        async with self._slots:
            if not self._may_send():
                raise ClosedError(f"{method} {path}: not sent, as another scheduler has the lease")
            return await self._connection.request(method, path, body, content_type=content_type)

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        """Send a patch, and again when the server is in trouble."""
        wait_s = FIRST_WAIT_S
        for _ in range(TRIES - 1):
            try:
                return await self.request("PATCH", path, body, content_type)
            except ApiError as error:
                if error.code not in (500, 503) and not isinstance(error, UnreachableError):
                    raise
            await asyncio.sleep(wait_s)
            wait_s *= WAIT_FACTOR
        return await self.request("PATCH", path, body, content_type)

    async def _do(self, order: Order) -> None:
        answer, problem = None, None
        try:
            answer = await order.job(self)
        except ApiError as error:
            problem = error
        except Exception as error:
            log.exception("%s failed", order.what)
            problem = ApiError(f"{order.what}: {error!r}")
        if order.future is not None:
            self._answered((order.future, answer, problem))
        elif problem is not None and problem.code != 404:
            log.warning("%s: %s", order.what, problem)
