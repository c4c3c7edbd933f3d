"""Store: all objects, the counter of resource versions, and change notification.

A change is made at once in memory, and in the journal in the same order. Followers within the
process are notified at once; watchers, and clients that wait for a response, only when the change
is durable. So no change that was visible outside can be lost.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .journal import Journal, StorageError
from .records import ADDED, DELETED, MODIFIED, Key, Record, RecordChange, WatchEvent

HISTORY = 32_768
"""Most changes of a resource that are kept for resuming watchers."""
LEAST_HISTORY, HISTORY_S = 1_000, 300.0
"""Number of changes that are stored however old they are, and seconds of the machine for the others."""

_ENCODER = msgspec.json.Encoder()
LAST = "\U0010ffff"

Follower = Callable[[RecordChange], None]
OnSafe = Callable[[StorageError | None], None]
"""Called when changes are durable, or with the reason why they cannot be."""
FieldsOf = Callable[[str, Mapping[str, Any]], tuple[Any, ...]]
MAX_BACKLOG = 200_000

Matches = Callable[[Record], bool]


class TooOldError(Exception):
    """The resource version is older than the history."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")


class Shelf:
    """The objects of one resource, and the callbacks for their changes."""

    __slots__ = (
        "_added",
        "_has_gaps",
        "_keys",
        "_times",
        "followers",
        "history",
        "oldest",
        "records",
        "watchers",
    )

    def __init__(self, oldest: int, followers: Sequence[Follower]) -> None:
        self.records: dict[Key, Record] = {}
        self.followers = followers
        self.watchers: list[Watcher] = []
        self.history: deque[RecordChange] = deque()
        self._times: deque[float] = deque()
        self.oldest = oldest
        """Changes after this resource version are in the history."""
        self._keys: list[Key] = []
        self._added: list[Key] = []
        self._has_gaps = False

    def put(self, record: Record) -> Record | None:
        """Add a record; returns the one that it replaces."""
        key, records = record.key, self.records
        old = records.get(key)
        if old is None:
            self._added.append(key)
        records[key] = record
        return old

    def remove(self, key: Key) -> None:
        del self.records[key]
        self._has_gaps = True

    def keys(self) -> list[Key]:
        """All keys, sorted on demand."""
        if self._has_gaps:
            present = dict.fromkeys((*self._keys, *self._added))
            self._keys, self._added = [key for key in present if key in self.records], []
            self._keys.sort()
            self._has_gaps = False
        elif self._added:
            self._keys += self._added
            self._added = []
            self._keys.sort()
        return self._keys

    def publish(self, change: RecordChange) -> None:
        """Notify the watchers, keep the change for later watchers, and drop the oldest changes."""
        now, history = time.monotonic(), self.history
        history.append(change)
        self._times.append(now)
        while len(history) > HISTORY or (
            len(history) > LEAST_HISTORY and self._times[0] < now - HISTORY_S
        ):
            self._times.popleft()
            self.oldest = history.popleft().record.resource_version
        for watcher in self.watchers:
            watcher.offer(change)


