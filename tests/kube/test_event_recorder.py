"""Events: repetitions are counted, and events never block other work."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.errors import ApiError, NotFoundError
from bayplan.framework.handle import PodEvent
from bayplan.kube import event_recorder as module
from bayplan.kube.connection import Answer, UnreachableError
from bayplan.kube.event_recorder import EventRecorder

POD = Pod("web", "team", uid="u", resource_version="5")
OTHER = Pod("other", "team", uid="o", resource_version="6")


def said(pod: Pod = POD, reason: str = "FailedScheduling", note: str = "no room") -> PodEvent:
    return PodEvent(pod, "Warning", reason, "Scheduling", note, "default-scheduler")


class FakeSender:
    """Accepts everything, unless another response is configured."""

    can_post = True

    def __init__(self, *answers: ApiError | None) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[str, str, Any]] = []

    def _answer(self) -> ApiError | None:
        return self._answers.pop(0) if self._answers else None

    def post(self, path: str, body: bytes, done: Callable[[Any], None]) -> None:
        self.sent.append(("POST", path, msgspec.json.decode(body)))
        done(self._answer() or Answer(201, b""))

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        self.sent.append((method, path, msgspec.json.decode(body)))
        problem = self._answer()
        if problem is not None:
            raise problem
        return b""

    async def finish(self, timeout_s: float) -> None:
        pass


def record(sender: FakeSender, *events: PodEvent, then: Any = None) -> list[tuple[str, str, Any]]:
    async def go() -> None:
        recorder = EventRecorder(sender, ManualClock())  # type: ignore[arg-type]
        recorder.take(deque(events))
        await settle(recorder)
        if then is not None:
            then(recorder)
            await settle(recorder)

    async def settle(recorder: EventRecorder) -> None:
        async with asyncio.timeout(20):
            while recorder._under_way:
                await asyncio.sleep(0)

    asyncio.run(go())
    return sender.sent


def test_event_is_complete() -> None:
    ((method, path, event),) = record(FakeSender(), said())

    assert (method, path) == ("POST", "/apis/events.k8s.io/v1/namespaces/team/events")
    assert event["metadata"]["namespace"] == "team"
    assert event["metadata"]["name"].startswith("web.")
    assert event["regarding"] == {
        "kind": "Pod",
        "namespace": "team",
        "name": "web",
        "uid": "u",
        "apiVersion": "v1",
        "resourceVersion": "5",
    }
    assert (event["type"], event["reason"], event["action"]) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
    )
    assert event["note"] == "no room"
    assert event["reportingController"] == "default-scheduler"
    assert event["reportingInstance"].startswith("default-scheduler-")
    assert event["eventTime"] == "2000-01-01T00:00:00.000000Z"
    assert "series" not in event


def test_a_repeated_event_is_sent_once_as_a_series_and_then_only_counted() -> None:
    sent = record(FakeSender(), *[said(note=f"no room {i}") for i in range(5)])

    assert [method for method, _, _ in sent] == ["POST", "PATCH"]
    name = sent[0][2]["metadata"]["name"]
    assert sent[1][1].endswith(f"/events/{name}")
    assert sent[1][2]["series"]["count"] == 2


def test_other_pods_and_reasons_are_other_events() -> None:
    sent = record(FakeSender(), said(), said(OTHER), said(reason="Preempted"))

    assert [method for method, _, _ in sent] == ["POST"] * 3


def test_one_time_events_are_not_remembered() -> None:
    def check(recorder: EventRecorder) -> None:
        assert not recorder._known

    sent = record(FakeSender(), said(reason="Scheduled"), then=check)

    assert [method for method, _, _ in sent] == ["POST"]


def test_the_end_of_a_series_writes_its_count() -> None:
    sent = record(FakeSender(), *[said()] * 5, then=lambda r: r.finish_series(1.0))

    assert sent[-1][2]["series"]["count"] == 5


def test_an_ended_series_is_restarted() -> None:
    def again(recorder: EventRecorder) -> None:
        recorder.finish_series(1.0)
        recorder.take(deque([said()]))

    sent = record(FakeSender(), said(), then=again)

    assert [method for method, _, _ in sent] == ["POST", "POST"]


def test_series_of_an_event_that_is_gone_is_created() -> None:
    sent = record(FakeSender(None, NotFoundError("gone")), said(), said())

    assert [method for method, _, _ in sent] == ["POST", "PATCH", "POST"]
    assert sent[-1][2]["series"]["count"] == 2


@pytest.mark.parametrize(
    ("problem", "tries"),
    [
        pytest.param(UnreachableError("away"), 2, id="an unreachable server is retried"),
        pytest.param(ApiError("forbidden", 403), 1, id="a refusal is not"),
        pytest.param(ApiError("exists", 409), 1, id="nor is one that exists"),
    ],
)
def test_event_is_retried(problem: ApiError, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0)

    assert len(record(FakeSender(problem), said())) == tries


def test_events_that_cannot_keep_up_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 2)

    class Stuck(FakeSender):
        def post(self, path: str, body: bytes, done: Callable[[Any], None]) -> None:
            self.sent.append(("POST", path, None))

    pods = [Pod(f"p{i}", uid=f"u{i}") for i in range(5)]

    assert len(record(Stuck(), *[said(pod) for pod in pods])) == 2


def test_nothing_is_sent_again_after_the_end() -> None:
    """Closing the connections fails the posts under way."""

    class Silent(FakeSender):
        def post(self, path: str, body: bytes, done: Callable[[Any], None]) -> None:
            self.done = done

    async def go() -> int:
        sender = Silent()
        recorder = EventRecorder(sender, ManualClock())  # type: ignore[arg-type]
        recorder.take(deque([said()]))
        await recorder.finish(0)
        sender.done(UnreachableError("closed"))
        return len(recorder._under_way)

    assert asyncio.run(go()) == 0
