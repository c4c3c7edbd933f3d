"""Connections: strangers cost little, slow ones end, and a token comes before a body."""

import logging
import socket
import time
import tracemalloc

import pytest

from bayplan.apiserver.web import http_server
from bayplan.apiserver.web.http_requests import MAX_BODY
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import pod_tree

from .rig import SECRET
from .wire import WAIT_S, connected, exchange, read_all, statuses

HOST = b"Host: localhost\r\n"
TOKEN = f"Authorization: Bearer {SECRET}\r\n".encode()
POST = b"POST " + PODS.encode() + b" HTTP/1.1\r\n" + HOST


def test_upgrades_that_are_sent_together_are_read_in_a_loop(
    api: ServerInThread, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = b"GET /version HTTP/1.1\r\n" + HOST + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n"
    last = b"GET /version HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    with caplog.at_level(logging.ERROR):
        answers = exchange(api, upgrade * 3000 + last)

    assert statuses(answers) == [200] * 3001
    assert caplog.records == []


@pytest.mark.parametrize("rbac", [False, True], ids=["a token", "a token, and rbac"])
@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(POST, 401, id="no token"),
        pytest.param(POST + b"Authorization: Bearer x\r\n", 401, id="another token"),
        pytest.param(POST + TOKEN + b"Origin: http://evil.example\r\n", 403, id="another site"),
    ],
)
def test_a_body_is_not_read_before_its_sender_is_known(
    rbac: bool, head: bytes, status: int
) -> None:
    length = b"Content-Length: %d\r\n" % MAX_BODY
    with api_server(token=SECRET, rbac=rbac) as api, connected(api) as connection:
        connection.sendall(head + length + b"Expect: 100-continue\r\n\r\n")
        answer = connection.recv(1 << 16)

    assert statuses(answer) == [status]


def test_a_chunked_body_of_a_stranger_is_not_read() -> None:
    with api_server(token=SECRET, rbac=True) as api, connected(api) as connection:
        connection.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n" + b"x" * 100)

        assert statuses(connection.recv(1 << 16)) == [401]


def test_a_small_body_that_comes_later_is_read() -> None:
    with api_server(token=SECRET) as api, connected(api) as connection:
        connection.sendall(POST + TOKEN + b"Connection: close\r\nContent-Length: 2\r\n\r\n")
        time.sleep(0.05)
        connection.sendall(b"{}")

        assert statuses(read_all(connection)) == [422]


def hundred_bodies(api: ServerInThread, head: bytes) -> list[socket.socket]:
    """Connections with a body of which the last byte is missing."""
    made = []
    for _ in range(100):
        connection = socket.create_connection(("127.0.0.1", api.server.port), WAIT_S)
        connection.settimeout(0.5)
        made.append(connection)
        try:
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % MAX_BODY + b"x" * (1 << 20))
            connection.sendall(b"x" * ((2 << 20) - 1))
        except (TimeoutError, BrokenPipeError, ConnectionResetError):
            continue
    return made


@pytest.mark.parametrize("head", [POST, POST + TOKEN], ids=["a stranger", "the administrator"])
def test_unfinished_bodies_hold_little_memory(head: bytes) -> None:
    with api_server(token=SECRET) as api:
        tracemalloc.start()
        connections = hundred_bodies(api, head)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        alive = api.get("/version", Authorization=f"Bearer {SECRET}").status
        for connection in connections:
            connection.close()

    assert alive == 200
    assert peak < 150 << 20


def test_held_bytes_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_HELD", 1 << 20)
    body = b"x" * (MAX_BODY - 1)
    part = POST + TOKEN + b"Content-Length: %d\r\n\r\n" % MAX_BODY
    with api_server(token=SECRET) as api:
        with connected(api) as connection:
            connection.sendall(part + body[:1000])
            connection.sendall(body[1000:])
            assert statuses(read_all(connection)) == [429]
        deadline = time.monotonic() + WAIT_S
        while api.within(lambda server: server._http._crowd._held_bytes):
            assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"GET / HT", [408], id="a part of a line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: local", [408], id="a part of a head"),
        pytest.param(POST + b"Content-Length: 9\r\n\r\n{", [408], id="a part of a body"),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", [408], id="a part of its chunks"
        ),
    ],
)
def test_what_does_not_arrive_ends(
    monkeypatch: pytest.MonkeyPatch, data: bytes, status: list[int]
) -> None:
    monkeypatch.setattr(http_server, "HEAD_S", 0.2)
    monkeypatch.setattr(http_server, "REQUEST_S", 0.4)
    monkeypatch.setattr(http_server, "SWEEP_S", 0.05)
    monkeypatch.setattr(http_server, "LINGER_S", 0.05)
    with api_server() as api, connected(api) as connection:
        connection.sendall(data)

        assert statuses(read_all(connection)) == status


def test_an_idle_client_and_a_watch_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("HEAD_S", 0.1), ("REQUEST_S", 0.1), ("SWEEP_S", 0.02)):
        monkeypatch.setattr(http_server, name, seconds)
    with api_server() as api, api.watch(PODS) as stream:
        assert api.get("/version").status == 200
        time.sleep(0.5)
        assert api.get("/version").status == 200
        api.make(PODS, pod_tree("a"))
        assert stream.seen(1) == [("ADDED", "a")]


def test_strangers_give_way_to_new_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_STRANGERS", 5)
    with api_server() as api:
        assert api.get("/version").status == 200
        idle = [socket.create_connection(("127.0.0.1", api.server.port), WAIT_S) for _ in range(20)]
        with connected(api) as connection:
            connection.sendall(b"GET /version HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            assert statuses(read_all(connection)) == [200]
        assert api.get("/version").status == 200, "one that was answered stays"
        assert api.within(lambda server: len(server._http._crowd.open)) <= 7
        for one in idle:
            one.close()


def test_a_client_that_reads_no_answers_gets_no_more(api: ServerInThread) -> None:
    api.make(
        "/api/v1/namespaces/default/configmaps",
        {"metadata": {"name": "big"}, "data": {"x": "x" * 1_000_000}},
    )
    get = b"GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\n" + HOST + b"\r\n"
    tracemalloc.start()
    with connected(api) as connection:
        connection.sendall(get * 300)
        time.sleep(0.5)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 50 << 20


def test_one_connection_does_not_keep_the_others_waiting(api: ServerInThread) -> None:
    get = b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n"
    with connected(api) as greedy:
        greedy.sendall(get * 3000)
        began = time.monotonic()
        assert api.get("/version").status == 200
        assert time.monotonic() - began < 2
