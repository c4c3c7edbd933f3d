"""Following: which objects of a lister changed, so that an index over them need not be rebuilt.

A plugin that keeps an index over thousands of volumes must not read them all again because one claim was bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from .lister import Lister

KEEP = 65_536


class ObjectKey(NamedTuple):
    """Names one object; cluster-wide kinds have the namespace ""."""

    kind: str
    namespace: str
    name: str


@runtime_checkable
class ChangeFeed(Protocol):
    """A lister that can also say what changed. It should: without, everything is read again after every change."""

    def changes_since(self, version: int) -> Iterable[ObjectKey] | None:
        """Objects that came, changed or went after `version`; None when that is no longer known."""


Key = TypeVar("Key")


class KeyLog(Generic[Key]):
    """What changed, by key and in order; `version` grows by one with every change."""

    __slots__ = ("_dropped", "_keys", "version")

    def __init__(self) -> None:
        self._keys: list[Key] = []
        self._dropped = 0
        self.version = 0

    def add(self, key: Key) -> None:
        """Note a change."""
        self._keys.append(key)
        self.version += 1
        if len(self._keys) > 2 * KEEP:
            del self._keys[:KEEP]
            self._dropped += KEEP

    def since(self, version: int) -> list[Key] | None:
        """Keys noted after `version`, each once; None when the log no longer reaches back that far."""
        start = version - self._dropped
        if start < 0:
            return None
        return list(dict.fromkeys(self._keys[start:]))


class ObjectLog(KeyLog[ObjectKey]):
    """What a lister needs to be a ChangeFeed."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        super().__init__()
        self._counts: defaultdict[str, int] = defaultdict(int)

    def mark(self, kind: str, namespace: str, name: str) -> None:
        """Note that an object came, changed or went."""
        self._counts[kind] += 1
        self.add(ObjectKey(kind, namespace, name))

    def version_of(self, kinds: Iterable[str]) -> int:
        """The number of changes of objects of these kinds."""
        counts = self._counts
        return sum([counts[kind] for kind in kinds])


class Follower:
    """Remembers up to where one reader has read."""

    __slots__ = ("_feed", "_lister", "_version")

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        # Asking a Protocol takes longer than reading a short log.
        self._feed: ChangeFeed | None = lister if isinstance(lister, ChangeFeed) else None
        self._version = -1

    def changes(self) -> Iterable[ObjectKey] | None:
        """What changed since the last call; None means anything, as it does the first time."""
        version, self._version = self._version, self._lister.version
        if version == self._version:
            return ()
        if version < 0 or self._feed is None:
            return None
        return self._feed.changes_since(version)
