"""Posting: responses are parsed in any chunks, and every post gets exactly one result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.errors import ApiError
from bayplan.kube import post_pipeline
from bayplan.kube.connection import Answer, UnreachableError
from bayplan.kube.post_pipeline import AnswerReader, Post, PostPool
from bayplan.kube.sender import ClosedError

DEADLINE_S = 20.0
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
CLOSING = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"

STREAM = b"".join(
    (
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nbody",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n",
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    )
)
ANSWERS = [
    Answer(201, b"body"),
    Answer(409, b"abcdefg"),
    Answer(429, b"", 7.0),
    Answer(204, b""),
]


@given(st.lists(st.integers(min_value=1, max_value=40), max_size=20))
def test_responses_are_parsed_in_any_chunks(sizes: list[int]) -> None:
    reader, rest, answers = AnswerReader(), STREAM, []
    for size in sizes:
        answers += reader.feed(rest[:size])
        rest = rest[size:]
    answers += reader.feed(rest)

    assert answers == ANSWERS


def test_invalid_http_is_rejected() -> None:
    with pytest.raises(ValueError, match="HTTP"):
        AnswerReader().feed(b"SSH-2.0-OpenSSH\r\n\r\n")


class FakeServer:
    """Reads requests and responds by `reply`, given the number of earlier requests; None closes the connection."""

    def __init__(self, reply: Callable[[int], bytes | None]) -> None:
        self._reply = reply
        self.bodies: list[bytes] = []
        self.connections = 0
        self.server = ""
        self.ssl_context = None
        self.server_name = None
        self.authorization = "Bearer token"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                assert b"Authorization: Bearer token" in head
                length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                self.bodies.append(await reader.readexactly(length))
                answer = self._reply(len(self.bodies))
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def run(
    server: FakeServer,
    work: Callable[[PostPool], Awaitable[Any]],
    **options: Any,
) -> Any:
    async def go() -> Any:
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        server.server = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        pool = PostPool(server, **options)  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await work(pool)
        finally:
            pool.close()
            listening.close()

    return asyncio.run(go())


async def post(pool: PostPool, *bodies: bytes) -> list[Answer | ApiError]:
    """Post all bodies together; return the result of each."""
    futures = [asyncio.get_running_loop().create_future() for _ in bodies]
    for body, future in zip(bodies, futures, strict=True):
        pool.post(Post("/path", body, future.set_result))
    return list(await asyncio.gather(*futures))


def test_everything_is_posted_once_and_answered() -> None:
    server = FakeServer(lambda count: CREATED)
    bodies = [str(i).encode() for i in range(500)]

    answers = run(server, lambda pool: post(pool, *bodies), channels=4)

    assert answers == [Answer(201, b"{}")] * 500
    assert sorted(server.bodies) == sorted(bodies)
    assert server.connections <= 4


def test_few_requests_have_a_connection_each_and_the_first_waits_for_no_other() -> None:
    open_then: list[int] = []

    def reply(count: int) -> bytes:
        open_then.append(server.connections)
        return CREATED

    async def work(pool: PostPool) -> None:
        await post(pool, b"a", b"b", b"c")
        await post(pool, b"d", b"e", b"f")

    server = FakeServer(reply)
    run(server, work)

    assert (open_then[0], server.connections) == (1, 3)


def test_a_channel_that_was_opened_ahead_takes_the_first_request() -> None:
    open_then: list[int] = []

    async def work(pool: PostPool) -> list[Answer | ApiError]:
        pool.open_first()
        pool.open_first()
        while not server.connections:
            await asyncio.sleep(0)
        open_then.append(server.connections)
        return await post(pool, b"a")

    server = FakeServer(lambda count: CREATED)
    answers = run(server, work)

    assert (open_then, server.connections, answers) == ([1], 1, [Answer(201, b"{}")])


def test_server_that_closes_after_an_answer_gets_the_rest_again() -> None:
    server = FakeServer(lambda count: CLOSING if count % 3 == 0 else CREATED)

    answers = run(server, lambda pool: post(pool, *[b"x"] * 20), channels=1)

    created = [answer for answer in answers if isinstance(answer, Answer)]
    assert len(created) + sum(isinstance(a, UnreachableError) for a in answers) == 20
    assert len(created) >= 10


def test_kept_connection_that_the_server_closed_is_no_failure() -> None:
    server = FakeServer(lambda count: None if count == 2 else CREATED)

    async def work(pool: PostPool) -> Any:
        first = await post(pool, b"first")
        return first + await post(pool, b"second")

    assert run(server, work, channels=1) == [Answer(201, b"{}")] * 2
    assert server.bodies == [b"first", b"second", b"second"]


def test_the_refusal_of_a_repeated_request_does_not_tell_whether_the_first_arrived() -> None:
    replies = [CREATED, None, TOO_MANY]
    server = FakeServer(lambda count: replies[count - 1])

    async def work(pool: PostPool) -> Any:
        await post(pool, b"first")
        return await post(pool, b"second")

    (answer,) = run(server, work, channels=1)

    assert isinstance(answer, UnreachableError)
    assert server.bodies == [b"first", b"second", b"second"]


def test_new_connection_that_breaks_is_a_failure() -> None:
    server = FakeServer(lambda count: None)

    (answer,) = run(server, lambda pool: post(pool, b"x"))

    assert isinstance(answer, UnreachableError)
    assert server.bodies == [b"x"]


def test_an_unreachable_server_is_a_failure_at_once() -> None:
    server = FakeServer(lambda count: CREATED)

    async def work(pool: PostPool) -> Any:
        pool._port = 9
        return await post(pool, b"x", b"y")

    answers = run(server, work)

    assert all(isinstance(answer, UnreachableError) for answer in answers)


def test_a_server_without_a_response_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_pipeline, "REQUEST_TIMEOUT_S", 0.02)
    monkeypatch.setattr(post_pipeline, "LOOK_S", 0.01)
    server = FakeServer(lambda count: b"")

    (answer,) = run(server, lambda pool: post(pool, b"x"))

    assert "no answer in time" in str(answer)


def test_dropped_posts_are_not_sent() -> None:
    server = FakeServer(lambda count: CREATED)
    leads = True

    async def work(pool: PostPool) -> Any:
        nonlocal leads
        first = await post(pool, b"first")
        leads = False
        return first + await post(pool, b"second", b"third")

    answers = run(server, work, may_send=lambda: leads, refused=ClosedError)

    assert isinstance(answers[0], Answer)
    assert all(isinstance(answer, ClosedError) for answer in answers[1:])
    assert server.bodies == [b"first"]
