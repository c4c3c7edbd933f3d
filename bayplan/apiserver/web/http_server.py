"""HTTP server: connections on an event loop, each with one request under way at a time.

A handler is a plain function: it gets a request with its whole body, and answers through the connection, at once or
later. An answer is a response, or a stream of pieces without an end.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from .http_requests import (
    MAX_HEAD,
    MalformedRequestError,
    RequestReader,
    WholeRequest,
)

REASONS = {status.value: status.phrase for status in HTTPStatus}
HEAD_S, REQUEST_S = 30.0, 60.0
"""Seconds from the first byte of a request, or from the beginning of a connection, to its whole head and body."""
SWEEP_S = 1.0
MAX_CONNECTIONS = 16_384
MAX_STRANGERS = 1_024
"""Connections on which no request was answered yet."""
MAX_HELD = 64 << 20
"""Bytes of bodies that are not complete, of all connections."""
SMALL_BODY = 1 << 18
"""A body of that size is read even if others hold all memory for bodies."""
BATCH = 16
"""Most requests that one connection has answered before others have their turn."""
LINGER_S = 5.0
"""Seconds for which the rest of a refused request is read, so that the client gets the answer."""
CLOSING_S = 1.0
TOO_SLOW = "the request took too long to arrive"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_BREAKS = str.maketrans("\r\n\0", "   ")


class HttpResponse:
    """A response with its whole body."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.body = body
        self.status = status
        self.headers = headers


class StreamSource(Protocol):
    """Writes a stream to its connection."""

    def on_ready(self) -> None:
        """More can be written."""

    def on_lost(self) -> None:
        """The client closed the connection."""


class RequestHandler(Protocol):
    """Answers requests."""

    def handle(self, request: WholeRequest, connection: ServedConnection) -> None:
        """Answer a request."""

    def admit(self, request: WholeRequest) -> HttpResponse | None:
        """The refusal of a request whose body has not arrived, or None to read it."""

    def refuse(self, error: MalformedRequestError) -> HttpResponse:
        """The response to bytes that are no request."""


class ServedConnection(asyncio.Protocol):
    """One client."""

    def __init__(self, handler: RequestHandler, crowd: Crowd) -> None:
        self._handler = handler
        self._crowd = crowd
        self._since_s: float | None = time.monotonic()
        """Since when a request is expected or incomplete; None without one."""
        self._is_known = False
        """Whether a request was answered."""
        self._admitted: WholeRequest | None = None
        self._held_bytes = 0
        self._is_reading = True
        self._is_half_closed = False
        self._reader = RequestReader()
        self._unread = b""
        """Bytes that arrived while a request is under way."""
        self._refusal: HttpResponse | None = None
        self._transport: asyncio.Transport
        self._request: WholeRequest | None = None
        """The request under way."""
        self._stream: StreamSource | None = None
        self._is_given_up = False
        self._is_proceeding = False
        self.is_paused = False
        """Whether the client does not keep up with a stream."""

    # The event loop's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "the server listens on streams"
        self._transport = transport
        self._crowd.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._crowd.remove(self, self._held_bytes)
        self._is_given_up = True
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.on_lost()

    def data_received(self, data: bytes) -> None:
        if self._is_given_up:
            return
        self._unread += data
        if self._request is None and not self.is_paused:
            self._proceed()
        elif len(self._unread) > MAX_HEAD and self._is_reading:
            self._is_reading = False  # the client sends without waiting for responses
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Keep a connection on which nothing more arrives while requests on it have no answer; not with TLS."""
        has_requests = self._request is not None or bool(self._reader.complete or self._unread)
        if self._stream is not None or self._is_given_up or not has_requests:
            return False
        self._is_half_closed = True
        return self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if self._stream is not None:
            self._stream.on_ready()
        elif self._request is None:
            self._proceed()

    @property
    def _can_proceed(self) -> bool:
        return self._request is None and not self._is_given_up and not self.is_paused

    def _proceed(self) -> None:
        """Handle the requests that have arrived, up to one that is not answered at once, or whose answer waits."""
        if self._is_proceeding:
            return
        self._is_proceeding = True
        for _ in range(BATCH):
            if not self._can_proceed:
                break
            if self._reader.complete:
                self._request, self._since_s = self._reader.complete.popleft(), None
                self._handler.handle(self._request, self)
            elif self._refusal is not None:
                self._give_up(self._refusal)
            elif self._unread:
                self._read()
            else:
                if self._is_half_closed:
                    self._transport.close()
                break
        else:
            asyncio.get_running_loop().call_soon(self._proceed)  # after the other connections
        self._is_proceeding = False
        self._note_time()
        if self._reader.wants_continue and self._can_proceed and self._refusal is None:
            self._reader.wants_continue = False
            self._transport.write(CONTINUE)

    def _note_time(self) -> None:
        """Begin the time of a request that is incomplete, or end it."""
        if self._request is not None:
            self._since_s = None
        elif self._reader.is_within or self._unread:
            if self._since_s is None:
                self._since_s = time.monotonic()
        elif self._is_known:
            self._since_s = None

    def _read(self) -> None:
        data, self._unread = self._unread, b""
        if not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()
        reader = self._reader
        try:
            reader.feed(data)
        except MalformedRequestError as error:
            self._refusal = self._handler.refuse(error)  # the requests before it are answered first
            return
        pending = reader.pending
        if pending is not None and pending is not self._admitted:
            self._admitted = pending
            self._refusal = self._handler.admit(pending)
        if self._held_bytes or pending is not None:
            held, self._held_bytes = self._held_bytes, reader.held_bytes
            if not self._crowd.hold(self._held_bytes - held) and self._held_bytes > SMALL_BODY:
                problem = f"the bodies of other requests have {MAX_HELD} bytes; try again"
                self._refusal = self._handler.refuse(MalformedRequestError(429, problem))

    def _give_up(self, response: HttpResponse) -> None:
        self._is_given_up = True
        self._unread, self._reader = b"", RequestReader()
        self._crowd.hold(-self._held_bytes)
        self._held_bytes = 0
        self._transport.write(_head(response, is_last=True) + response.body)
        asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)

    def check_time(self, now_s: float) -> None:
        """End the connection when a request takes too long to arrive."""
        since_s = self._since_s
        if since_s is None or self._is_given_up or now_s - since_s < HEAD_S:
            return
        if not self._reader.is_within and not self._unread:
            self.close()  # no byte of a request arrived
        elif self._reader.pending is None or now_s - since_s >= REQUEST_S:
            self._give_up(self._handler.refuse(MalformedRequestError(408, TOO_SLOW)))

    # The handler's side

    def respond(self, response: HttpResponse) -> None:
        """Answer the request under way."""
        request, self._request = self._request, None
        assert request is not None, "a request is answered once"
        if self._is_given_up:
            return
        self._note_answer()
        body = b"" if request.method == "HEAD" else response.body
        self._transport.write(_head(response, request.is_last) + body)
        self._after(request)

    def stream(self, headers: Mapping[str, str], source: StreamSource) -> None:
        """Answer the request under way with a stream."""
        assert self._request is not None, "a stream answers a request"
        self._stream = source
        self._note_answer()
        way = {"Transfer-Encoding": "chunked"} if self._request.is_1_1 else {}
        self._transport.write(_begin({**headers, **way}) + b"\r\n")

    def _note_answer(self) -> None:
        if not self._is_known:
            self._is_known = True
            self._crowd.strangers.pop(self, None)

    def send(self, data: bytes) -> None:
        """Send the next piece of the stream, which is not empty."""
        if self._request is not None and self._request.is_1_1:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self._transport.write(data)

    def end_stream(self) -> None:
        """End the stream."""
        request, self._request = self._request, None
        assert request is not None, "a stream ends once"
        self._stream = None
        if self._is_given_up:
            return
        if request.is_1_1:
            self._transport.write(b"0\r\n\r\n")
        self._after(request)

    def _after(self, request: WholeRequest) -> None:
        """Go on after the answer to a request."""
        if request.is_last:
            self._is_given_up = True
            self._transport.close()
        elif not self._is_proceeding:  # else the loop in `_proceed` continues
            self._proceed()

    def close(self) -> None:
        """Close the connection when its output is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()


