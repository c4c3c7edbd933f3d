"""Watches: changes on the wire, one line of JSON each, until the client disconnects.

Mirrors k8s.io/apiserver/pkg/endpoints/handlers/watch.go: bookmarks, the end of initial events, and
the error event for a resource version that is too old.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
from aiohttp import web

from ..registry.errors import bad_request, gone, too_many_requests
from ..registry.selecting import make_matcher
from ..store import Store, TooOldError, Watcher
from ..store.watching import WatchEvent
from .answers import HEADERS, View
from .lists import check_initial_events
from .requests import JSON, TABLE, Options, Target, is_number

MIN_TIMEOUT_S = 1800.0
BOOKMARK_EVERY_S = 60.0
MAX_CHUNK = 1000
MAX_WATCHES = 10_000
RETRY_AFTER_S = 1
INITIAL_END = {"k8s.io/initial-events-end": "true"}
_ENCODER = msgspec.json.Encoder()


class Watches:
    """Serves watches from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open = 0

    async def serve(
        self, request: web.BaseRequest, target: Target, options: Options, view: View
    ) -> web.StreamResponse:
        """Send events until the client disconnects, the timeout ends or the client does not keep up."""
        check_initial_events(target.resource, options)
        fields = options.fields
        if target.name:
            fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
        matches = make_matcher(target.resource, options.labels, fields)
        since = self._since(options)
        if self._open >= MAX_WATCHES:
            message = f"too many watches are open: the limit is {MAX_WATCHES}"
            raise too_many_requests(message, (), RETRY_AFTER_S)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": JSON})
        response.enable_chunked_encoding()
        try:
            watcher = self._store.watch(target.resource.storage, target.namespace, matches, since)
        except TooOldError as error:
            await response.prepare(request)
            await response.write(_line("ERROR", gone(str(error)).as_status()))
            return response
        self._open += 1
        try:
            await response.prepare(request)
            await _Stream(response, watcher, view).run(options, self._store)
        except ConnectionError:
            pass  # the client disconnected
        finally:
            self._open -= 1
            self._store.unwatch(watcher)
        return response

    def _since(self, options: Options) -> int | None:
        """The version after which events are sent; None: start with the existing objects."""
        text = options.resource_version
        if options.sends_initial or text in ("", "0"):
            return None
        if not is_number(text):
            raise bad_request(f'Invalid value: "{text}": resourceVersion: expected a number')
        if int(text) > self._store.resource_version:
            # It is from before a restart without data: the client must list again.
            return -1
        return int(text)


class _Stream:
    """One watch on the wire."""

    def __init__(self, response: web.StreamResponse, watcher: Watcher, view: View) -> None:
        self._response = response
        self._watcher = watcher
        self._view = view
        self._has_sent_columns = False

    async def run(self, options: Options, store: Store) -> None:
        """Send until the watch ends. A bookmark has the version up to which everything was sent."""
        timeout_s = options.timeout_s
        if timeout_s is None:
            timeout_s = MIN_TIMEOUT_S * (1 + random.random())
        loop = asyncio.get_running_loop()  # connections use real time
        now = loop.time()
        end, bookmark_at = now + timeout_s, now + BOOKMARK_EVERY_S
        if options.sends_initial:
            version = store.safe_version
            await self._send(self._watcher.take())
            if options.wants_bookmarks:
                await self._bookmark(version, INITIAL_END)
        while not self._watcher.is_cut_off:
            now = loop.time()
            if now >= end:
                break
            due = min(end, bookmark_at) if options.wants_bookmarks else end
            if await self._watcher.wait(max(due - now, 0)):
                await self._send(self._watcher.take())
            elif options.wants_bookmarks:
                bookmark_at = loop.time() + BOOKMARK_EVERY_S
                await self._bookmark(store.safe_version)

    async def _send(self, events: list[WatchEvent]) -> None:
        for first in range(0, len(events), MAX_CHUNK):
            lines = [self._encode(event) for event in events[first : first + MAX_CHUNK]]
            await self._response.write(b"".join(lines))

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

    async def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> None:
        metadata: dict[str, Any] = {
            "resourceVersion": str(version),
            "creationTimestamp": None,
        }
        if annotations:
            metadata["annotations"] = annotations
        resource = self._view.resource
        tree: dict[str, Any] = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
        }
        if self._view.form == TABLE:
            row = {"cells": [], "object": {**tree, "kind": "PartialObjectMetadata"}}
            tree = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            tree |= {"columnDefinitions": [], "rows": [row]}
        await self._response.write(_line("BOOKMARK", tree))


def _line(type_: str, tree: Any) -> bytes:
    return _ENCODER.encode({"type": type_, "object": tree}) + b"\n"
