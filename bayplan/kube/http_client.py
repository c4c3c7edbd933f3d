"""HTTP client: requests to one server over persistent connections; with TLS, and through a proxy.

A general client takes longer to import than a list of 5,000 nodes takes to read. The client needs little of HTTP: one
server, one request at a time per connection, whole bodies or a stream.
"""

from __future__ import annotations

import asyncio
import base64
import selectors
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from .http1 import Head, ResponseReader, make_request

CONNECT_TIMEOUT_S = 30.0
IDLE_S = 90.0
"""Seconds for which an idle connection stays open."""
MAX_UNREAD = 1 << 24
"""Number of unread bytes at which a connection stops receiving."""
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""TCP keep-alive: idle seconds, interval, and number of probes."""
REPEATABLE = ("GET", "PUT", "DELETE")
"""Methods that are repeated when a reused connection turns out to be closed."""
FIRST_WAIT_S, MAX_WAIT_S = 0.002, 0.04
"""Seconds that a busy loop waits for more events."""
ENOUGH = 12
"""Number of events at a time from which waiting longer gains little."""
QUIET_S = 0.02
"""A loop that was idle for this long is not busy."""
MUCH = 1 << 16
"""Bytes at a time after which more are expected at once."""


class LostError(ConnectionResetError):
    """The connection broke, or the bytes that arrived are not a response."""


class Address(NamedTuple):
    """A server, and how to reach it."""

    url: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """The name in its certificate, if it differs from the host."""
    proxy: str | None = None


class HttpConnection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._problem: Exception | None = None
        self._unread = 0
        self._is_streaming = False
        self.silence_s: float | None = None
        """Seconds without a byte after which a request fails."""
        self.is_used = False
        """A response has arrived on it before."""
        self.idle_since = 0.0

    @property
    def is_free(self) -> bool:
        """Whether another request may be sent: the last response has been read, and allows it."""
        reader = self._reader
        is_read = reader is not None and reader.is_complete
        return is_read and self._problem is None and not self._is_last

    @property
    def _is_last(self) -> bool:
        head = self._reader.head if self._reader is not None else None
        return head is not None and head.is_last

    async def ask(self, request: bytes) -> Head:
        """Send a request; returns when the head of the response has arrived."""
        assert self._transport is not None, "requests follow the connection"
        reader = self._reader = ResponseReader()
        self._is_streaming, self.silence_s = False, None
        self._transport.write(request)
        while reader.head is None:
            await self._wait()
        return reader.head

    async def read(self) -> bytes:
        """The rest of the body."""
        reader = self._reader
        assert reader is not None, "a body follows a request"
        while not reader.is_complete:
            await self._wait()
        return reader.take()

    async def iter_any(self) -> AsyncIterator[bytes]:
        """The body, in pieces as they arrive."""
        reader = self._reader
        assert reader is not None, "a body follows a request"
        self._unread, self._is_streaming = 0, True
        while True:
            if reader.pieces:
                piece = reader.take()
                self._unread = 0
                self._pause(False)
                yield piece
            elif reader.is_complete:
                return
            else:
                await self._wait()

    def close(self) -> None:
        """Close the connection."""
        self._fail(LostError("the connection was closed"))
        if self._transport is not None:
            self._transport.abort()

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """Continue with TLS, within the connection to a proxy."""
        assert self._transport is not None, "requests follow the connection"
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self._transport, self, context, server_hostname=name)
        assert secured is not None, "the transport is open"
        self._transport = secured

    # Callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        _keep_alive(transport)

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None or reader.is_complete:
            self.close()  # a response without a request
            return
        try:
            reader.feed(data)
        except ValueError as error:
            self._fail(LostError(str(error)))
            self.close()
            return
        if isinstance(loop := asyncio.get_running_loop(), PatientLoop):
            loop.has_read(len(data))
        self._unread += len(data)
        if self._is_streaming and self._unread > MAX_UNREAD:
            self._pause(True)
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        try:
            if self._reader is not None:
                self._reader.end()
        except ValueError as problem:
            error = error or LostError(str(problem))
        self._fail(error or LostError("the server closed the connection"))

    def _pause(self, is_paused: bool) -> None:
        assert self._transport is not None, "requests follow the connection"
        with suppress(RuntimeError):  # the transport is closing
            if is_paused:
                self._transport.pause_reading()
            elif not self._transport.is_reading():
                self._transport.resume_reading()

    async def _wait(self) -> None:
        """Wait until something has arrived; raises OSError if the connection is lost."""
        if self._problem is not None:
            raise self._problem
        self._arrived = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self.silence_s):
                await self._arrived
        finally:
            self._arrived = None

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _fail(self, error: Exception) -> None:
        if self._problem is None:
            self._problem = error
        self._wake()


class Response(NamedTuple):
    """The head of a response, and the connection that has its body."""

    head: Head
    body: HttpConnection


class HttpClient:
    """Sends requests; used on one event loop."""

    def __init__(self) -> None:
        self._idle: list[HttpConnection] = []
        self._open: set[HttpConnection] = set()
        self._ahead: dict[str, asyncio.Task[Response]] = {}
        """Requests whose responses no `send` has taken yet, by target."""

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        for sent in self._ahead.values():
            sent.cancel()
        await asyncio.gather(*self._ahead.values(), return_exceptions=True)
        self._ahead.clear()
        for connection in list(self._open):
            connection.close()
        self._open.clear()
        self._idle.clear()

    def send_ahead(self, address: Address, target: str, headers: dict[str, str]) -> None:
        """Send a GET now; the next `send` of it returns its response."""
        exchange = self._exchange(address, "GET", target, headers, None)
        self._ahead[target] = asyncio.ensure_future(exchange)

    @asynccontextmanager
    async def send(
        self,
        address: Address,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None = None,
    ) -> AsyncIterator[Response]:
        """Send a request; the connection is used again if the body was read to its end.

        Raises OSError when there is no response.
        """
        sent = self._ahead.pop(target, None) if method == "GET" else None
        head, connection = await (sent or self._exchange(address, method, target, headers, body))
        try:
            yield Response(head, connection)
        finally:
            if connection.is_free:
                connection.is_used, connection.idle_since = True, asyncio.get_running_loop().time()
                self._idle.append(connection)
            else:
                connection.close()
                self._open.discard(connection)

    async def _exchange(
        self,
        address: Address,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None,
    ) -> Response:
        url = urlsplit(address.url)
        is_forwarded = address.proxy is not None and url.scheme == "http"
        request = make_request(
            method,
            f"{address.url}{target}" if is_forwarded else f"{url.path}{target}",
            {"Host": url.netloc, **headers, **_proxy_headers(address, is_forwarded)},
            body,
        )
        while True:
            connection = self._take_idle() or await self._connect(address, url)
            try:
                return Response(await connection.ask(request), connection)
            except BaseException as error:  # closed in any case, also when cancelled
                connection.close()
                self._open.discard(connection)
                if not (isinstance(error, OSError) and connection.is_used and method in REPEATABLE):
                    raise

    def _take_idle(self) -> HttpConnection | None:
        oldest = asyncio.get_running_loop().time() - IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free and connection.idle_since > oldest:
                return connection
            connection.close()
            self._open.discard(connection)
        return None

    async def _connect(self, address: Address, url: SplitResult) -> HttpConnection:
        default_port = 443 if url.scheme == "https" else 80
        host, port = url.hostname or "", url.port or default_port
        name = address.server_name or host
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            if address.proxy is None:
                connection = await _open_connection(host, port, address.tls, name)
            else:
                target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                connection = await self._through_proxy(address, target, name)
        self._open.add(connection)
        return connection

    async def _through_proxy(self, address: Address, target: str, name: str) -> HttpConnection:
        proxy = urlsplit(address.proxy or "")
        tls = ssl.create_default_context() if proxy.scheme == "https" else None
        host, port = proxy.hostname or "", proxy.port or (443 if tls else 80)
        connection = await _open_connection(host, port, tls, host)
        if address.tls is None:
            return connection
        headers = {"Host": target, **_proxy_headers(address, True)}
        head = await connection.ask(make_request("CONNECT", target, headers))
        if head.code != 200:
            connection.close()
            raise LostError(f"the proxy {host}:{port} refused with status {head.code}")
        await connection.secure(address.tls, name)
        return connection


async def _open_connection(
    host: str, port: int, tls: ssl.SSLContext | None, name: str
) -> HttpConnection:
    _, connection = await asyncio.get_running_loop().create_connection(
        HttpConnection, host, port, ssl=tls, server_hostname=name if tls else None
    )
    return connection


def _proxy_headers(address: Address, is_sent_to_proxy: bool) -> dict[str, str]:
    """The user of a proxy, for requests that the proxy reads."""
    proxy = urlsplit(address.proxy or "")
    if not is_sent_to_proxy or not proxy.username:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(user.encode()).decode()}


def _keep_alive(transport: asyncio.Transport) -> None:
    """Detect within a minute that the peer of a silent connection does not respond."""
    connection: Any = transport.get_extra_info("socket")
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):  # each system has its own constants
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class PatientSelector(selectors.DefaultSelector):
    """A selector that waits a little longer shortly after the last call."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0
        self.wait_s = FIRST_WAIT_S
        """Seconds that the next call waits if the loop is busy."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready events."""
        ready = super().select(timeout)
        if not ready:
            return ready
        if time.monotonic() - self._last > QUIET_S:
            self.wait_s = FIRST_WAIT_S
        elif len(ready) < ENOUGH:
            time.sleep(self.wait_s)
            ready = super().select(0)
            factor = 2 if len(ready) < ENOUGH else 0.5
            self.wait_s = min(max(self.wait_s * factor, FIRST_WAIT_S), MAX_WAIT_S)
        self._last = time.monotonic()
        return ready


class PatientLoop(asyncio.SelectorEventLoop):
    """An event loop that batches events under load.

    Under load a response arrives every few milliseconds or faster, and waking up for each costs more than the
    response. A loop that stays busy waits longer and longer for more events, until some come at a time: the slower
    the server, the longer the wait. One that has been idle responds at once. Neither does it wait long while much is
    read: a connection gives a few hundred KiB at a time, so a long wait before each piece would limit the rate.
    """

    def __init__(self) -> None:
        self.patience = PatientSelector()
        super().__init__(self.patience)

    def has_read(self, size: int) -> None:
        """Note that a connection gave `size` bytes at a time: after many, the next wait is short."""
        if size >= MUCH:
            self.patience.wait_s = FIRST_WAIT_S
