"""Event recorder: events about pods, as events.k8s.io/v1; repeated events are counted, not sent again.

Mirrors k8s.io/client-go/tools/events/event_broadcaster.go. Works on the event loop of the
connection. Events have their own sender: when it cannot keep up, some are dropped.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections import deque
from typing import Any

import msgspec

from ..api.storage import ObjectReference
from ..clock import Clock, SystemClock, rfc3339
from ..errors import ApiError, ConflictError, NotFoundError
from ..framework.handle import PodEvent
from .connection import JSON, STRATEGIC_MERGE_PATCH, Answer, UnreachableError
from .sender import Sender

log = logging.getLogger(__name__)

MAX_WAITING = 10_000
MAX_TRIES = 12
RETRY_S = 10.0
FINISH_S = 6 * 60.0
REFRESH_S = 30 * 60.0
DROP_NOTE_S = 60.0
ONCE = "Scheduled"
"""Reasons that occur once per pod, and so are not remembered: there may be a thousand per second."""

Key = tuple[str, ...]
Event = dict[str, Any]
"""An event as sent, including empty fields."""


class Known:
    """A sent event, and its count since."""

    __slots__ = ("count", "event", "last_s", "last_time")

    def __init__(self, event: Event, now_s: float) -> None:
        self.event = event
        self.count = 1
        self.last_s = now_s
        self.last_time = ""

    def with_series(self) -> Event:
        """The event with its count."""
        series = {"count": self.count, "lastObservedTime": self.last_time}
        return {**self.event, "series": series}


class EventRecorder:
    """Sends events, with a separate sender."""

    def __init__(self, sender: Sender, clock: Clock | None = None) -> None:
        self._sender = sender
        self._clock = clock or SystemClock()
        self._host = socket.gethostname()
        self._known: dict[Key, Known] = {}
        self._second, self._second_text = -1, ""
        """The second of the last event, and its text: there may be a thousand events in one."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._posted = 0
        self._dropped = 0
        self._drop_noted = float("-inf")
        self._is_finished = False

    def take(self, events: deque[PodEvent]) -> None:
        """Send all events, or count them in existing series."""
        while events:
            pod_event = events.popleft()
            if self._posted + len(self._under_way) >= MAX_WAITING:
                self._drop()
                continue
            event = self._to_send(pod_event)
            if event is None:
                continue
            if "series" not in event and self._sender.can_post:
                self._post(event)
            else:
                self._begin(event)

    async def run(self) -> None:
        """Periodically write the counts; forget series without repetitions."""
        refreshed = self._clock.monotonic()
        while True:
            await asyncio.sleep(FINISH_S)
            now = self._clock.monotonic()
            is_refresh = now - refreshed >= REFRESH_S
            refreshed = now if is_refresh else refreshed
            self.finish_series(now - FINISH_S, is_refresh)

    async def finish(self, timeout_s: float) -> None:
        """Wait until all events are sent, up to a timeout; the rest is dropped."""
        await self._sender.finish(timeout_s)
        self._is_finished = True
        for task in self._under_way:
            task.cancel()

    def finish_series(self, before_s: float, is_refresh: bool = False) -> None:
        """End the series last updated before `before_s`."""
        for key, known in list(self._known.items()):
            is_over = known.last_s < before_s
            if known.count > 1 and (is_over or is_refresh):
                self._begin(known.with_series())
            if is_over:
                del self._known[key]

    def _to_send(self, pod_event: PodEvent) -> Event | None:
        """The event to send; None if it is only counted."""
        if pod_event.reason == ONCE:
            return self._make(pod_event)
        regarding = pod_event.regarding
        controller = pod_event.reporting_controller
        related = pod_event.related.uid if pod_event.related is not None else ""
        key = (
            pod_event.type,
            pod_event.action,
            pod_event.reason,
            controller,
            regarding.uid,
            regarding.resource_version,
            related,
        )
        now_s = self._clock.monotonic()
        known = self._known.get(key)
        if known is None:
            event = self._make(pod_event)
            self._known[key] = Known(event, now_s)
            return event
        known.count += 1
        known.last_s = now_s
        known.last_time = rfc3339(self._clock.now(), "microseconds")
        return known.with_series() if known.count == 2 else None

    def _make(self, pod_event: PodEvent) -> Event:
        pod, controller = pod_event.regarding, pod_event.reporting_controller
        now = self._clock.now()
        micros = round(now.timestamp() * 1_000_000)
        second = micros // 1_000_000
        if second != self._second:
            self._second, self._second_text = second, rfc3339(now).removesuffix("Z")
        event = {
            "metadata": {"name": f"{pod.name}.{micros * 1000:x}", "namespace": pod.namespace},
            "eventTime": f"{self._second_text}.{micros % 1_000_000:06}Z",
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._host}",
            "action": pod_event.action,
            "reason": pod_event.reason,
            "type": pod_event.type,
            "note": pod_event.note,
            "regarding": ObjectReference.to(pod),
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
        }
        if pod_event.related is not None:
            event["related"] = ObjectReference.to(pod_event.related)
        return event

    def _post(self, event: Event) -> None:
        """Send a new event by the fast path; failures use the slow one."""

        def done(answer: Answer | ApiError) -> None:
            self._posted -= 1
            if isinstance(answer, UnreachableError) or (
                isinstance(answer, ApiError) and answer.code == 401
            ):
                self._begin(event)
            elif isinstance(answer, ApiError):
                log.log(
                    logging.DEBUG if answer.code == 409 else logging.WARNING,
                    "event %s: %s",
                    event["metadata"]["name"],
                    answer,
                )

        self._posted += 1
        self._sender.post(_path(event), _encode(event), done)

    def _begin(self, event: Event) -> None:
        if self._is_finished:
            return
        task = asyncio.get_running_loop().create_task(self._send(event))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _send(self, event: Event) -> None:
        """Send, and retry when the server is unreachable; refused events are dropped."""
        for _ in range(MAX_TRIES):
            try:
                await self._record(event)
                return
            except UnreachableError as error:
                log.debug("event %s: %s", event["metadata"]["name"], error)
            except ConflictError as error:
                if "series" not in event:
                    log.debug("event %s: %s", event["metadata"]["name"], error)
                    return
            except ApiError as error:
                log.warning("event %s: %s", event["metadata"]["name"], error)
                return
            await asyncio.sleep(RETRY_S * (1 + random.random() / 4))

    async def _record(self, event: Event) -> None:
        path = _path(event)
        if "series" in event:
            body = msgspec.json.encode({"series": event["series"]})
            try:
                await self._sender.request(
                    "PATCH", f"{path}/{event['metadata']['name']}", body, STRATEGIC_MERGE_PATCH
                )
                return
            except NotFoundError:
                pass  # it has expired on the server: start a new one
        await self._sender.request("POST", path, _encode(event), JSON)

    def _drop(self) -> None:
        self._dropped += 1
        now = self._clock.monotonic()
        if now - self._drop_noted > DROP_NOTE_S:
            self._drop_noted = now
            log.warning("events cannot keep up: %d dropped so far", self._dropped)


def _path(event: Event) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"


_encode = msgspec.json.Encoder().encode
