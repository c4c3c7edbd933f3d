"""Network: an event loop on virtual time whose connections lead to servers in memory.

The seam is asyncio's own: a client that opens connections with `loop.create_connection` and talks to a transport runs
unchanged.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol, TypeVarTuple, Unpack

from bayplan.clock import ManualClock

from ..virtual_time import VirtualLoop

CONNECT_S = (0.0002, 0.002)
CROSSING_S = 0.003
"""The longest time from one thread to another."""
MICRO_S = 0.000001

Arguments = TypeVarTuple("Arguments")


class Peer(Protocol):
    """The server's end of a connection."""

    def received(self, data: bytes) -> None:
        """Bytes of the client have arrived."""

    def closed(self) -> None:
        """The client has closed the connection."""


Accept = Callable[["MemoryTransport"], Peer]
"""Accepts a connection; raises OSError when the server does not."""


class MemoryTransport(asyncio.Transport):
    """The client's end of a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._is_closed = False
        self._is_reading = True
        self._unread: list[bytes] = []
        self.peer: Peer | None = None

    # For the client

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closed and self.peer is not None:
            self.peer.received(bytes(data))

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self._is_closed:
            self._end(None)
            if self.peer is not None:
                self.peer.closed()

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        while self._unread and self._is_reading and not self._is_closed:
            self._protocol.data_received(self._unread.pop(0))

    # For the server

    def deliver(self, data: bytes) -> None:
        """Hand bytes to the client, if it has not closed the connection."""
        if self._is_closed:
            return
        if self._is_reading:
            self._protocol.data_received(data)
        else:
            self._unread.append(data)

    def cut(self, error: Exception | None = None) -> None:
        """Close the connection from the server's side."""
        if not self._is_closed:
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        self._is_closed = True
        self._loop.call_soon(self._protocol.connection_lost, error)


class NetworkLoop(VirtualLoop):
    """An event loop with its own network. Calls from "another thread" take a random time, in order."""

    def __init__(self, clock: ManualClock, dice: random.Random) -> None:
        super().__init__(clock)
        self._dice = dice
        self._servers: dict[tuple[str, int], Accept] = {}
        self._crossed_at = 0.0

    def serve(self, host: str, port: int, accept: Accept) -> None:
        """Let connections to an address lead to `accept`."""
        self._servers[host, port] = accept

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> tuple[MemoryTransport, Any]:
        """Connect to a server in memory; TLS is not simulated."""
        assert options.get("ssl") is None, "TLS is not simulated"
        await asyncio.sleep(self._dice.uniform(*CONNECT_S))
        accept = self._servers.get((host, port))
        if accept is None:
            raise ConnectionRefusedError(111, "Connection refused")
        protocol = protocol_factory()
        transport = MemoryTransport(self, protocol)
        transport.peer = accept(transport)
        protocol.connection_made(transport)
        return transport, protocol

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call after the time that a switch of threads may take."""
        when = self.time() + self._dice.random() * CROSSING_S
        self._crossed_at = max(when, self._crossed_at + MICRO_S)
        return self.call_at(self._crossed_at, callback, *args, context=context)
