"""Recorder: events of controllers and kubelets about objects.

Mirrors k8s.io/client-go/tools/record: a repeated event is counted; from the tenth message with the
same reason within ten minutes on, events are combined in one; a reporter writes at most 25 events of
a type about an object, and one more every five minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from ...clock import Clock
from ...cluster.objects.object_index import ClusterObject
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE
from ..registry.status_errors import StatusError

Tree = dict[str, Any]
EVENTS = BY_STORAGE["events"]
MAX_OBJECTS = 4096
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


class _EventHistory(msgspec.Struct):
    """Events of one type that one reporter has written about one object."""

    tokens: float
    since_s: float
    similar: dict[str, _Similar] = {}
    written: dict[tuple[str, str], _Written] = {}


class EventNames:
    """Names of events: the object of an event, and a moment. No two are equal."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ns = 0

    def make(self, about: str) -> str:
        """The name of the next event about an object of that name."""
        self._last_ns = max(int(self._clock.timestamp() * 1e9), self._last_ns + 1)
        return f"{about}.{self._last_ns:x}"


class ObjectRecorder:
    """Writes events about objects."""

    def __init__(self, registry: ObjectRegistry, names: EventNames) -> None:
        self._registry = registry
        self._names = names
        self._histories: OrderedDict[tuple[str, str, Reporter], _EventHistory] = OrderedDict()

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
        if not _may_write(history, now_s):
            return
        namespace = about.namespace or "default"
        if written is not None and self._count(namespace, written, message):
            return
        tree = self._make(about, reporter, type_, reason, message[:1024])
        if field_path:
            tree["involvedObject"]["fieldPath"] = field_path
        try:
            self._registry.create_own(EVENTS, namespace, tree)
        except StatusError:
            return  # the namespace is terminating: the event is dropped
        history.written[key] = _Written(tree["metadata"]["name"], 1)
        if len(history.written) > MAX_WRITTEN:
            del history.written[next(iter(history.written))]

    def _history_of(self, uid: str, type_: str, reporter: Reporter, now_s: float) -> _EventHistory:
        key = uid, type_, reporter
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = _EventHistory(BURST, now_s)
            if len(self._histories) > MAX_OBJECTS:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end(key)
        return history

    def _make(
        self, about: ClusterObject, reporter: Reporter, type_: str, reason: str, message: str
    ) -> Tree:
        source = {"component": reporter.component}
        if reporter.host:
            source["host"] = reporter.host
        moment = self._registry.now()
        return {
            "metadata": {
                "name": self._names.make(about.name),
                "namespace": about.namespace or "default",
            },
            "involvedObject": reference_to(about),
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": type_,
            "eventTime": None,
            "reportingComponent": reporter.component,
            "reportingInstance": reporter.host,
        }

    def _count(self, namespace: str, written: _Written, message: str) -> bool:
        """Count an existing event; False if there is none."""
        record = self._registry.store.get("events", (namespace, written.name))
        if record is None:
            return False
        tree = record.decode()
        tree |= {
            "count": written.count,
            "lastTimestamp": self._registry.now(),
            "message": message[:1024],
        }
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
    """Note a message; returns whether there were too many others with its reason."""
    similar = history.similar.get(reason)
    if similar is None or now_s - similar.last_s > SIMILAR_S:
        similar = history.similar[reason] = _Similar(set(), now_s)
    similar.messages.add(message)
    similar.last_s = now_s
    if len(similar.messages) < MAX_MESSAGES:
        return False
    similar.messages.pop()
    return True


def _may_write(history: _EventHistory, now_s: float) -> bool:
    """Take one of the tokens for events, if there is one."""
    history.tokens = min(history.tokens + (now_s - history.since_s) / REFILL_S, BURST)
    history.since_s = now_s
    if history.tokens < 1:
        return False
    history.tokens -= 1
    return True
