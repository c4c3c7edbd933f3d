"""Sender: writes to the API server, limited in concurrency and rate.

Works on the event loop of the connection; results are passed to `answered`. When writing is no
longer allowed, as after the loss of the lease, waiting orders fail.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, NamedTuple

from ..errors import ApiError
from .connection import JSON, MAX_RETRIES, Answer, Connection, UnreachableError, refusal
from .post_pipeline import CHANNELS, Done, Post, PostPool
from .request_metrics import NO_RESPONSE, HostRequests
from .retry_backoff import loop_time

log = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"""Maximum number of concurrent requests."""
TRIES = 4
FIRST_WAIT_S = 0.01
WAIT_FACTOR = 5
"""Retries of a patch: k8s.io/client-go/util/retry.DefaultBackoff."""

Result = tuple["asyncio.Future[Any]", Any, ApiError | None]
Job = Callable[["Sender"], Awaitable[Any]]


class ClosedError(ApiError):
    """This process is not, or no longer, allowed to write."""


class Order(NamedTuple):
    """A request, and the future of its result."""

    job: Job
    future: asyncio.Future[Any] | None
    what: str
    """For the log, if it fails without a waiter."""


class PostOrder(NamedTuple):
    """A POST whose response matters only if it is a refusal: there may be thousands."""

    path: str
    body: bytes
    future: asyncio.Future[Any]
    confirm: Callable[[Sender, ApiError], Awaitable[Any]] | None = None
    """Determines the outcome when the response does not; raises the error if it failed."""


class Posting:
    """A POST until it has its last response."""

    __slots__ = ("_done", "_is_retry", "_requests", "_send", "_started", "_tries", "body", "path")

    def __init__(
        self,
        path: str,
        body: bytes,
        done: Done,
        requests: HostRequests,
        send: Callable[[Posting], None],
        tries: int,
    ) -> None:
        self.path = path
        self.body = body
        self._done = done
        self._requests = requests
        self._send = send
        self._tries = tries
        self._is_retry = False
        self._started = perf_counter()

    def answered(self, answer: Answer | ApiError) -> None:
        """Count a response, and pass it on unless the server asked for another attempt."""
        if isinstance(answer, ClosedError):
            self._done(answer)
            return
        code, received = NO_RESPONSE, None
        if isinstance(answer, Answer):
            code, received = answer.code, len(answer.body)
        self._requests.attempted("POST", code, len(self.body), is_retry=self._is_retry)
        if isinstance(answer, Answer) and code >= 300:
            if self._tries and answer.retry_after_s is not None:
                self._tries, self._is_retry = self._tries - 1, True
                asyncio.get_running_loop().call_later(answer.retry_after_s, self._send, self)
                return
            answer = refusal(answer, f"POST {self.path}")
        self._requests.ended("POST", perf_counter() - self._started, received)
        self._done(answer)


class PostWork:
    """A PostOrder until it has its outcome: by posts, and by requests where those leave it open."""

    __slots__ = ("_order", "_sender", "_tries", "_wait_s")

    def __init__(self, sender: Sender, order: PostOrder, tries: int) -> None:
        self._sender = sender
        self._order = order
        self._tries, self._wait_s = tries, FIRST_WAIT_S

    def post(self) -> None:
        """Post it."""
        self._sender.post(self._order.path, self._order.body, self._answered)

    def request(self) -> None:
        """Send it as a request, which renews the token if necessary."""
        self._sender.begin(Order(self._request, self._order.future, self._what))

    @property
    def _what(self) -> str:
        return f"POST {self._order.path}"

    def _answered(self, answer: Answer | ApiError) -> None:
        future, confirm = self._order.future, self._order.confirm
        if isinstance(answer, Answer):
            self._sender.answered((future, None, None))
        elif answer.code == 401:  # the token must be renewed first
            self.request()
        elif is_passing(answer) and self._tries > 1:
            log.debug("%s: %s; trying again", self._what, answer)
            asyncio.get_running_loop().call_later(self._wait_s, self.post)
            self._tries, self._wait_s = self._tries - 1, self._wait_s * WAIT_FACTOR
        elif confirm is not None and is_unclear(answer):
            self._sender.begin(Order(lambda sender: confirm(sender, answer), future, self._what))
        else:
            self._sender.answered((future, None, answer))

    async def _request(self, sender: Sender) -> Any:
        try:
            return await sender.request("POST", self._order.path, self._order.body)
        except ApiError as error:
            if self._order.confirm is None or not is_unclear(error):
                raise
            return await self._order.confirm(sender, error)


class Sender:
    """Sends orders."""

    def __init__(
        self,
        connection: Connection,
        bucket: TokenBucket,
        answered: Callable[[Result], None],
        may_send: Callable[[], bool] = lambda: True,
        retries_bindings: bool = False,
        *,
        channels: int = CHANNELS,
    ) -> None:
        self._connection = connection
        self._bucket = bucket
        self._is_limited = bucket.is_limited
        self._requests = connection.requests
        self.answered = answered
        self._retries_bindings = retries_bindings
        """Fact of the release: posts are repeated after errors of the server, patches after a conflict, too."""
        self._is_ending = False
        self._may_send: Callable[[], bool] = lambda: not self._is_ending and may_send()
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._pool: PostPool | None = None
        if connection.credentials.proxy is None:
            self._pool = PostPool(connection.credentials, self._may_send, _not_sent, channels)
        self._under_way: set[asyncio.Task[None]] = set()
        self._sending: set[asyncio.Task[Any] | None] = set()
        self._delayed: deque[tuple[float, Post]] = deque()
        """Delayed posts with their times, first in first out."""
        self._alarm: asyncio.TimerHandle | None = None

    def take(self, orders: deque[Order | PostOrder]) -> None:
        """Start all orders."""
        while orders:
            order = orders.popleft()
            if isinstance(order, Order):
                self.begin(order)
            else:
                self._post(order)

    def connect(self) -> None:
        """Open a connection for the first post: its handshake is over when that comes."""
        if self._pool is not None:
            self._pool.open_first()

    def post(self, path: str, body: bytes, done: Done, tries: int = MAX_RETRIES) -> None:
        """Post `body` in its turn; `done` receives the response, or the error."""
        self._send(Posting(path, body, done, self._requests, self._send, tries))

    def _send(self, posting: Posting) -> None:
        wait_s = self._take("POST")
        assert self._pool is not None, "callers check can_post first"
        post = Post(posting.path, posting.body, posting.answered)
        if wait_s:
            self._delayed.append((asyncio.get_running_loop().time() + wait_s, post))
            self._post_delayed()
        else:
            self._pool.post(post)

    @property
    def can_post(self) -> bool:
        """Whether the fast path is available."""
        return self._pool is not None

    def refuse_waiting(self) -> None:
        """Fail all waiting orders: writing is no longer allowed."""
        delayed = [post for _, post in self._delayed]
        self._delayed.clear()
        for post in delayed:
            post.done(_not_sent(post.path))
        if self._pool is not None:
            self._pool.pump()

    def end(self) -> None:
        """Stop sending. Requests in flight continue, the rest is dropped without callbacks."""
        self._is_ending = True
        self._delayed.clear()
        if self._pool is not None:
            self._pool.forget_waiting()
        for task in self._under_way - self._sending:
            task.cancel()

    async def finish(self, timeout_s: float) -> None:
        """Wait until all started requests have ended, up to a timeout."""
        end = asyncio.get_running_loop().time() + timeout_s
        while self.is_busy and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Cancel the unfinished requests."""
        if self._pool is not None:
            self._pool.close()
        for task in self._under_way:
            task.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether a request is in flight."""
        posting = self._pool is not None and self._pool.under_way
        return bool(self._under_way or self._delayed or posting)

    def _take(self, method: str) -> float:
        """The seconds for which the rate limit holds the next request."""
        wait_s = self._bucket.take()
        if self._is_limited:
            self._requests.waited(method, wait_s)
        return wait_s

    def _post_delayed(self) -> None:
        """Post the delayed posts that are due, and set a timer for the rest."""
        loop = asyncio.get_running_loop()
        while self._delayed and self._delayed[0][0] <= loop.time() and self._pool is not None:
            self._pool.post(self._delayed.popleft()[1])
        if self._delayed and self._alarm is None:
            self._alarm = loop.call_at(self._delayed[0][0], self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._post_delayed()

    def begin(self, order: Order) -> None:
        """Start an order concurrently with the others."""
        task = asyncio.get_running_loop().create_task(self._do(order))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _post(self, order: PostOrder) -> None:
        work = PostWork(self, order, TRIES if self._retries_bindings else 1)
        if self.can_post:
            work.post()
        else:
            work.request()

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> bytes:
        """Send one request in its turn; raises ApiError."""
        wait_s = self._take(method)
        if wait_s:
            await asyncio.sleep(wait_s)
        async with self._slots:
            if not self._may_send():
                raise _not_sent(path)
            task = asyncio.current_task()
            self._sending.add(task)
            try:
                return await self._connection.request(method, path, body, content_type=content_type)
            finally:
                self._sending.discard(task)

    async def pause(self, seconds: float) -> None:
        """Wait, but only until an unreachable server responds to any request again."""
        await self._connection.pause(seconds)

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        """Send a patch, and retry on server errors, or a conflict if the release does."""
        wait_s = FIRST_WAIT_S
        for _ in range(TRIES - 1):
            try:
                return await self.request("PATCH", path, body, content_type)
            except ApiError as error:
                has_conflict = self._retries_bindings and error.code == 409
                if not (has_conflict or is_passing(error)):
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
        except Exception as error:  # a fault of one request must not end the others
            log.exception("%s failed", order.what)
            problem = ApiError(f"{order.what}: {error!r}")
        if order.future is not None:
            self.answered((order.future, answer, problem))
        elif problem is not None and problem.code != 404:
            log.warning("%s: %s", order.what, problem)


def _not_sent(path: str) -> ApiError:
    return ClosedError(f"{path}: not sent, as another scheduler may have the lease")


def is_passing(error: ApiError) -> bool:
    """Whether kube-scheduler repeats a write after such an error."""
    return error.code in (500, 503) or isinstance(error, UnreachableError)


def is_unclear(error: ApiError) -> bool:
    """Whether the object may have been written nevertheless: no response, an unreliable one, or a
    conflict."""
    return isinstance(error, UnreachableError) or error.code == 409 or error.code >= 500


class TokenBucket:
    """Returns the delay of each request; requests are served in order."""

    def __init__(self, qps: float, burst: int, now: Callable[[], float] = loop_time) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._now = now
        self._tokens = float(self._burst)
        self._filled_at = -math.inf

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._qps > 0

    def take(self) -> float:
        """Take a token; return the seconds until it is available. Without a limit (`qps` negative)
        that is 0."""
        if self._qps <= 0:
            return 0.0
        now = self._now()
        tokens = self._tokens + (now - self._filled_at) * self._qps
        if tokens > self._burst:
            tokens = self._burst
        self._filled_at = now
        self._tokens = tokens = tokens - 1
        return -tokens / self._qps if tokens < 0 else 0.0
