"""Watches: changes on the wire, one line of JSON each, until the client disconnects.

Mirrors k8s.io/apiserver/pkg/endpoints/handlers/watch.go: bookmarks, the end of initial events, and
the error event for a resource version that is too old.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from ...api.rules.field_causes import forbidden_field
from ..registry.query_selectors import make_matcher
from ..registry.status_errors import bad_request, gone, invalid, too_many_requests
from ..store.records import WatchEvent
from ..store.store import Store, TooOldError, Watcher
from .http_server import ServedConnection
from .requests import PARTIAL, TABLE, Options, is_number
from .responses import JSON_HEADERS, View
from .targets import Target

MIN_TIMEOUT_S = 1800.0
BOOKMARK_EVERY_S = 60.0
MAX_CHUNK = 1000
PACE_S = 0.002
"""Between two sends of one watch: at a thousand changes a second, a send each would cost more than the changes."""
MAX_WATCHES = 10_000
RETRY_AFTER_S = 1
INITIAL_END = {"k8s.io/initial-events-end": "true"}
_ENCODER = msgspec.json.Encoder()


class Watches:
    """Serves watches from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open = 0

    def open(self, target: Target, options: Options, view: View) -> ServedWatch:
        """A watch to begin; raises StatusError."""
        if options.sends_initial and options.version_match != "NotOlderThan":
            problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            cause = forbidden_field("resourceVersionMatch", problem)
            raise invalid(target.resource, "", [cause])
        matches = make_matcher(target.resource, options.labels, options.fields)
        since = self._since(options)
        if self._open >= MAX_WATCHES:
            message = f"too many watches are open: the limit is {MAX_WATCHES}"
            raise too_many_requests(message, (), RETRY_AFTER_S)
        try:
            watcher = self._store.watch(target.resource.storage, target.namespace, matches, since)
        except TooOldError as error:
            watcher = Watcher(target.resource.storage, "", None)
            watcher.close()
            error_line = _line("ERROR", gone(str(error)).as_status())
            return ServedWatch(self._store, watcher, view, options, error_line=error_line)
        self._open += 1
        return ServedWatch(self._store, watcher, view, options, self._closed)

    def _closed(self, watcher: Watcher) -> None:
        self._open -= 1
        self._store.unwatch(watcher)

    def _since(self, options: Options) -> int | None:
        """The version after which events are sent; None to start with the existing objects."""
        text = options.resource_version
        if options.sends_initial or text in ("", "0"):
            return None
        if not is_number(text):
            raise bad_request(f'Invalid value: "{text}": resourceVersion: expected a number')
        if int(text) > self._store.resource_version:
            # It is from before a restart without data: the client must list again.
            return -1
        return int(text)


class ServedWatch:
    """One watch on the wire: until the client disconnects, the timeout ends or the client does not keep up."""

    def __init__(
        self,
        store: Store,
        watcher: Watcher,
        view: View,
        options: Options,
        closed: Callable[[Watcher], None] = lambda watcher: None,
        error_line: bytes = b"",
    ) -> None:
        self._store = store
        self._watcher = watcher
        self._view = view
        self._options = options
        self._closed = closed
        self._error_line = error_line
        self._has_sent_columns = False
        self._connection: ServedConnection
        self._loop = asyncio.get_running_loop()  # connections use real time
        self._due: asyncio.Handle | None = None
        self._next_s = 0.0
        """Time of the loop from which on the next send is allowed."""
        self._timers: list[asyncio.TimerHandle] = []

    def begin(self, connection: ServedConnection) -> None:
        """Send the existing objects, then the changes."""
        self._connection = connection
        connection.stream(JSON_HEADERS, self)
        if self._error_line:
            connection.send(self._error_line)
        options = self._options
        if options.sends_initial:
            version = self._store.safe_version
            self._send(self._watcher.take())
            if options.wants_bookmarks:
                self._bookmark(version, INITIAL_END)
        timeout_s = options.timeout_s
        if timeout_s is None:
            timeout_s = MIN_TIMEOUT_S * (1 + random.random())
        self._timers.append(self._loop.call_later(timeout_s, self._end))
        if options.wants_bookmarks:
            self._timers.append(self._loop.call_later(BOOKMARK_EVERY_S, self._on_bookmark_due))
        self._watcher.on_change = self._on_change
        self._flush()

    def on_ready(self) -> None:
        """Go on: the client has read its output."""
        self._on_change()

    def on_lost(self) -> None:
        """Stop: the client has disconnected."""
        self._stop()

    def _on_change(self) -> None:
        """Send soon: events that come together are sent together, and a busy watch at a steady pace."""
        if self._due is None:
            self._due = (
                self._loop.call_soon(self._flush)
                if self._loop.time() >= self._next_s
                else self._loop.call_at(self._next_s, self._flush)
            )

    def _flush(self) -> None:
        """Send the events, as long as the client takes them."""
        self._due = None
        self._next_s = self._loop.time() + PACE_S
        while self._watcher.has_events and not self._connection.is_paused:
            self._send(self._watcher.take(MAX_CHUNK))
        if self._watcher.is_cut_off:
            self._end()  # after the events before it, as far as the client takes them

    def _end(self) -> None:
        self._stop()
        self._connection.end_stream()

    def _stop(self) -> None:
        for handle in (self._due, *self._timers):
            if handle is not None:
                handle.cancel()
        self._watcher.on_change = lambda: None
        self._closed(self._watcher)

    def _send(self, events: list[WatchEvent]) -> None:
        if events:
            self._connection.send(b"".join(map(self._encode, events)))

    def _on_bookmark_due(self) -> None:
        """Send the version up to which everything was sent, unless the client does not keep up."""
        self._timers[1] = self._loop.call_later(BOOKMARK_EVERY_S, self._on_bookmark_due)
        self._flush()
        if not self._watcher.has_events:
            self._bookmark(self._store.safe_version)

    def _encode(self, event: WatchEvent) -> bytes:
        view = self._view
        if view.is_plain:
            return event.encode(view.resource.head)
        if view.form != TABLE:
            return _line(event.type, view.tree(event.record))
        metadata = {"resourceVersion": str(event.record.resource_version)}
        table = view.table([event.record], metadata, with_columns=not self._has_sent_columns)
        self._has_sent_columns = True
        return _line(event.type, table)

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> None:
        """Send a bookmark."""
        metadata: dict[str, Any] = {
            "resourceVersion": str(version),
            "creationTimestamp": None,
        }
        if annotations:
            metadata["annotations"] = annotations
        resource, form = self._view.resource, self._view.form
        tree: dict[str, Any] = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
        }
        if form:  # clients end a watch whose bookmark is of another kind than the events
            tree |= {"kind": PARTIAL, "apiVersion": "meta.k8s.io/v1"}
        if form == TABLE:
            table = {"kind": TABLE, "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            tree = {**table, "columnDefinitions": [], "rows": [{"cells": [], "object": tree}]}
        self._connection.send(_line("BOOKMARK", tree))


def _line(type_: str, tree: Any) -> bytes:
    return _ENCODER.encode({"type": type_, "object": tree}) + b"\n"
