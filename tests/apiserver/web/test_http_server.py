"""Connections: requests in sequence, responses to malformed ones, and clients that disconnect."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bayplan.apiserver.web.http_requests import MAX_BODY
from tests.rig.api_server import PODS, TIMEOUT_S, ServerInThread
from tests.rig.trees import pod_tree

GET = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def connected(api: ServerInThread) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", api.server.port), TIMEOUT_S) as connection:
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    return data


def test_requests_that_are_sent_together_are_answered_in_order(api: ServerInThread) -> None:
    last = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    with connected(api) as connection:
        connection.sendall(GET * 50 + last)
        data = read_all(connection)

    assert data.count(b"HTTP/1.1 200 OK\r\n") == 50
    assert data.rpartition(b"HTTP/1.1 ")[2].startswith(b"404 Not Found\r\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"nonsense\r\n\r\n", b"400 Bad Request", id="no request"),
        pytest.param(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
            % (PODS.encode(), MAX_BODY + 1)
            + b"x" * MAX_BODY,
            b"413 Request Entity Too Large",
            id="a body that is too large, which is sent nevertheless",
        ),
    ],
)
def test_malformed_requests_get_a_status_and_end_the_connection(
    api: ServerInThread, data: bytes, status: bytes
) -> None:
    with connected(api) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection)

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close\r\n" in answer
    assert b'"kind":"Status"' in answer


def test_a_client_that_waits_for_100_is_told_to_go_on(api: ServerInThread) -> None:
    with connected(api) as connection:
        connection.sendall(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            b"Connection: close\r\nContent-Length: 2\r\n\r\n" % PODS.encode()
        )
        first = connection.recv(1 << 16)
        connection.sendall(b"{}")
        rest = read_all(connection)

    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert rest.startswith(b"HTTP/1.1 422 ")


def test_head_has_the_length_and_no_body(api: ServerInThread) -> None:
    with connected(api) as connection:
        connection.sendall(
            b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        data = read_all(connection)

    assert b"Content-Length: 2\r\n" in data
    assert data.endswith(b"\r\n\r\n")


def test_a_watch_of_a_client_without_chunks_is_plain_lines(api: ServerInThread) -> None:
    api.make(PODS, pod_tree("a"))

    with connected(api) as connection:
        path = f"{PODS}?watch=true&timeoutSeconds=1".encode()
        connection.sendall(b"GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" % path)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")

    assert b"Transfer-Encoding" not in head
    assert body.startswith(b'{"type":"ADDED"')
    assert body.count(b"\n") == 1


def test_a_watch_ends_when_its_client_is_gone(api: ServerInThread) -> None:
    with connected(api) as connection:
        connection.sendall(b"GET %s?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n" % PODS.encode())
        assert connection.recv(1 << 16)
        assert open_watches(api) == 1

    deadline = time.monotonic() + TIMEOUT_S
    while open_watches(api):
        assert time.monotonic() < deadline


def test_a_client_that_does_not_read_gets_everything_later(api: ServerInThread) -> None:
    notes = {"note": "x" * 200_000}
    with connected(api) as connection:
        connection.sendall(b"GET %s?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n" % PODS.encode())
        assert connection.recv(1 << 16)
        for number in range(60):
            tree = pod_tree(f"p-{number}")
            tree["metadata"]["annotations"] = notes
            api.make(PODS, tree)
        data = b""
        while b'"name":"p-59"' not in data:
            data += connection.recv(1 << 20)

    assert data.count(b'"type":"ADDED"') == 60


def open_watches(api: ServerInThread) -> int:
    return api.within(lambda server: len(server.store._shelf("pods").watchers))
