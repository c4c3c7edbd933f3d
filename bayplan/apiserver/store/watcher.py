"""Watcher: the events of one watcher.

A watcher that does not keep up is disconnected; its client reconnects and lists again, as with a
real API server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .records import ADDED, DELETED, Record, RecordChange, WatchEvent

MAX_BACKLOG = 200_000

Matches = Callable[[Record], bool]


class Watcher:
    """A watcher of one resource, in one namespace or all, with a selector.

    `matches` is None if all objects match. `on_change` is called when there are events to take, or when it is cut off.
    """

    def __init__(self, resource: str, namespace: str, matches: Matches | None) -> None:
        self.resource = resource
        self.namespace = namespace
        self._matches = matches
        self._events: deque[WatchEvent] = deque()
        self.on_change: Callable[[], None] = lambda: None
        self.is_cut_off = False

    def offer(self, change: RecordChange) -> None:
        """Queue the event, if it matches the watcher."""
        if self.namespace and change.record.key[0] != self.namespace:
            return
        event = change if self._matches is None else self._seen(change)
        if event is None:
            return
        if len(self._events) >= MAX_BACKLOG:
            self.is_cut_off = True
        else:
            self._events.append(event)
        self.on_change()

    def add(self, event: WatchEvent) -> None:
        """Queue an event from the history."""
        self._events.append(event)
        self.on_change()

    def _seen(self, change: RecordChange) -> WatchEvent | None:
        """The watcher's event: objects that start or stop matching are added and deleted."""
        assert self._matches is not None
        old, new = change.old, change.new
        before = old is not None and self._matches(old)
        after = new is not None and self._matches(new)
        if before and after:
            return change
        if after:
            assert new is not None
            return change if old is None else WatchEvent(ADDED, new)
        if before:
            assert old is not None
            if new is None:
                return change
            return WatchEvent(DELETED, at_version(old, change.record.resource_version))
        return None

    @property
    def has_events(self) -> bool:
        """Whether there are events to take."""
        return bool(self._events)

    def take(self, most: int | None = None) -> list[WatchEvent]:
        """The queued events, in order, at most `most`."""
        if most is not None and most < len(self._events):
            return [self._events.popleft() for _ in range(most)]
        events = list(self._events)
        self._events.clear()
        return events

    def close(self) -> None:
        """Cut it off; the server is stopping."""
        self.is_cut_off = True
        self.on_change()


def at_version(record: Record, resource_version: int) -> Record:
    """The record with another resource version, as the last state of a deleted object."""
    old = b'"resourceVersion":"%d"' % record.resource_version
    new = b'"resourceVersion":"%d"' % resource_version
    return Record(
        record.key,
        record.uid,
        resource_version,
        record.data.replace(old, new, 1),
        record.labels,
        record.fields,
        record.owners,
    )
