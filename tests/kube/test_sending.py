"""Sender, throttle, backoff: rate, retries and permission of writes."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from bayplan.api.pod import Pod
from bayplan.errors import ApiError, ConflictError
from bayplan.kube import sender as module
from bayplan.kube.connection import Answer, UnreachableError
from bayplan.kube.kube_cluster import confirm_binding
from bayplan.kube.post_pipeline import Post
from bayplan.kube.request_metrics import RequestMetrics
from bayplan.kube.retry_backoff import Backoff
from bayplan.kube.sender import ClosedError, Order, PostOrder, Sender, TokenBucket

UNLIMITED = TokenBucket(-1, 1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_bucket_allows_a_burst_and_then_the_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 3, clock)

    assert [bucket.take() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.now = 0.25
    assert bucket.take() == pytest.approx(0.05)


def test_bucket_holds_no_more_than_a_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 2, clock)
    clock.now = 100

    assert [bucket.take() for _ in range(3)] == pytest.approx([0, 0, 0.1])


def test_negative_qps_is_no_limit() -> None:
    assert {TokenBucket(-1, 1).take() for _ in range(100)} == {0.0}


def test_backoff_doubles_up_to_its_limit_and_is_reset_after_a_quiet_time() -> None:
    clock = Clock()
    backoff = Backoff(now=clock, jitter=lambda: 0.5)

    waits = [backoff.next_s() for _ in range(8)]

    assert waits == pytest.approx([0.6, 1.2, 2.4, 2.4, 2.4, 2.4, 2.4, 2.4])
    clock.now = 121
    assert backoff.next_s() == pytest.approx(0.6)


class Credentials:
    proxy = None
    server = "http://127.0.0.1:1"
    authorization = None


class FakeConnection:
    """Responds to requests with prepared data."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.credentials = Credentials()
        self.metrics = RequestMetrics()
        self.requests = self.metrics.of("https://api:6443")
        self._answers = list(answers)
        self.sent: list[tuple[str, str]] = []
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def request(self, method: str, path: str, body: Any, *, content_type: str) -> bytes:
        self.sent.append((method, path))
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


class FakePool:
    """Responds to posts with prepared data."""

    under_way = 0

    def __init__(self, *answers: Answer | ApiError) -> None:
        self._answers = list(answers)
        self.posted: list[str] = []

    def pump(self) -> None:
        pass

    def forget_waiting(self) -> None:
        pass

    def post(self, post: Post) -> None:
        self.posted.append(post.path)
        post.done(self._answers.pop(0))


def send(
    connection: FakeConnection, orders: list[Any], pool: FakePool | None = None, **options: Any
) -> list[Any]:
    """Send orders, each with a future; return the response or the error of each."""

    async def go() -> list[Any]:
        results: dict[int, Any] = {}
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in orders]
        sender = Sender(
            connection,  # type: ignore[arg-type]
            UNLIMITED,
            lambda result: results.update({id(result[0]): result[2] or result[1]}),
            **options,
        )
        if pool is not None:
            sender._pool = pool  # type: ignore[assignment]
        made = [make(future) for make, future in zip(orders, futures, strict=True)]
        sender.take(deque(made))
        async with asyncio.timeout(20):
            while len(results) < len(futures):
                await asyncio.sleep(0)
        return [results[id(future)] for future in futures]

    return asyncio.run(go())


def patch(future: Any) -> Order:
    return Order(lambda sender: sender.patch("/p", b"{}", "merge"), future, "patch")


def bind(future: Any) -> PostOrder:
    return PostOrder("/binding", b"{}", future)


@pytest.mark.parametrize(
    ("answers", "outcome", "tries"),
    [
        pytest.param([b"ok"], b"ok", 1, id="success"),
        pytest.param([ApiError("down", 503), b"ok"], b"ok", 2, id="503, then success"),
        pytest.param([UnreachableError("away"), b"ok"], b"ok", 2, id="away, then back"),
        pytest.param([ConflictError("changed")], ConflictError, 1, id="a conflict is an answer"),
        pytest.param([ApiError("down", 500)] * 4, ApiError, 4, id="four times at most"),
    ],
)
def test_patch_is_retried_on_server_errors(
    answers: list[Any], outcome: Any, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0)
    connection = FakeConnection(*answers)

    (answer,) = send(connection, [patch])

    assert answer == outcome or isinstance(answer, outcome)
    assert len(connection.sent) == tries


@pytest.mark.parametrize(
    ("answers", "code", "posted"),
    [
        pytest.param([Answer(201, b"{}")], None, 1, id="success"),
        pytest.param([Answer(429, b"", 0), Answer(201, b"")], None, 2, id="429, then success"),
        pytest.param([Answer(503, b"", 0), Answer(201, b"")], None, 2, id="503, then success"),
        pytest.param([Answer(500, b"")], 500, 1, id="500 without Retry-After"),
        pytest.param([Answer(409, b"{}")], 409, 1, id="a pod that has a node already"),
        pytest.param([UnreachableError("away")], 0, 1, id="a broken connection"),
        pytest.param([Answer(429, b"", 0)] * 11, 429, 11, id="ten times at most"),
    ],
)
def test_binding_is_retried_when_the_server_requests_it(
    answers: list[Any], code: int | None, posted: int
) -> None:
    pool = FakePool(*answers)

    (problem,) = send(FakeConnection(), [bind], pool)

    assert (problem.code if isinstance(problem, ApiError) else problem) == code
    assert len(pool.posted) == posted


