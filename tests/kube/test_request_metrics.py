"""Metrics of requests: names and buckets of client-go, and counts that occur once."""

import asyncio
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import ApiError
from bayplan.kube.connection import (
    REQUEST_TIMEOUT_S,
    Answer,
    Connection,
    UnreachableError,
)
from bayplan.kube.request_metrics import NO_RESPONSE, RequestMetrics
from bayplan.kube.sender import ClosedError, Sender, TokenBucket
from bayplan.observe.families import HistogramFamily, ReadGauge

UPSTREAM = Path(__file__).with_name("rest_client_metrics.txt")
HOST = "api:6443"
SERVER = f"https://{HOST}"


def upstream() -> list[list[str]]:
    return [line.split() for line in UPSTREAM.read_text().splitlines() if line[0] != "#"]


def test_names_types_labels_and_buckets_are_those_of_client_go() -> None:
    found = []
    for family in RequestMetrics().families:
        line = [family.name, "counter", ",".join(family.label_names) or "-"]
        if isinstance(family, ReadGauge):
            line[1] = "gauge"
        if isinstance(family, HistogramFamily):
            line[1] = "histogram"
            line.append(",".join(f"{bound:.8g}" for bound in family.bounds))
        found.append(line)

    assert sorted(found) == upstream()


def test_connections_share_metrics_and_differ_by_host() -> None:
    metrics = RequestMetrics()
    for requests in (metrics.of(SERVER), metrics.of(SERVER)):
        requests.answered("POST", 201)
        requests.ended("POST", 0.01, 70)
    other = metrics.of("http://127.0.0.1:8080/prefix")
    other.answered("GET", NO_RESPONSE)
    other.ended("GET", 0.2, None)

    assert metrics.requests.read() == {
        ("201", "POST", HOST): 2,
        ("<error>", "GET", "127.0.0.1:8080"): 1,
    }
    assert metrics.duration.counts() == {("POST", HOST): 2, ("GET", "127.0.0.1:8080"): 1}
    assert metrics.received.counts() == {("POST", HOST): 2}


# Connection


class Trusted:
    """Credentials of a server that needs none."""

    proxy = ssl_context = server_name = authorization = None
    is_stale = False
    source = "a test"
    certificate_ttl_s = 9.5

    def __init__(self, server: str) -> None:
        self.server = server
        self.plugin_calls = {("0", "no_error"): 2}

    async def refresh(self, was_refused: bool = False) -> None:
        pass


class ScriptedConnection(Connection):
    """Responds with prepared data."""

    def __init__(self, *answers: Answer | ApiError) -> None:
        super().__init__(Trusted(SERVER))  # type: ignore[arg-type]
        self._answers = list(answers)

    async def _send(self, *request: Any) -> Answer:
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def codes(metrics: RequestMetrics) -> dict[str, float]:
    return {code: count for (code, _, _), count in metrics.requests.read().items()}


@pytest.mark.parametrize(
    ("answers", "counted"),
    [
        pytest.param([Answer(200, b"{}")], {"200": 1}, id="success"),
        pytest.param([Answer(404, b"")], {"404": 1}, id="a refusal"),
        pytest.param([UnreachableError("away")], {"<error>": 1}, id="no response"),
        pytest.param(
            [Answer(503, b"", 0.0), Answer(200, b"{}")],
            {"503": 1, "200": 1},
            id="a repetition that the server asked for",
        ),
        pytest.param(
            [Answer(401, b""), Answer(200, b"{}")],
            {"401": 1, "200": 1},
            id="a refused token and the request with a new one",
        ),
    ],
)
def test_a_request_is_counted(answers: list[Any], counted: dict[str, int]) -> None:
    async def go() -> RequestMetrics:
        connection = ScriptedConnection(*answers)
        with suppress(ApiError):
            await connection.request("GET", "/api")
        await connection.close()
        return connection.metrics

    metrics = asyncio.run(go())

    has_retry = "503" in counted
    assert codes(metrics) == counted
    assert metrics.retries.read() == ({("200", "GET", HOST): 1} if has_retry else {})
    assert metrics.duration.counts() == {("GET", HOST): sum(counted.values()) - has_retry}
    assert metrics.sent.counts() == {("GET", HOST): sum(counted.values())}
    responses = metrics.duration.counts()["GET", HOST] - counted.get("<error>", 0)
    assert metrics.received.counts() == ({("GET", HOST): responses} if responses else {})


@pytest.mark.parametrize(
    ("head", "counted"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200", id="it opens"),
        pytest.param(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", "410", id="a refusal"),
        pytest.param(b"", "<error>", id="no response"),
    ],
)
def test_a_watch_is_counted_when_it_opens_and_has_no_duration(head: bytes, counted: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        writer.close()

    async def go() -> RequestMetrics:
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        connection = Connection(Trusted(f"http://127.0.0.1:{port}"))  # type: ignore[arg-type]
        with suppress(ApiError):
            async with connection.stream("/api/v1/pods", {"watch": 1}, REQUEST_TIMEOUT_S):
                pass
        await connection.close()
        listening.close()
        return connection.metrics

    metrics = asyncio.run(go())

    assert codes(metrics) == {counted: 1}
    assert metrics.duration.counts() == {}


def test_calls_of_a_credential_plugin_are_those_of_the_credentials() -> None:
    async def go() -> RequestMetrics:
        connection = ScriptedConnection()
        await connection.close()
        return connection.metrics

    metrics = asyncio.run(go())

    assert metrics.plugin_calls.read() == {("0", "no_error"): 2}
    assert metrics.certificate_ttl.read() == {(): 9.5}
    assert RequestMetrics().certificate_ttl.read() == {(): math.inf}


# Sender


def post(bucket: TokenBucket, *answers: Answer | ApiError) -> RequestMetrics:
    """Post as often as there are responses, over the fast path."""

    class Pool:
        def post(self, post: Any) -> None:
            post.done(left.pop(0))

    left = list(answers)

    async def go() -> RequestMetrics:
        connection = ScriptedConnection()
        sender = Sender(connection, bucket, lambda result: None)
        sender._pool = Pool()  # type: ignore[assignment]
        for _ in answers:
            sender.post("/binding", b"", lambda answer: None)
        await connection.close()
        return connection.metrics

    return asyncio.run(go())


def unlimited() -> TokenBucket:
    return TokenBucket(-1, 1)


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        pytest.param(Answer(201, b""), {"201": 1}, id="success"),
        pytest.param(Answer(409, b""), {"409": 1}, id="a refusal"),
        pytest.param(UnreachableError("away"), {"<error>": 1}, id="no response"),
        pytest.param(ClosedError("not the leader"), {}, id="what is not sent does not count"),
        pytest.param(Answer(429, b"", 9.0), {"429": 1}, id="an attempt that will be repeated"),
    ],
)
def test_a_post_is_counted(answer: Answer | ApiError, counted: dict[str, int]) -> None:
    metrics = post(unlimited(), answer)

    assert codes(metrics) == counted
    has_ended = "429" not in counted
    assert sum(metrics.duration.counts().values()) == sum(counted.values()) * has_ended
    assert sum(metrics.sent.counts().values()) == sum(counted.values())


def test_the_rate_limit_is_measured() -> None:
    bucket = TokenBucket(0.1, 2, now=lambda: 0.0)
    metrics = post(bucket, *[Answer(201, b"")] * 3)

    waits = metrics.limited.read()["POST", HOST]
    assert (waits.counts[0], waits.count, waits.sum) == (2, 3, 10.0)


def test_without_a_rate_limit_nothing_is_measured() -> None:
    assert post(unlimited(), Answer(201, b"")).limited.read() == {}
