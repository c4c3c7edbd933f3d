"""Server: HTTP over in-memory connections, with the time that requests take, and with faults.

A connection answers its requests one after the other, as Go's server does. The effect of a fault on a request, its time
and the pieces of its response depend on one seed, so that equal requests have equal answers.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from ..faults import Faults
from .api import Reply, SimulatedApi, WatchReply, refuse
from .network import MemoryTransport, NetworkLoop
from .store import ExpiredVersionError, LoggedChange, VersionedStore

LATENCY_S = (0.0005, 0.01)
"""Each way."""
BOOKMARK_S = (1.0, 8.0)
WATCH_LIFE_S = (5.0, 60.0)
"""Time after which the server ends a watch without a fault."""
IN_PIECES = 0.3
"""Share of responses that arrive in two pieces."""
HEAD_END = b"\r\n\r\n"
WATCH_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
RESET = ConnectionResetError(104, "Connection reset by peer")


class HttpRequest(NamedTuple):
    """A request."""

    method: str
    target: str
    body: bytes


class SimulatedServer:
    """Accepts connections for `api`. `trace` has a line for each request, with its time and its fault."""

    def __init__(
        self, loop: NetworkLoop, api: SimulatedApi, faults: Faults, dice: random.Random
    ) -> None:
        self.loop = loop
        self.api = api
        self.dice = dice
        self.faults = faults
        self.trace: list[str] = []
        self.requests = 0
        self.injected: Counter[str] = Counter()
        """Number of injections of each fault."""
        self.has_faults = True
        self.is_away = False
        self._connections: dict[ServerConnection, None] = {}
        self._watches: dict[str, dict[ServerWatch, None]] = {}
        self._delayed: dict[int, Callable[[], None]] = {}
        """Requests that a fault delays, by their number."""
        self._accepted = 0
        api.store.on_change.append(self._on_change)

    @property
    def store(self) -> VersionedStore:
        """The objects."""
        return self.api.store

    def accept(self, transport: MemoryTransport) -> ServerConnection:
        """Take a connection."""
        if self.is_away:
            raise ConnectionRefusedError(111, "Connection refused")
        self._accepted += 1
        connection = ServerConnection(self, transport, self._accepted)
        self._connections[connection] = None
        return connection

    def go_away(self, seconds: float) -> None:
        """Cut all connections, and accept none for some time; not after the faults."""
        if not self.has_faults:
            return
        self.is_away = True
        self.note("the server goes away")
        for connection in list(self._connections):
            connection.cut()
        self.later(seconds, self.come_back)

    def come_back(self) -> None:
        """Accept connections again."""
        self.is_away = False

    def end_faults(self) -> None:
        """Inject no more faults; cut stalled watches."""
        self.has_faults = False
        self.come_back()
        self.note("the faults end")
        for act in list(self._delayed.values()):
            self.later(self.latency_s(), act)
        for watches in self._watches.values():
            for watch in list(watches):
                if watch.is_stalled:
                    watch.connection.cut()

    def delay(self, seconds: float, action: Callable[[], None]) -> None:
        """Call something after a time, or when the faults end."""

        def act() -> None:
            if self._delayed.pop(number, None) is not None:
                action()

        number = self.requests
        self._delayed[number] = act
        self.later(seconds, act)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Call something after a time."""
        self.loop.call_later(seconds, action)

    def latency_s(self) -> float:
        """Seconds from one end to the other."""
        return self.dice.uniform(*LATENCY_S)

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.loop.time():.6f} {what}")

    def opened(self, watch: ServerWatch) -> None:
        """A watch begins."""
        self._watches.setdefault(watch.plural, {})[watch] = None

    def ended(self, connection: ServerConnection) -> None:
        """A connection has ended."""
        self._connections.pop(connection, None)
        if connection.watch is not None:
            self._watches[connection.watch.plural].pop(connection.watch, None)

    def _on_change(self, plural: str, change: LoggedChange) -> None:
        for watch in self._watches.get(plural, ()):
            watch.wake()


