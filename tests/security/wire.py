"""Wire: bytes to a server on the loopback, and the answers."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayplan.apiserver.server import ApiServer
from bayplan.apiserver.web.http_server import ServedConnection
from tests.rig.api_server import ServerInThread

WAIT_S = 10.0


@contextmanager
def connected(api: ServerInThread) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", api.server.port), WAIT_S) as connection:
        yield connection


def until(api: ServerInThread, holds: Callable[[ApiServer], object]) -> None:
    """Wait until something holds of the server; the time limit of a test ends the wait otherwise."""
    while not api.within(holds):
        pass


def connections(server: ApiServer) -> list[ServedConnection]:
    """The open connections."""
    return list(server._http._crowd.open)


def read_all(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    data = b""
    try:
        while piece := connection.recv(1 << 16):
            data += piece
    except ConnectionResetError:
        pass
    return data


def exchange(api: ServerInThread, data: bytes) -> bytes:
    """The answers to bytes after which nothing is sent."""
    with connected(api) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_all(connection)


def statuses(answers: bytes) -> list[int]:
    """The codes of the answers."""
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]
