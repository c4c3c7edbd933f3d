"""Reflector: follow all objects of one kind: list, then watch, and resume after an interruption.

Mirrors k8s.io/client-go/tools/cache/reflector.go. Lines of a watch are split as bytes and decoded
once; an object known at its version is not decoded again. Changes are delivered in batches.

A scheduler reads the first state as a stream from the server's cache: a watch that begins with all objects and has a
bookmark at their end. If the server refuses that, its cache is listed; if that has expired, the newest state.

An object with fields that cannot be read is kept without them; see `api/wire/lenient.py`. One that cannot
be read at all is removed, so that no stale version stays.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, NamedTuple, Protocol

import msgspec

from ..api.meta import Wire
from ..api.wire.decode import decode_as, decode_items
from ..api.wire.lenient import decode_leniently
from ..api.wire.sourced import with_source
from ..errors import ApiError, DecodeError
from .connection import ServerStatus
from .first_streams import CACHED, WATCH_S, first_stream
from .retry_backoff import Backoff, loop_time
from .watched_kinds import Resource

log = logging.getLogger(__name__)

PAGE = 1000
GONE, NOT_FOUND = 410, 404
UNSUPPORTED = frozenset({400, 405, 422})
"""Refusals by a server that has no streams."""
SHORT_WATCH_S = 1.0
"""A watch that ends sooner, and without an event, counts as a failure."""
MAX_REPORTED = 10_000
"""Number of problems of objects that are remembered, so that each is logged once."""
SILENCE_S = 60.0
"""Seconds after its timeout that a silent watch may stay open."""

INITIAL_END = b'"k8s.io/initial-events-end"'
"""Annotation of the bookmark after the initial events of a stream."""
RETRIED = frozenset({401, 408, GONE, 429})
"""Refusals after which a stream is tried again; after others, the objects are listed."""

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
BOOKMARK, ERROR = "BOOKMARK", "ERROR"


class ObjectEvent(NamedTuple):
    """An event of an object."""

    type: str
    obj: Any


Key = tuple[str, str]
Batch = list[ObjectEvent]


class Reader(Protocol):
    """The required part of a connection."""

    async def request(self, method: str, path: str, *, query: Mapping[str, str | int]) -> bytes:
        """The body of the response."""

    def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AbstractAsyncContextManager[Chunks]:
        """The body of the response as a stream."""

    async def pause(self, seconds: float) -> None:
        """Wait this long, or until the server is reachable again."""


class Chunks(Protocol):
    """A stream of bytes."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """The pieces."""


class ExpiredError(ApiError):
    """The resource version has expired on the server."""

    default_code = GONE


class _ListMeta(Wire, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(Wire, frozen=True):
    """A page of a list, with undecoded items."""

    metadata: _ListMeta = _ListMeta()
    items: msgspec.Raw = msgspec.Raw(b"[]")


class _Meta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Head(Wire, frozen=True):
    """The part of an object that identifies it and its version."""

    metadata: _Meta = _Meta()


class _RawEvent(Wire, frozen=True):
    """A line of a watch, with an undecoded object."""

    type: str
    object: msgspec.Raw


_LISTS = msgspec.json.Decoder(_List)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_HEADS = msgspec.json.Decoder(_Head)
_NO_HEAD = _Head()
_EVENTS = msgspec.json.Decoder(_RawEvent)
_STATUS = msgspec.json.Decoder(ServerStatus)


class Reflector:
    """Follows the objects of one resource; `deliver` receives changes, `synced` is called after the
    first list. With `keep_sources`, pods and nodes keep the JSON that they were decoded from. One that
    `may_vanish` raises ApiError (404), too, when the server no longer has the resource. With `from_cache`, the first
    state is read from the server's cache, as a stream if the server can."""

    def __init__(
        self,
        resource: Resource,
        reader: Reader,
        deliver: Callable[[Batch], None],
        synced: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
        *,
        keep_sources: bool = False,
        may_vanish: bool = False,
        from_cache: bool = False,
    ) -> None:
        self.resource = resource
        self._streams = from_cache
        self._first_version = CACHED if from_cache else ""
        self._initial: set[Key] | None = None
        """The objects of a stream before its bookmark; None after it."""
        self._keep_sources = keep_sources
        self._may_vanish = may_vanish
        self._decodes_lines = not keep_sources and resource.kind.wire is not dict
        """Whether a line of a watch is decoded at once."""
        self._reader = reader
        self._deliver = deliver
        self._synced = synced
        self._backoff = backoff or Backoff()
        self._known: dict[Key, Any] = {}
        self._version = ""
        """The resource version to watch from; "" for a list first."""
        self._events = 0
        self._event_decoder = _event_decoder(resource.kind.text_type)
        self.is_synced = False
        self.is_current = False
        """Whether a watch is open, so that every change arrives as it happens."""
        self.problem = ""
        """Reason why the last list or watch failed."""
        self.unreadable = 0
        """Number of objects with a field that could not be read: one for each object and problem."""
        self._reported: set[tuple[str, str]] = set()
        """The object and the problem of these."""

    async def run(self) -> None:
        """Follow until cancelled. Raises ApiError only while the first list is refused permanently
        (401, 403, 404)."""
        while True:
            events, is_resumed = self._events, bool(self._version)
            try:
                if not self._version and self._streams:
                    await self._stream_or_list()
                elif not self._version:
                    await self.read_all()
                await self.watch()
            except ApiError as error:
                self.problem, self.is_current, self._initial = str(error), False, None
                if self._events > events:
                    self._backoff.reset()
                if not self.is_synced and error.code in (401, 403, 404):
                    raise
                if self._may_vanish and error.code == NOT_FOUND:
                    raise
                if isinstance(error, ExpiredError):
                    self._version = self._first_version = ""
                    if is_resumed:  # else the server expires the list that it has just sent
                        self._backoff.reset()
                level = logging.INFO if isinstance(error, ExpiredError) else logging.WARNING
                wait_s = self._backoff.next_s()
                log.log(level, "%s: %s; next try in %.1f s", self.resource.plural, error, wait_s)
                await self._reader.pause(wait_s)

    def version_of(self, namespace: str, name: str) -> str | None:
        """The resource version at which an object is known; None if it is not."""
        known = self._known.get((namespace, name))
        return None if known is None else str(known.resource_version)

    def forget(self) -> None:
        """Deliver the deletion of all objects."""
        gone = [ObjectEvent(DELETED, obj) for obj in self._known.values()]
        self._known.clear()
        if gone:
            self._deliver(gone)

    # Listing

    async def _stream_or_list(self) -> None:
        """Read all objects and their changes in one stream, or list them if the server refuses that."""
        try:
            await self.watch(is_initial=True)
        except ApiError as error:
            is_refused = error.code >= 400 and error.code not in RETRIED
            if self._initial is None or not is_refused:
                raise
            self._initial = None
            log.info("%s: no stream of all objects, listing: %s", self.resource.plural, error)
            self._streams = error.code not in UNSUPPORTED
            await self.read_all()
        if self._initial is not None:
            self._initial, self._streams = None, False
            raise ApiError("the server ended a stream before all objects were sent")

    async def read_all(self) -> None:
        """Read all objects, page by page, and deliver the differences to the known ones."""
        seen: set[Key] = set()
        query: dict[str, str | int] = {"limit": PAGE, **self._selection()}
        if self._first_version:
            query["resourceVersion"] = self._first_version
        is_first, found = not self._known, 0
        async for page in self._pages(query):
            batch = self._read_items(page.items, seen, is_first)
            if batch:
                self._deliver(batch)
            found += len(batch)
        found += self._end_list(seen, page.metadata.resource_version)
        log.info("%s: listed %d, %d changed", self.resource.plural, len(seen), found)

    def _end_list(self, seen: set[Key], version: str) -> int:
        """Deliver the deletion of objects that are absent from the list; returns their number."""
        gone = [key for key in self._known if key not in seen]
        if gone:
            self._deliver([ObjectEvent(DELETED, self._known.pop(key)) for key in gone])
        self._version = version
        if not self.is_synced:
            self.is_synced = True
            self._synced()
        return len(gone)

    async def _pages(self, query: dict[str, str | int]) -> AsyncIterator[_List]:
        """All pages. The next page is requested while one is read."""
        page = await self._page(query)
        while page.metadata.continue_:
            following = {**query, "continue": page.metadata.continue_}
            following.pop("resourceVersion", None)
            coming = asyncio.ensure_future(self._page(following))
            try:
                await asyncio.sleep(0)  # the request is sent
                yield page
                page = await coming
            finally:
                coming.cancel()
        yield page

    async def _page(self, query: Mapping[str, str | int]) -> _List:
        try:
            body = await self._reader.request("GET", self.resource.path, query=query)
        except ApiError as error:
            if error.code == GONE:  # the rest of the list has expired
                raise ExpiredError(str(error)) from None
            raise
        try:
            return _LISTS.decode(body)
        except msgspec.DecodeError as error:
            raise ApiError(f"{self.resource.path}: expected a list; got {error}") from None

    def _read_items(self, items: msgspec.Raw, seen: set[Key], is_first: bool) -> Batch:
        """Decode a page: all of it at once if nothing is known yet, else only new objects or
        versions."""
        if bytes(items) == b"null":
            return []
        if is_first and not self._keep_sources:
            objects = decode_items(bytes(items), f"{self.resource.kind.name}List")
            if objects is not None:
                batch = [ObjectEvent(ADDED, obj) for obj in objects]
                for change in batch:
                    key = _key(change.obj)
                    self._known[key] = change.obj
                    seen.add(key)
                return batch
        batch = []
        for item in _ITEMS.decode(items):
            found = self._read_item(item, seen)
            if found is not None:
                batch.append(found)
        return batch

    def _read_item(self, item: msgspec.Raw, seen: set[Key]) -> ObjectEvent | None:
        """The change that an object of a list stands for, if any; an unreadable object counts as deleted."""
        meta = _read_head(item).metadata
        key = self._key_of(meta)
        known = self._known.get(key)
        if known is not None and known.resource_version == meta.resource_version:
            seen.add(key)
            return None
        obj = self._decode(item, meta)
        if obj is None:
            return None
        seen.add(key)
        self._known[key] = obj
        return ObjectEvent(ADDED if known is None else MODIFIED, obj)

    def _decode(self, data: msgspec.Raw, meta: _Meta) -> Any | None:
        """The object, as far as it can be read; None if it cannot be used."""
        try:
            obj: Any = decode_as(data, self.resource.kind)
        except DecodeError:
            obj, faults = decode_leniently(data, self.resource.kind)
            effect = "is left out" if obj is None else "is used without the field"
            for fault in faults:
                self._report(meta, f"{fault}; the object {effect}")
        return with_source(obj, bytes(data)) if self._keep_sources and obj is not None else obj

    def _report(self, meta: _Meta, problem: str) -> None:
        """Log and count a problem, once per object."""
        name = "/".join(filter(None, (meta.namespace, meta.name))) or "without a readable name"
        entry = (meta.uid or name, problem)
        if entry in self._reported:
            return
        if len(self._reported) >= MAX_REPORTED:
            self._reported.clear()
        self._reported.add(entry)
        self.unreadable += 1
        log.warning("%s %s: %s", self.resource.kind.name.lower(), name, problem)

    def _key_of(self, meta: _Meta) -> Key:
        return (meta.namespace if self.resource.kind.is_namespaced else "", meta.name)

    # Watching

    async def watch(self, is_initial: bool = False) -> None:
        """Follow the changes since the last version, or after all objects, until the server ends the watch."""
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": int(random.uniform(*WATCH_S)),
            **self._selection(),
        }
        if is_initial:
            self._initial = set()
            query = first_stream(self.resource.field_selector)
            query["resourceVersion"] = self._first_version
        silence_s = float(query["timeoutSeconds"]) + SILENCE_S
        started, events_before = loop_time(), self._events
        try:
            async with self._reader.stream(self.resource.path, query, silence_s) as body:
                self.is_current = not is_initial
                rest = b""
                async for chunk in body.iter_any():
                    lines = (rest + chunk).split(b"\n")
                    rest = lines.pop()  # an incomplete line
                    self._read_lines(lines)
        except ApiError as error:
            if error.code == GONE and not isinstance(error, ExpiredError):
                raise ExpiredError(str(error)) from None
            raise
        if loop_time() - started < SHORT_WATCH_S and self._events == events_before:
            raise ApiError("the server ended a watch at once, without an event")

    def _read_lines(self, lines: list[bytes]) -> None:
        batch: Batch = []
        given = [line for line in lines if line]
        try:
            for line, event in zip(given, self._decode_lines(given), strict=True):
                self._read_event(line, event, batch)
        finally:
            if batch:
                self._deliver(batch)

    def _decode_lines(self, lines: list[bytes]) -> Sequence[Any]:
        """The events, or None for lines that are decoded by the slow path."""
        events: Sequence[Any] = [None] * len(lines)
        if self._decodes_lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                events = self._event_decoder.decode(b"[" + b",".join(lines) + b"]")
        return events

    def _read_event(self, line: bytes, event: Any, batch: Batch) -> None:
        """Take one event; raises ExpiredError or ApiError for an error event."""
        self._events += 1
        if event is None or event.type in (BOOKMARK, ERROR):
            self._read_odd_line(line, batch)
            return
        try:
            self._note(event.type, self.resource.kind.build(event.object), batch)
            self._note_version(event.object.metadata.resource_version)
        except Exception:  # unusual lines are decoded again by the slow path
            self._read_odd_line(line, batch)

    def _note_version(self, version: str) -> None:
        """Set the version to resume from; initial events are in no order."""
        if self._initial is None:
            self._version = version or self._version

    def _end_stream(self, version: str, batch: Batch) -> None:
        """All objects were sent; changes follow."""
        seen, self._initial, self.is_current = self._initial or set(), None, True
        if batch:
            self._deliver(batch[:])
            batch.clear()
        gone = self._end_list(seen, version)
        log.info("%s: streamed %d, %d are gone", self.resource.plural, len(seen), gone)

    def _read_odd_line(self, line: bytes, batch: Batch) -> None:
        try:
            event = _EVENTS.decode(line)
            status = _STATUS.decode(event.object) if event.type == ERROR else None
        except msgspec.DecodeError as error:
            raise ApiError(f"{self.resource.path}: expected an event; got {error}") from None
        if status is not None:
            if status.code == GONE:
                raise ExpiredError(status.message)
            raise ApiError(status.message, status.code)
        meta = _read_head(event.object).metadata
        if event.type == BOOKMARK and self._initial is not None and INITIAL_END in line:
            self._end_stream(meta.resource_version, batch)
            return
        self._note_version(meta.resource_version)
        if event.type not in (ADDED, MODIFIED, DELETED):
            return
        obj = self._decode(event.object, meta)
        if obj is not None:
            self._note(event.type, obj, batch)
        elif (known := self._known.pop(self._key_of(meta), None)) is not None:
            batch.append(ObjectEvent(DELETED, known))

    def _note(self, kind: str, obj: Any, batch: Batch) -> None:
        key = _key(obj)
        known = self._known.get(key)
        if self._initial is not None:
            (self._initial.discard if kind == DELETED else self._initial.add)(key)
        if kind == DELETED:
            if known is not None:
                del self._known[key]
                batch.append(ObjectEvent(DELETED, obj))
            return
        if known is not None and known.resource_version == obj.resource_version:
            return
        self._known[key] = obj
        batch.append(ObjectEvent(ADDED if known is None else MODIFIED, obj))

    def _selection(self) -> dict[str, str | int]:
        selector = self.resource.field_selector
        return {"fieldSelector": selector} if selector else {}


def _read_head(data: msgspec.Raw) -> _Head:
    """The head of an object, as far as it can be read."""
    try:
        return _HEADS.decode(data)
    except msgspec.DecodeError:
        tree = msgspec.json.decode(data)
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(metadata, dict):
        return _NO_HEAD
    known = {"name", "namespace", "uid", "resourceVersion"}
    texts = {k: v for k, v in metadata.items() if k in known and isinstance(v, str)}
    return _Head(metadata=msgspec.convert(texts, _Meta))


def _key(obj: Any) -> Key:
    return (obj.namespace, obj.name)


def _event_decoder(wire: type[Any]) -> msgspec.json.Decoder[Any]:
    """Decodes lines of a watch at once."""
    event = msgspec.defstruct(f"{wire.__name__}Event", [("type", str), ("object", wire)])
    return msgspec.json.Decoder(list[event])  # type: ignore[valid-type]  # a type made at run time