@pytest.mark.parametrize(
    ("answers", "code", "posted"),
    [
        pytest.param([Answer(500, b""), Answer(201, b"")], None, 2, id="500, then success"),
        pytest.param([UnreachableError("away"), Answer(201, b"")], None, 2, id="away, then back"),
        pytest.param([Answer(503, b"")] * 4, 503, 4, id="four times at most"),
        pytest.param([Answer(409, b"{}")], 409, 1, id="a pod that has a node already"),
    ],
)
def test_from_1_37_on_a_binding_is_sent_again(
    answers: list[Any], code: int | None, posted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0)
    pool = FakePool(*answers)

    (problem,) = send(FakeConnection(), [bind], pool, retries_bindings=True)

    assert (problem.code if isinstance(problem, ApiError) else problem) == code
    assert len(pool.posted) == posted


def test_from_1_37_on_a_status_is_sent_again_after_a_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0)
    connection = FakeConnection(ConflictError("changed"), b"ok")

    assert send(connection, [patch], retries_bindings=True) == [b"ok"]
    assert len(connection.sent) == 2


def test_an_expired_token_is_renewed_on_the_slow_path() -> None:
    pool, connection = FakePool(Answer(401, b"")), FakeConnection(b"ok")

    (answer,) = send(connection, [bind], pool)

    assert answer == b"ok"
    assert connection.sent == [("POST", "/binding")]


def test_nothing_is_sent_without_the_lease() -> None:
    connection = FakeConnection()

    answers = send(connection, [patch, bind], may_send=lambda: False)

    assert [type(answer) for answer in answers] == [ClosedError, ClosedError]
    assert connection.sent == []


def with_a_post_that_waits(
    then: Callable[[Sender], None],
) -> tuple[FakePool, list[Any], bool]:
    """Post twice where one is allowed; return the posts, the responses, and whether work is left."""
    pool = FakePool(Answer(201, b""), Answer(201, b""))
    answers: list[Any] = []

    async def go() -> bool:
        sender = Sender(FakeConnection(), TokenBucket(0.001, 1), lambda result: None)  # type: ignore[arg-type]
        sender._pool = pool  # type: ignore[assignment]
        for path in ("/first", "/second"):
            sender.post(path, b"", answers.append)
        assert sender.is_busy
        then(sender)
        return sender.is_busy

    return pool, answers, asyncio.run(go())


def test_post_beyond_the_burst_waits() -> None:
    pool, answers, is_busy = with_a_post_that_waits(lambda sender: None)

    assert pool.posted == ["/first"]
    assert answers == [Answer(201, b"")]
    assert is_busy


def test_waiting_posts_fail_when_the_lease_is_lost() -> None:
    pool, answers, is_busy = with_a_post_that_waits(Sender.refuse_waiting)

    assert pool.posted == ["/first"]
    assert isinstance(answers[1], ClosedError)
    assert not is_busy


def test_waiting_posts_are_dropped_at_the_end() -> None:
    pool, answers, is_busy = with_a_post_that_waits(Sender.end)

    assert pool.posted == ["/first"]
    assert len(answers) == 1
    assert not is_busy


def test_delayed_post_is_sent_when_due() -> None:
    pool = FakePool(Answer(201, b""), Answer(201, b""))

    async def go() -> None:
        done = asyncio.Event()
        sender = Sender(FakeConnection(), TokenBucket(1000, 1), lambda result: None)  # type: ignore[arg-type]
        sender._pool = pool  # type: ignore[assignment]
        sender.post("/first", b"", lambda answer: None)
        sender.post("/second", b"", lambda answer: done.set())
        async with asyncio.timeout(20):
            await done.wait()

    asyncio.run(go())

    assert pool.posted == ["/first", "/second"]


def sure_bind(future: Any) -> PostOrder:
    return PostOrder(
        "/binding", b"{}", future, partial(confirm_binding, Pod("p", "n", uid="u"), "a")
    )


def stored(node: str, uid: str = "u") -> bytes:
    return msgspec.json.encode({"metadata": {"uid": uid}, "spec": {"nodeName": node}})


@pytest.mark.parametrize(
    ("posted", "answers", "code"),
    [
        pytest.param(UnreachableError("broke"), [stored("a")], None, id="it had arrived"),
        pytest.param(Answer(409, b""), [stored("a")], None, id="it had arrived the first time"),
        pytest.param(Answer(504, b""), [stored("a")], None, id="it took long"),
        pytest.param(UnreachableError("broke"), [stored("")], 0, id="it had not arrived"),
        pytest.param(Answer(409, b""), [stored("b")], 409, id="another scheduler was first"),
        pytest.param(Answer(409, b""), [stored("a", "other")], 409, id="another pod of that name"),
        pytest.param(Answer(409, b""), [ApiError("gone", 404)], 409, id="the pod is gone"),
        pytest.param(Answer(422, b""), [], 422, id="a refusal is clear"),
        pytest.param(
            UnreachableError("broke"),
            [UnreachableError("away"), ApiError("starting", 503), stored("a")],
            None,
            id="the server is away for a while",
        ),
        pytest.param(
            UnreachableError("broke"),
            [ApiError("too many requests", 429), stored("a")],
            None,
            id="the server has too many requests",
        ),
    ],
)
def test_the_outcome_of_a_binding_is_determined(
    posted: Any, answers: list[Any], code: int | None
) -> None:
    connection = FakeConnection(*answers)

    (problem,) = send(connection, [sure_bind], FakePool(posted))

    assert (problem.code if isinstance(problem, ApiError) else problem) == code
    assert connection.sent == [("GET", "/api/v1/namespaces/n/pods/p")] * len(answers)


def test_a_look_up_is_repeated_soon_and_when_the_server_is_back() -> None:
    away = [UnreachableError("away")] * 9
    connection = FakeConnection(*away, stored("a"))

    (problem,) = send(connection, [sure_bind], FakePool(UnreachableError("broke")))

    assert problem is None
    assert len(connection.pauses) == 9, "waits end when the connection works again"
    assert max(connection.pauses) < 2
