"""Connections: unauthenticated ones are cheap, slow ones are closed, and tokens are checked before bodies are read."""

import asyncio
import logging
import math
import socket
import tracemalloc
from functools import partial

import pytest

from bayplan.apiserver.server import ApiServer
from bayplan.apiserver.web import http_server
from bayplan.apiserver.web.http_requests import MAX_BODY, MalformedRequestError, WholeRequest
from bayplan.apiserver.web.http_server import (
    BATCH,
    HEAD_S,
    REQUEST_S,
    Crowd,
    HttpResponse,
    ServedConnection,
)
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import pod_tree

from .rig import SECRET
from .wire import WAIT_S, connected, connections, exchange, read_all, statuses, until

HOST = b"Host: localhost\r\n"
TOKEN = f"Authorization: Bearer {SECRET}\r\n".encode()
POST = b"POST " + PODS.encode() + b" HTTP/1.1\r\n" + HOST
BODY = POST + b"Content-Length: 9\r\n\r\n"
CHUNKS = POST + b"Transfer-Encoding: chunked\r\n\r\n"


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
        until(api, lambda server: [one for one in connections(server) if one._reader.pending])
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
        until(api, lambda server: not server._http._crowd._held_bytes)


@pytest.mark.parametrize(
    ("data", "limit_s", "status"),
    [
        pytest.param(b"", HEAD_S, [], id="nothing"),
        pytest.param(b"GET / HT", HEAD_S, [408], id="a part of a line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: local", HEAD_S, [408], id="a part of a head"),
        pytest.param(BODY + b"{", REQUEST_S, [408], id="a part of a body"),
        pytest.param(CHUNKS + b"1\r\n{\r\n", REQUEST_S, [408], id="a part of its chunks"),
    ],
)
def test_what_does_not_arrive_ends(
    monkeypatch: pytest.MonkeyPatch, data: bytes, limit_s: float, status: list[int]
) -> None:
    monkeypatch.setattr(http_server, "LINGER_S", 0)

    def having_read(server: ApiServer) -> list[ServedConnection]:
        return [
            one for one in connections(server) if not data or one._reader.is_within or one._unread
        ]

    def check_after(seconds: float) -> int:
        """Check the connection as if that time had passed since its beginning; return the number of open ones."""

        def check(server: ApiServer) -> int:
            for one in connections(server):
                assert one._since_s is not None
                one.check_time(one._since_s + seconds)
            return sum(
                not one._is_given_up and not one._transport.is_closing()
                for one in connections(server)
            )

        return api.within(check)

    with api_server() as api, connected(api) as connection:
        connection.sendall(data)
        until(api, having_read)

        assert check_after(limit_s - 1) == 1
        assert check_after(limit_s) == 0
        assert statuses(read_all(connection)) == status


def check_at_last(one: ServedConnection, server: ApiServer) -> None:
    """Check a connection at the end of all times."""
    one.check_time(math.inf)


def test_an_idle_client_and_a_watch_may_wait() -> None:
    with api_server() as api, api.watch(PODS) as stream:
        assert api.get("/version").status == 200
        idle = set(api.within(connections))
        for one in idle:
            api.within(partial(check_at_last, one))
        assert api.get("/version").status == 200
        assert set(api.within(connections)) == idle, "the same ones"
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
        until(api, lambda server: [one for one in connections(server) if one.is_paused])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 50 << 20


class Answering:
    """Answers each request at once, and notes from which connection it is."""

    def __init__(self) -> None:
        self.answered: list[ServedConnection] = []

    def handle(self, request: WholeRequest, connection: ServedConnection) -> None:
        self.answered.append(connection)
        connection.respond(HttpResponse(b"", 200, {}))

    def admit(self, request: WholeRequest) -> HttpResponse | None:
        return None

    def refuse(self, error: MalformedRequestError) -> HttpResponse:
        raise error


class Discarding(asyncio.Transport):
    """A transport whose client reads everything at once."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass


def test_one_connection_does_not_keep_the_others_waiting() -> None:
    get, count = b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n", 300

    async def serve() -> list[str]:
        handler, crowd = Answering(), Crowd()
        greedy, other = ServedConnection(handler, crowd), ServedConnection(handler, crowd)
        for connection in (greedy, other):
            connection.connection_made(Discarding())
        asyncio.get_running_loop().call_soon(other.data_received, get)
        greedy.data_received(get * count)
        while len(handler.answered) <= count:
            await asyncio.sleep(0)
        return ["greedy" if one is greedy else "other" for one in handler.answered]

    order = asyncio.run(serve())

    assert order.index("other") <= BATCH < count, "it has its turn after one batch"
    assert order.count("greedy") == count