class Crowd:
    """All connections, and the bytes they hold together."""

    def __init__(self) -> None:
        self.open: set[ServedConnection] = set()
        self.strangers: dict[ServedConnection, None] = {}
        """Those on which no request was answered yet, the oldest first."""
        self._held_bytes = 0

    def add(self, connection: ServedConnection) -> None:
        """Add a connection; above the limits the oldest one without a response is closed."""
        self.open.add(connection)
        self.strangers[connection] = None
        if len(self.strangers) > MAX_STRANGERS or len(self.open) > MAX_CONNECTIONS:
            oldest = next(iter(self.strangers))
            del self.strangers[oldest]
            oldest.abort()

    def remove(self, connection: ServedConnection, held_bytes: int) -> None:
        """Drop a connection, and the bytes that it held."""
        self.open.discard(connection)
        self.strangers.pop(connection, None)
        self._held_bytes -= held_bytes

    def hold(self, more: int) -> bool:
        """Count bytes of bodies that are not complete; return False when there are too many."""
        self._held_bytes += more
        return self._held_bytes <= MAX_HELD


class HttpServer:
    """Listens, and keeps the connections."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._crowd = Crowd()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self, address: str, port: int, context: ssl.SSLContext | None) -> int:
        """Listen; returns the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ServedConnection(self._handler, self._crowd),
            address,
            port,
            ssl=context,
            backlog=128,
            reuse_address=True,
        )
        self._sweep = loop.call_later(SWEEP_S, self._on_sweep)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    def _on_sweep(self) -> None:
        """End connections whose requests take too long to arrive."""
        now_s = time.monotonic()
        for connection in tuple(self._crowd.open):
            connection.check_time(now_s)
        self._sweep = asyncio.get_running_loop().call_later(SWEEP_S, self._on_sweep)

    async def stop(self) -> None:
        """Close everything."""
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._crowd.open):
            connection.close()
        deadline = time.monotonic() + CLOSING_S
        while self._crowd.open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in tuple(self._crowd.open):
            connection.abort()
        if self._crowd.open:
            await asyncio.sleep(0)  # the loop reports them


def _head(response: HttpResponse, is_last: bool) -> bytes:
    begin = _begin(response.headers, response.status)
    closing = b"Connection: close\r\n" if is_last else b""
    return b"%bContent-Length: %d\r\n%b\r\n" % (begin, len(response.body), closing)


def _begin(headers: Mapping[str, str], status: int = 200) -> bytes:
    """The head up to its last headers."""
    return _begin_at(int(time.time()), status, tuple(headers.items()))


@lru_cache(maxsize=16)
def _begin_at(second: int, status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    date = formatdate(second, usegmt=True)
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\nDate: {date}\r\n"]
    lines += [f"{name}: {text.translate(_NO_BREAKS)}\r\n" for name, text in headers]
    return "".join(lines).encode()
