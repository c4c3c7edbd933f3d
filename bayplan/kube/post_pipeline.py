"""Post pipeline: many small POSTs over a few pipelined connections, with little work per request.

A pod needs two POSTs, its binding and its event, and their responses matter only when they are
refusals. A general client takes some 300 us for each (measured with TLS), which is more than the
rest of a pod's cost; this one takes a fraction of it: HTTP/1.1 with bytes in and out, and
concurrent requests are written together.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from .. import __version__
from ..errors import ApiError
from .connection import JSON, REQUEST_TIMEOUT_S, Answer, UnreachableError, refusal
from .credentials import Credentials
from .http1 import Head, ResponseReader, read_whole

log = logging.getLogger(__name__)

CHANNELS = 16
EVENT_CHANNELS = 4
"""For events: fewer, as bindings go first, and each connection costs a handshake."""
DEPTH = 8
"""Maximum number of requests in flight per connection; when half of them are answered, more follow
together."""
LOOK_S = 5.0
"""Interval of connection maintenance."""
IDLE_S = 60.0
"""Seconds for which an idle connection stays open."""

Done = Callable[["Answer | ApiError"], None]


class Post(NamedTuple):
    """A request and its callback."""

    path: str
    body: bytes
    done: Done
    was_resent: bool = False


class AnswerReader:
    """Splits a stream of bytes into HTTP/1.1 responses."""

    def __init__(self) -> None:
        self._partial: ResponseReader | None = None
        """Reads the response of which a part has arrived."""
        self.is_last = False
        """The server announced that it will close the connection."""

    def feed(self, data: bytes) -> list[Answer]:
        """The responses completed by `data`; raises ValueError when it is not HTTP."""
        answers: list[Answer] = []
        at = 0
        if self._partial is not None:
            at = self._read_partial(self._partial, data, answers)
        while at < len(data):
            found = read_whole(data, at)
            if found is None:
                self._partial = ResponseReader()
                at += self._read_partial(self._partial, data[at:], answers)
                continue
            head, begin, at = found
            self._add(head, data[begin:at], answers)
        return answers

    def _read_partial(self, reader: ResponseReader, data: bytes, answers: list[Answer]) -> int:
        """Read on in a response; returns how many bytes of `data` are its own."""
        rest = reader.feed(data)
        if reader.head is None or not reader.is_complete:
            return len(data)
        self._partial = None
        self._add(reader.head, reader.take(), answers)
        return len(data) - len(rest)

    def _add(self, head: Head, body: bytes, answers: list[Answer]) -> None:
        code = head.code
        delay_s = head.retry_after_s if code == 429 or code >= 500 else None
        answers.append(Answer(code, body, delay_s))
        self.is_last = head.is_last


class Channel(asyncio.Protocol):
    """One connection: requests and responses are in the same order."""

    def __init__(self, pool: PostPool) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._reader = AnswerReader()
        self.pending: deque[Post] = deque()
        self.unsent: list[bytes] = []
        self.last_heard = asyncio.get_running_loop().time()
        self.is_fresh = True
        """No response has arrived yet."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self) -> None:
        """Write everything in `unsent`."""
        assert self._transport is not None, "only open channels get requests"
        if not self.pending or len(self.pending) == len(self.unsent):
            self.last_heard = asyncio.get_running_loop().time()
        self._transport.write(b"".join(self.unsent))
        self.unsent.clear()

    def data_received(self, data: bytes) -> None:
        self.last_heard = asyncio.get_running_loop().time()
        self.is_fresh = False
        try:
            answers = self._reader.feed(data)
        except ValueError:
            self.close("expected HTTP from the API server")
            return
        for answer in answers:
            if not self.pending:
                self.close("got a response without a request")
                return
            self._pool.answered(self.pending.popleft(), answer)
        if self._reader.is_last:
            self.close("")
        else:
            self._pool.refill(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._pool.lost(self, str(error) if error else "the connection was closed")

    def close(self, problem: str) -> None:
        """Close the connection; its requests in flight fail, or are sent on another."""
        if self._transport is not None:
            self._transport.abort()
        self._pool.lost(self, problem or "the connection was closed")


class PostPool:
    """Sends POSTs, as many at a time as its channels allow; used on one event loop."""

    def __init__(
        self,
        credentials: Credentials,
        may_send: Callable[[], bool] = lambda: True,
        refused: Callable[[str], ApiError] = UnreachableError,
        channels: int = CHANNELS,
    ) -> None:
        self._credentials = credentials
        self._may_send = may_send
        self._refused = refused
        self._limit = channels
        self._waiting: deque[Post] = deque()
        self._channels: list[Channel] = []
        self._opening = 0
        self._is_due = False
        self._is_closed = False
        self._watching: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        address = urlsplit(credentials.server)
        self._host = address.hostname or ""
        self._port = address.port or (443 if address.scheme == "https" else 80)
        self._prefix = address.path
        self._authority = address.netloc
        self._head_for: tuple[str | None, bytes] = (None, b"")

    @property
    def under_way(self) -> int:
        """Number of requests without a response."""
        return len(self._waiting) + sum(len(channel.pending) for channel in self._channels)

    def post(self, post: Post) -> None:
        """Send a request when a channel has room; concurrent requests are written together."""
        self._waiting.append(post)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.pump)

    def open_first(self) -> None:
        """Open a channel before there is a request, if there is none."""
        if not self._channels:
            self._open_more()

    def forget_waiting(self) -> None:
        """Drop the unsent requests without a callback."""
        self._waiting.clear()

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
        for channel in list(self._channels):
            channel.close("")
        for task in self._tasks:
            task.cancel()

    # Callbacks of channels

    def answered(self, post: Post, answer: Answer) -> None:
        """Handle a response. After the refusal of a repeated request it is unknown whether the first arrived."""
        if post.was_resent and answer.code >= 400:
            problem = refusal(answer, f"POST {post.path}")
            server = self._credentials.server
            text = (
                f"{server}: the connection broke, and the repeated request was refused: {problem}"
            )
            post.done(UnreachableError(text))
            return
        post.done(answer)

    def lost(self, channel: Channel, problem: str) -> None:
        """Handle a closed channel. Its requests may or may not have arrived.

        On a reused connection the server may have closed before reading: repeating is safe, as each
        request names its object, and a duplicate is refused.
        """
        if channel not in self._channels:
            return
        self._channels.remove(channel)
        error = UnreachableError(f"{self._credentials.server}: the connection broke: {problem}")
        for post in channel.pending:
            if channel.is_fresh or post.was_resent or self._is_closed:
                post.done(error)
            else:
                self._waiting.append(post._replace(was_resent=True))
        channel.pending.clear()
        if self._waiting and not self._is_closed:
            self.pump()

    def pump(self) -> None:
        """Assign queued requests to channels with room, and open more channels if needed."""
        self._is_due = False
        if not self._waiting:
            return
        if not self._may_send():
            while self._waiting:
                post = self._waiting.popleft()
                post.done(self._refused(post.path))
            return
        head, full = self._head(), DEPTH
        # Requests are spread over the channels, as each waits for those before it on its own.
        room = [channel for channel in self._channels if len(channel.pending) < full]
        room.sort(key=lambda channel: len(channel.pending))
        while self._waiting and room:
            for channel in room[: len(self._waiting)]:
                self._give(channel, head)
            room = [channel for channel in room if len(channel.pending) < full]
        for channel in list(self._channels):
            if channel.unsent:
                channel.send()
        if len(self._channels) < self._limit:
            self._open_more()

    def refill(self, channel: Channel) -> None:
        """Assign queued requests to a channel that has room again."""
        if not self._waiting or len(channel.pending) > DEPTH // 2:
            return
        if not self._may_send():
            self.pump()
            return
        head = self._head()
        while self._waiting and len(channel.pending) < DEPTH:
            self._give(channel, head)
        channel.send()

    def _give(self, channel: Channel, head: bytes) -> None:
        post = self._waiting.popleft()
        channel.pending.append(post)
        channel.unsent.append(self._encode(post, head))

    def _encode(self, post: Post, head: bytes) -> bytes:
        start = f"POST {self._prefix}{post.path} HTTP/1.1\r\nContent-Length: {len(post.body)}\r\n"
        return start.encode() + head + post.body

    def _head(self) -> bytes:
        """The common part of all requests; rebuilt when the token has changed."""
        authorization = self._credentials.authorization
        if self._head_for[0] != (authorization or "") or not self._head_for[1]:
            lines = [
                f"Host: {self._authority}",
                f"User-Agent: bayplan/{__version__}",
                f"Accept: {JSON}",
                f"Content-Type: {JSON}",
            ]
            if authorization is not None:
                lines.append(f"Authorization: {authorization}")
            self._head_for = (authorization or "", "\r\n".join([*lines, "", ""]).encode())
        return self._head_for[1]

    def _open_more(self) -> None:
        """Open a channel for each request, up to the limit; the first one alone.

        With handshakes at the same time, the first requests would wait for the last of them.
        """
        wanted = min(self._limit, self.under_way) if self._channels else 1
        for _ in range(wanted - len(self._channels) - self._opening):
            self._opening += 1
            task = asyncio.get_running_loop().create_task(self._open())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _open(self) -> None:
        credentials = self._credentials
        context = credentials.ssl_context
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S / 2):
                _, channel = await asyncio.get_running_loop().create_connection(
                    lambda: Channel(self),
                    self._host,
                    self._port,
                    ssl=context,
                    server_hostname=(credentials.server_name or self._host) if context else None,
                )
        except (OSError, TimeoutError) as error:
            self._opening -= 1
            self._give_up(error)
            return
        self._opening -= 1
        self._channels.append(channel)
        if self._watching is None:
            self._maintain()
        self.pump()

    def _give_up(self, error: Exception) -> None:
        """Fail the queued requests when no connection can be made, unless others are open."""
        if self._channels or self._opening:
            return
        problem = str(error) or "no answer in time"
        failure = UnreachableError(
            f"{self._credentials.server}: cannot reach the API server: {problem}"
        )
        while self._waiting:
            self._waiting.popleft().done(failure)

    def _maintain(self) -> None:
        """Close channels that were silent for too long."""
        loop = asyncio.get_running_loop()
        for channel in list(self._channels):
            silence_s = loop.time() - channel.last_heard
            if channel.pending and silence_s > REQUEST_TIMEOUT_S:
                channel.is_fresh = True  # requests in flight must not be retried without limit
                channel.close("no answer in time")
            elif not channel.pending and silence_s > IDLE_S:
                channel.close("")
        self._watching = None if self._is_closed else loop.call_later(LOOK_S, self._maintain)
