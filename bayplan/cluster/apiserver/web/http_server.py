"""HTTP server: connections on an event loop, each with one request under way at a time.

A handler is a plain function: it gets a request with its whole body, and answers through the connection, at once or
later. An answer is a response, or a stream of pieces without an end.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from .http_requests import (
    MAX_BODY,
    MAX_HEAD,
    MalformedRequestError,
    RequestReader,
    WholeRequest,
)

REASONS = {status.value: status.phrase for status in HTTPStatus}
LINGER_S = 5.0
"""How long what a client still sends is read after its connection was given up, so that it gets the answer."""
CLOSING_S = 1.0
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
        """The client is gone."""


Handler = Callable[[WholeRequest, "ServedConnection"], None]
Refusal = Callable[[MalformedRequestError], HttpResponse]


class ServedConnection(asyncio.Protocol):
    """One client. `handle` answers requests, `refuse` makes the response to malformed requests."""

    def __init__(self, handle: Handler, refuse: Refusal, open_: set[ServedConnection]) -> None:
        self._handle = handle
        self._refuse = refuse
        self._open = open_
        self._reader = RequestReader()
        self._unread = b""
        """What arrived while a request is under way."""
        self._problem: MalformedRequestError | None = None
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
        self._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._open.discard(self)
        self._is_given_up = True
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.on_lost()

    def data_received(self, data: bytes) -> None:
        if self._is_given_up:
            return
        self._unread += data
        if self._request is None:
            self._proceed()
        elif len(self._unread) > MAX_HEAD + MAX_BODY:
            self._transport.abort()  # it sends without waiting for answers

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if self._stream is not None:
            self._stream.on_ready()

    def _proceed(self) -> None:
        """Handle the requests that have arrived, up to one that is not answered at once."""
        self._is_proceeding = True
        while self._request is None and not self._is_given_up:
            if self._reader.complete:
                self._request = self._reader.complete.popleft()
                self._handle(self._request, self)
            elif self._problem is not None:
                self._give_up(self._problem)
            elif self._unread:
                self._read()
            else:
                break
        self._is_proceeding = False
        if self._reader.wants_continue and not self._is_given_up:
            self._reader.wants_continue = False
            self._transport.write(CONTINUE)

    def _read(self) -> None:
        data, self._unread = self._unread, b""
        try:
            self._reader.feed(data)
        except MalformedRequestError as error:
            self._problem = error  # the requests before it are answered first

    def _give_up(self, error: MalformedRequestError) -> None:
        self._is_given_up = True
        response = self._refuse(error)
        self._transport.write(_head(response, is_last=True) + response.body)
        asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)

    # The handler's side

    def respond(self, response: HttpResponse) -> None:
        """Answer the request under way."""
        request, self._request = self._request, None
        assert request is not None, "a request is answered once"
        if self._is_given_up:
            return
        body = b"" if request.method == "HEAD" else response.body
        self._transport.write(_head(response, request.is_last) + body)
        self._after(request)

    def stream(self, headers: Mapping[str, str], source: StreamSource) -> None:
        """Answer the request under way with a stream."""
        assert self._request is not None, "a stream answers a request"
        self._stream = source
        way = {"Transfer-Encoding": "chunked"} if self._request.is_1_1 else {}
        self._transport.write(_begin({**headers, **way}) + b"\r\n")

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
        elif not self._is_proceeding:  # else the loop in `_proceed` goes on
            self._proceed()

    def close(self) -> None:
        """Close the connection when what was written is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()


class HttpServer:
    """Listens, and keeps the connections."""

    def __init__(self, handle: Handler, refuse: Refusal) -> None:
        self._handle = handle
        self._refuse = refuse
        self._open: set[ServedConnection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int, context: ssl.SSLContext | None) -> int:
        """Listen; returns the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ServedConnection(self._handle, self._refuse, self._open),
            address,
            port,
            ssl=context,
            backlog=128,
            reuse_address=True,
        )
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._open):
            connection.close()
        deadline = time.monotonic() + CLOSING_S
        while self._open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in tuple(self._open):
            connection.abort()
        if self._open:
            await asyncio.sleep(0)  # the loop tells them


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
