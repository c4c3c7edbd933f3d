"""Watching: events for watchers, as bytes around those of the record.

A watcher that does not keep up is disconnected; its client reconnects and lists again, as with a
real API server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from .records import Record, RecordChange

MAX_BACKLOG = 200_000
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

Matches = Callable[[Record], bool]


class WatchEvent(NamedTuple):
    """An event of one object."""

    type: str
    record: Record

    def encode(self, head: bytes) -> bytes:
        """The event as a line of JSON; `head` precedes the object's own fields."""
        data = self.record.data
        return b'{"type":"%b","object":%b%b}\n' % (self.type.encode(), head, data[1:])


class Happening(NamedTuple):
    """A change, and the event that most watchers get for it."""

    change: RecordChange
    event: WatchEvent


def happening(change: RecordChange) -> Happening:
    """The change with its event."""
    if change.new is None:
        event = WatchEvent(DELETED, change.last)
    else:
        event = WatchEvent(ADDED if change.old is None else MODIFIED, change.new)
    return Happening(change, event)


class Watcher:
    """A watcher of one resource, in one namespace or all, with a selector.

    `matches` None: all objects match. `on_change` is called when there are events to take, or when it is cut off.
    """

    def __init__(self, resource: str, namespace: str, matches: Matches | None) -> None:
        self.resource = resource
        self.namespace = namespace
        self._matches = matches
        self._events: deque[WatchEvent] = deque()
        self.on_change: Callable[[], None] = lambda: None
        self.is_cut_off = False

    def offer(self, happened: Happening) -> None:
        """Queue the event, if it matches the watcher."""
        change = happened.change
        if self.namespace and change.last.key[0] != self.namespace:
            return
        event = happened.event if self._matches is None else self._seen(happened)
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

    def _seen(self, happened: Happening) -> WatchEvent | None:
        """The watcher's event: objects that start or stop matching are added and deleted."""
        assert self._matches is not None
        old, new = happened.change.old, happened.change.new
        before = old is not None and self._matches(old)
        after = new is not None and self._matches(new)
        if before and after:
            return happened.event
        if after:
            assert new is not None
            return happened.event if old is None else WatchEvent(ADDED, new)
        if before:
            assert old is not None
            if new is None:
                return happened.event
            return WatchEvent(DELETED, at_version(old, happened.change.resource_version))
        return None

    @property
    def has_events(self) -> bool:
        """Whether there are events to take."""
        return bool(self._events)

    def take(self, most: int | None = None) -> list[WatchEvent]:
        """The queued events, in order; at most so many."""
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