class Store:
    """The objects of a cluster by resource and key. `fields_of` gives the values for field
    selectors."""

    def __init__(
        self, journal: Journal | None = None, fields_of: FieldsOf = lambda resource, tree: ()
    ) -> None:
        self._journal = journal or Journal()
        self._fields_of = fields_of
        self._shelves: dict[str, Shelf] = {}
        self._owned: dict[str, dict[tuple[str, Key], None]] = {}
        self._by_uid: dict[str, tuple[str, Key]] = {}
        self._followers: list[tuple[Follower, Collection[str]]] = []
        self._after_deletions: list[Follower] = []
        self._unpublished: deque[RecordChange] = deque()
        self._waiters: deque[tuple[int, OnSafe]] = deque()
        self.resource_version, entries = self._journal.load()
        self._first = self.resource_version
        self._safe_version = self.resource_version
        for entry in entries:
            self._load(entry.resource, entry.key, entry.data)
        self._journal.listen(self._on_safe)

    # Reading

    def get(self, resource: str, key: Key) -> Record | None:
        """The object of that key, or None."""
        shelf = self._shelves.get(resource)
        return None if shelf is None else shelf.records.get(key)

    def list(self, resource: str, namespace: str = "") -> Sequence[Record]:
        """The objects ordered by namespace and name; of one namespace, or of all ("")."""
        shelf = self._shelves.get(resource)
        if shelf is None:
            return []
        keys, records = shelf.keys(), shelf.records
        if namespace:
            first, last = bisect_left(keys, (namespace, "")), bisect_right(keys, (namespace, LAST))
            keys = keys[first:last]
        return [records[key] for key in keys]

    def count(self, resource: str) -> int:
        """The number of objects of the resource."""
        shelf = self._shelves.get(resource)
        return 0 if shelf is None else len(shelf.records)

    def find_uid(self, uid: str) -> tuple[str, Key] | None:
        """The resource and key of the object with that uid."""
        return self._by_uid.get(uid)

    def owned_by(self, uid: str) -> Sequence[tuple[str, Key]]:
        """The objects that have the one with that uid as owner."""
        return tuple(self._owned.get(uid, ()))

    def resources(self) -> Iterable[str]:
        """The resources of current and deleted objects."""
        return tuple(self._shelves)

    # Writing

    def put(self, resource: str, key: Key, tree: dict[str, Any]) -> Record:
        """Store the object, new or replacing the one with its key; sets the resource version in
        `tree`."""
        version = self.resource_version + 1
        tree["metadata"]["resourceVersion"] = str(version)
        record = self._make(resource, key, tree, version)  # if that fails, nothing has changed
        self.resource_version = version
        shelf = self._shelves.get(resource) or self._shelf(resource)
        old = shelf.put(record)
        if old is None:
            self._link(resource, record)
            self._changed(shelf, RecordChange(ADDED, record, resource, None, record))
            return record
        if old.uid != record.uid or old.owners != record.owners:
            self._unlink(resource, old)
            self._link(resource, record)
        self._changed(shelf, RecordChange(MODIFIED, record, resource, old, record))
        return record

    def remove(self, resource: str, key: Key) -> Record:
        """Delete an object; return its last state."""
        shelf = self._shelves[resource]
        old = shelf.records[key]
        last = at_version(old, self.resource_version + 1)
        self.resource_version += 1
        shelf.remove(key)
        self._unlink(resource, old)
        self._changed(shelf, RecordChange(DELETED, last, resource, old, None))
        return last

    def when_safe(self, done: OnSafe) -> None:
        """Call `done` when all changes so far are durable, or cannot be."""
        failure = self._journal.failure
        if failure is not None or self._safe_version >= self.resource_version:
            done(failure)
        else:
            self._waiters.append((self.resource_version, done))

    async def safe(self) -> None:
        """Wait until all changes so far are durable; raises StorageError when they cannot be."""
        waiter: asyncio.Future[StorageError | None] = asyncio.get_running_loop().create_future()
        self.when_safe(lambda failure: None if waiter.done() else waiter.set_result(failure))
        failure = await waiter
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """End all watches and close the journal."""
        for resource in self._shelves:
            self.end_watches(resource)
        await self._journal.close()

    # Following and watching

    def follow(self, follower: Follower, resources: Collection[str] = ()) -> None:
        """Notify `follower` synchronously of every change, or of changes of some resources; it must not write then."""
        self._followers.append((follower, resources))
        for name, shelf in self._shelves.items():
            shelf.followers = self._followers_of(name)

    def follow_deletions(self, follower: Follower) -> None:
        """Notify `follower` of every deletion."""
        self._after_deletions.append(follower)

    def _followers_of(self, resource: str) -> Sequence[Follower]:
        return [
            follower
            for follower, resources in self._followers
            if not resources or resource in resources
        ]

    def watch(
        self, resource: str, namespace: str, matches: Matches | None, since: int | None
    ) -> Watcher:
        """Watch from a resource version on; with None from now on, after the existing objects.

        Raises TooOldError when the history does not reach back to that version.
        """
        watcher, shelf = Watcher(resource, namespace, matches), self._shelf(resource)
        if since is None:
            for record in self._safe_records(resource, namespace):
                if matches is None or matches(record):
                    watcher.add(WatchEvent(ADDED, record))
        else:
            if since < shelf.oldest:
                raise TooOldError(since, shelf.oldest)
            for change in _after(shelf.history, since):
                watcher.offer(change)
        shelf.watchers.append(watcher)
        return watcher

    def end_watches(self, resource: str) -> None:
        """End the watches of a removed resource."""
        for watcher in self._shelf(resource).watchers:
            watcher.close()

    def unwatch(self, watcher: Watcher) -> None:
        """Remove the watcher."""
        self._shelf(watcher.resource).watchers.remove(watcher)

    @property
    def safe_version(self) -> int:
        """The resource version up to which changes are durable, and watchers were notified."""
        return self._safe_version

    def _safe_records(self, resource: str, namespace: str) -> Iterable[Record]:
        """The objects at the durable version; later changes are still to be delivered."""
        before: dict[Key, Record | None] = {}
        for change in self._unpublished:
            if change.resource == resource:
                before.setdefault(change.record.key, change.old)
        for record in self.list(resource, namespace):
            found = before.pop(record.key, record)
            if found is not None:
                yield found
        for key, gone in before.items():
            if gone is not None and namespace in ("", key[0]):
                yield gone

    def _changed(self, shelf: Shelf, change: RecordChange) -> None:
        if self._journal.append(change):
            self._safe_version = change.record.resource_version
            shelf.publish(change)
        else:
            self._unpublished.append(change)
        for follower in shelf.followers:
            follower(change)
        if change.new is None:
            for follower in self._after_deletions:
                follower(change)

    def _on_safe(self, version: int) -> None:
        """Notify the watchers and waiting clients."""
        failure = self._journal.failure
        try:
            if failure is None:
                self._safe_version = version
                while self._unpublished and self._unpublished[0].record.resource_version <= version:
                    change = self._unpublished.popleft()
                    self._shelves[change.resource].publish(change)
        finally:
            self._release(version, failure)

    def _release(self, version: int, failure: StorageError | None) -> None:
        """Answer the clients that wait for a version; the failure of one does not affect the others."""
        while self._waiters and (failure is not None or self._waiters[0][0] <= version):
            done = self._waiters.popleft()[1]
            try:
                done(failure)
            except BaseException:  # the other waiters are released in any case
                asyncio.get_running_loop().call_soon(self._release, version, failure)
                raise

    # Records

    def _make(self, resource: str, key: Key, tree: dict[str, Any], version: int) -> Record:
        metadata = tree["metadata"]
        owners = metadata.get("ownerReferences")
        return Record(
            key,
            metadata["uid"],
            version,
            _ENCODER.encode(tree),
            metadata.get("labels"),
            self._fields_of(resource, tree),
            tuple([owner["uid"] for owner in owners]) if owners else (),
            "deletionTimestamp" in metadata and bool(metadata.get("finalizers")),
        )

    def _load(self, resource: str, key: Key, data: bytes) -> None:
        tree = msgspec.json.decode(data)
        version = int(tree["metadata"]["resourceVersion"])
        record = self._make(resource, key, tree, version)
        self._shelf(resource).put(record)
        self._link(resource, record)

    def _shelf(self, resource: str) -> Shelf:
        shelf = self._shelves.get(resource)
        if shelf is None:
            shelf = self._shelves[resource] = Shelf(self._first, self._followers_of(resource))
        return shelf

    def _link(self, resource: str, record: Record) -> None:
        place = (resource, record.key)
        self._by_uid[record.uid] = place
        for uid in record.owners:
            self._owned.setdefault(uid, {})[place] = None

    def _unlink(self, resource: str, record: Record) -> None:
        place = (resource, record.key)
        self._by_uid.pop(record.uid, None)
        for uid in record.owners:
            owned = self._owned.get(uid)
            if owned is not None:
                owned.pop(place, None)
                if not owned:
                    del self._owned[uid]


def _after(history: deque[RecordChange], version: int) -> Iterable[RecordChange]:
    """The part of the history after `version`."""
    later = []
    for change in reversed(history):
        if change.record.resource_version <= version:
            break
        later.append(change)
    return reversed(later)


class Watcher:
    """A watcher of one resource, in one namespace or all, with a selector.

    `matches` is None if all objects match. `on_change` is called when there are events to take, or when it is cut off:
    a watcher that does not keep up is disconnected; its client reconnects and lists again, as with a real API server.
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
