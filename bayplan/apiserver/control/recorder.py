"""Recorder: events about objects, for `kubectl describe` and `kubectl get events`.

Mirrors k8s.io/client-go/tools/record for the events of controllers and kubelets, and tools/events for those of
schedulers. A repeated event is counted; of controllers and kubelets, from the tenth message with the same reason within
ten minutes on, events are combined in one, and a reporter writes at most 25 events of a type about an object, and one
more every five minutes. Events expire after an hour.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import msgspec

from ...clock import Clock, Timers, rfc3339
from ...cluster.objects.object_index import ClusterObject
from ...framework.handle import PodEvent
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE
from ..registry.status_errors import StatusError
from ..store.records import RecordChange
from ..store.store import Store

Tree = dict[str, Any]
EVENTS = BY_STORAGE["events"]
MAX_KEPT = 4096
"""Most objects, and most events of schedulers, of which repetitions are counted."""
MAX_NOTE = 1024
TTL_S = 3600.0
SWEEP_EVERY_S = 60.0
MAX_MESSAGES = 10
"""From this number of messages with the same reason on, events are combined."""
SIMILAR_S = 600.0
BURST, REFILL_S = 25, 300.0
MAX_WRITTEN = 64
COMBINED = "(combined from similar events): "


class Reporter(msgspec.Struct, frozen=True):
    """The component that writes an event, and its node."""

    component: str
    host: str = ""


class _Similar(msgspec.Struct):
    """The last messages with one reason."""

    messages: set[str]
    last_s: float


class _Written(msgspec.Struct):
    """An event that was written, and how often it happened."""

    name: str
    count: int


class EventTokens(msgspec.Struct):
    """Tokens for events: `most`, and another one every `refill_s`."""

    most: float
    refill_s: float
    tokens: float
    since_s: float

    def take(self, now_s: float) -> bool:
        """Take a token; False if there is none."""
        self.tokens = min(self.tokens + (now_s - self.since_s) / self.refill_s, self.most)
        self.since_s = now_s
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _EventHistory(EventTokens):
    """Events of one type that one reporter has written about one object."""

    similar: dict[str, _Similar] = {}
    written: dict[tuple[str, str], _Written] = {}


class EventSweeper:
    """Deletes events an hour after their creation. Follows the store."""

    def __init__(self, store: Store, clock: Clock, timers: Timers) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        now = clock.monotonic()
        self._ages = deque((now, record.key, record.uid) for record in store.list("events"))
        store.follow(self._look, ("events",))
        timers.after(SWEEP_EVERY_S, self._sweep)

    def _look(self, change: RecordChange) -> None:
        if change.old is None:
            self._ages.append((self._clock.monotonic(), change.record.key, change.record.uid))

    def _sweep(self) -> None:
        oldest = self._clock.monotonic() - TTL_S
        while self._ages and self._ages[0][0] <= oldest:
            _, key, uid = self._ages.popleft()
            record = self._store.get("events", key)
            if record is not None and record.uid == uid:
                self._store.remove("events", key)
        self._timers.after(SWEEP_EVERY_S, self._sweep)


class ObjectRecorder:
    """Writes events about objects, or counts those that are there."""

    def __init__(self, registry: ObjectRegistry) -> None:
        self._registry = registry
        self._last_ns = 0
        self._histories: OrderedDict[tuple[str, str, Reporter], _EventHistory] = OrderedDict()
        self._of_schedulers: OrderedDict[tuple[str, ...], str] = OrderedDict()
        """By pod, type, reason, note and reporter: the name of the event."""

    def record_pod_event(self, event: PodEvent) -> None:
        """Write a scheduler's event about a pod, or count it."""
        pod, clock = event.regarding, self._registry.clock
        reporter = event.reporting_controller or pod.scheduler_name
        key = (pod.uid, event.type, event.reason, event.note, reporter)
        known, now = self._of_schedulers.get(key), rfc3339(clock.now(), "microseconds")

        def count(tree: Tree) -> None:
            number = int((tree.get("series") or {}).get("count") or 1) + 1
            tree["series"] = {"count": number, "lastObservedTime": now}

        if known is not None and self._count(pod, known, count):
            return
        tree: Tree = {
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": now,
            "action": event.action,
            "reportingComponent": reporter,
            "reportingInstance": f"{reporter}-bayplan",
        }
        if event.related is not None:
            tree["related"] = reference_to(event.related)
        name = self._write(pod, event.type, event.reason, event.note, tree)
        if name is None:
            return
        self._of_schedulers[key] = name
        if len(self._of_schedulers) > MAX_KEPT:
            self._of_schedulers.popitem(last=False)

    def record(
        self,
        about: ClusterObject,
        reporter: Reporter,
        what: tuple[str, str],
        message: str,
        field_path: str = "",
    ) -> None:
        """Write an event with this type and reason (`what`) about an object, or count it."""
        type_, reason = what
        now_s = self._registry.clock.monotonic()
        history = self._history_of(about.uid, type_, reporter, now_s)
        is_combined = _is_combined(history, reason, message, now_s)
        message = (COMBINED if is_combined else "") + message
        key = reason, COMBINED if is_combined else f"{field_path} {message}"
        written = history.written.get(key)
        if written is not None:
            written.count += 1
        if not history.take(now_s):
            return
        moment = self._registry.now()
        if written is not None:
            again = {
                "count": written.count,
                "lastTimestamp": moment,
                "message": message[:MAX_NOTE],
            }
            if self._count(about, written.name, lambda tree: tree.update(again)):
                return
        source = {"component": reporter.component}
        if reporter.host:
            source["host"] = reporter.host
        tree: Tree = {
            "source": source,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "eventTime": None,
            "reportingComponent": reporter.component,
            "reportingInstance": reporter.host,
        }
        name = self._write(about, type_, reason, message, tree, field_path)
        if name is None:
            return
        history.written[key] = _Written(name, 1)
        if len(history.written) > MAX_WRITTEN:
            del history.written[next(iter(history.written))]

    def _history_of(self, uid: str, type_: str, reporter: Reporter, now_s: float) -> _EventHistory:
        key = uid, type_, reporter
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = _EventHistory(BURST, REFILL_S, BURST, now_s)
            if len(self._histories) > MAX_KEPT:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end(key)
        return history

    def _write(
        self,
        about: ClusterObject,
        type_: str,
        reason: str,
        message: str,
        more: Tree,
        field_path: str = "",
    ) -> str | None:
        """Write a new event; returns its name, None if the namespace is terminating."""
        name, namespace = self._new_name(about.name), about.namespace or "default"
        involved = reference_to(about)
        if field_path:
            involved["fieldPath"] = field_path
        tree = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "reason": reason,
            "message": message[:MAX_NOTE],
            "type": type_,
            **more,
        }
        try:
            self._registry.create_own(EVENTS, namespace, tree)
        except StatusError:
            return None
        return name

    def _new_name(self, about: str) -> str:
        """The name of the next event about an object of that name: it, and a moment. No two are equal."""
        self._last_ns = max(int(self._registry.clock.timestamp() * 1e9), self._last_ns + 1)
        return f"{about}.{self._last_ns:x}"

    def _count(self, about: ClusterObject, name: str, count: Callable[[Tree], None]) -> bool:
        """Let `count` change an existing event; False if there is none."""
        record = self._registry.store.get("events", (about.namespace or "default", name))
        if record is None:
            return False
        tree = record.decode()
        count(tree)
        self._registry.write(EVENTS, record, tree)
        return True


def reference_to(obj: ClusterObject) -> Tree:
    """The object that an event is about."""
    return {
        "kind": obj.kind,
        "namespace": obj.namespace,
        "name": obj.name,
        "uid": obj.name if obj.kind == "Node" else obj.uid,  # as kubelets do
        "apiVersion": obj.api_version,
        "resourceVersion": obj.resource_version,
    }


def _is_combined(history: _EventHistory, reason: str, message: str, now_s: float) -> bool:
    """Record a message; returns whether its reason had too many others."""
    similar = history.similar.get(reason)
    if similar is None or now_s - similar.last_s > SIMILAR_S:
        similar = history.similar[reason] = _Similar(set(), now_s)
    similar.messages.add(message)
    similar.last_s = now_s
    if len(similar.messages) < MAX_MESSAGES:
        return False
    similar.messages.pop()
    return True