class ServerConnection:
    """The server's end of a connection."""

    def __init__(self, server: SimulatedServer, transport: MemoryTransport, number: int) -> None:
        self._server = server
        self._transport = transport
        self._number = number
        self._data = b""
        self._requests: deque[HttpRequest] = deque()
        self._is_busy = False
        self._rest = b""
        """The second piece of a response."""
        self.is_closed = False
        self._is_cut = False
        """By the server, which drops the request."""
        self.watch: ServerWatch | None = None

    def received(self, data: bytes) -> None:
        """Read requests."""
        self._data += data
        while (request := self._next()) is not None:
            self._requests.append(request)
        self._work()

    def closed(self) -> None:
        """The client has gone; requests that have arrived are still carried out."""
        self.is_closed = True
        self._server.ended(self)

    def cut(self) -> None:
        """Close the connection."""
        self.closed()
        self._is_cut = True
        self._requests.clear()
        self._rest = b""
        self._transport.cut(RESET)

    def deliver(self, data: bytes) -> None:
        """Give bytes to the client, sometimes in two pieces."""
        server = self._server
        if self._rest:
            self._rest += data
            return
        if server.dice.random() < IN_PIECES:
            middle = server.dice.randrange(1, len(data))
            data, self._rest = data[:middle], data[middle:]
            server.later(server.latency_s(), self._deliver_rest)
        self._transport.deliver(data)

    def end(self) -> None:
        """Close the connection after its output."""
        self._deliver_rest()
        self.cut()

    def _deliver_rest(self) -> None:
        rest, self._rest = self._rest, b""
        if rest:
            self._transport.deliver(rest)

    def _next(self) -> HttpRequest | None:
        end = self._data.find(HEAD_END)
        if end < 0:
            return None
        head = self._data[:end].decode("ascii")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        lengths = [line[15:] for line in lines if line.startswith("Content-Length:")]
        start = end + len(HEAD_END)
        stop = start + (int(lengths[0]) if lengths else 0)
        if len(self._data) < stop:
            return None
        body, self._data = self._data[start:stop], self._data[stop:]
        return HttpRequest(method, target, body)

    def _work(self) -> None:
        """Begin with the next request."""
        if self._is_busy or not self._requests:
            return
        self._is_busy = True
        server, request = self._server, self._requests.popleft()
        is_watch = "watch=true" in request.target
        fault, dice = "", server.dice
        server.requests += 1
        if server.has_faults:
            fault, dice = server.faults.of_request(server.requests, is_watch)
        if fault:
            server.injected[fault] += 1
        number = self._number
        server.note(f"#{number} {request.method} {request.target} {fault}".rstrip())
        answer: Callable[[], None] = lambda: self._answer(request, fault, dice)  # noqa: E731
        if fault == "delayed":
            server.delay(dice.uniform(0, server.faults.delay_s), answer)
        else:
            server.later(server.latency_s(), answer)

    def _answer(self, request: HttpRequest, fault: str, dice: random.Random) -> None:
        server = self._server
        if self._is_cut:
            return
        if fault == "cut":
            self.cut()
            return
        wait_s = 0
        if fault == "refused":
            code, wait_s = server.faults.refusal(dice)
            reply: Reply | WatchReply = refuse(code, "injected")
        else:
            reply = server.api.answer(*request)
        if fault == "lost":
            self.cut()
        elif isinstance(reply, WatchReply):
            self._begin_watch(reply, fault, dice)
        else:
            self._reply(reply, fault, wait_s)

    def _reply(self, reply: Reply, fault: str, retry_after_s: int) -> None:
        more = f"Retry-After: {retry_after_s}\r\n" if retry_after_s else ""
        head = f"HTTP/1.1 {reply.code} X\r\nContent-Length: {len(reply.body)}\r\n{more}\r\n"
        data = head.encode() + reply.body

        def send() -> None:
            if fault == "torn":
                self._transport.deliver(data[: len(data) // 2])
                self.cut()
                return
            self.deliver(data)
            self._is_busy = False
            self._work()

        self._server.later(self._server.latency_s(), send)

    def _begin_watch(self, reply: WatchReply, fault: str, dice: random.Random) -> None:
        if self.is_closed:
            return
        self.watch = ServerWatch(self._server, self, reply)
        self._server.opened(self.watch)
        self.watch.begin(fault, dice)


class ServerWatch:
    """A watch: sends the changes of a kind as they come, and bookmarks; a fault ends it early."""

    def __init__(
        self, server: SimulatedServer, connection: ServerConnection, reply: WatchReply
    ) -> None:
        self._server = server
        self.connection = connection
        self.plural = reply.plural
        self._version = reply.version
        self._leaves_out_finished = reply.leaves_out_finished
        self._initial = list(filter(None, reply.initial))
        self._is_due = False
        self.is_stalled = False

    def begin(self, fault: str, dice: random.Random) -> None:
        """Send the head; `fault` follows within a while."""
        server = self._server
        self.connection.deliver(WATCH_HEAD)
        self.wake()
        server.later(server.dice.uniform(*BOOKMARK_S), self._bookmark)
        faults = {
            "watch_cut": self._cut,
            "watch_stalled": self._stall,
            "watch_expired": self._expire,
        }
        if fault in faults:
            after_s = dice.uniform(0, server.faults.watch_s)
            server.later(after_s, lambda: faults[fault]() if server.has_faults else self._end())
        else:
            server.later(server.dice.uniform(*WATCH_LIFE_S), self._end)

    def wake(self) -> None:
        """There may be something to send."""
        if not self._is_due:
            self._is_due = True
            self._server.later(self._server.latency_s(), self._send)

    def _send(self) -> None:
        self._is_due = False
        if self.connection.is_closed or self.is_stalled:
            return
        if self._initial:
            self.connection.deliver(chunk(self._initial.pop(0)))
            self.wake()
            return
        try:
            changes = self._server.store.changes_after(self.plural, self._version)
        except ExpiredVersionError:
            self._expire()
            return
        lines = b"".join(change.line(self._leaves_out_finished) for change in changes)
        if changes:
            self._version = changes[-1].version
        if lines:
            self.connection.deliver(chunk(lines))

    def _bookmark(self) -> None:
        if self.connection.is_closed or self.is_stalled or self._initial:
            return
        self._send()
        self._version = self._server.store.version
        tree = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n'
        self.connection.deliver(chunk(tree % self._version))
        self._server.later(self._server.dice.uniform(*BOOKMARK_S), self._bookmark)

    def _cut(self) -> None:
        """Close the connection, sometimes in the middle of a line."""
        if not self.connection.is_closed:
            if self._server.dice.random() < 0.5:
                self.connection.deliver(b'40\r\n{"type":"MODIFIED","object":{"kind"')
            self.connection.cut()

    def _stall(self) -> None:
        self.is_stalled = True
        self._server.later(self._server.faults.stall_s, self._cut)

    def _expire(self) -> None:
        status = refuse(410, "too old resource version").body
        if not self.connection.is_closed:
            self.connection.deliver(chunk(b'{"type":"ERROR","object":%s}\n' % status))
            self._end()

    def _end(self) -> None:
        """End the response; the connection is closed, too."""
        if not self.connection.is_closed and not self.is_stalled:
            self.connection.deliver(b"0\r\n\r\n")
            self.connection.end()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)
