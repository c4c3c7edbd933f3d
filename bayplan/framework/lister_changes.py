"""Lister changes: which objects of a lister changed, so that an index over them need not be rebuilt.

So an index over thousands of volumes is not read again because one claim was bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from ..table import ChangeLog
from .lister import Lister


class ObjectKey(NamedTuple):
    """Names one object; cluster-wide kinds have the namespace ""."""

    kind: str
    namespace: str
    name: str


@runtime_checkable
class ChangeFeed(Protocol):
    """A lister with a log of its changes. Without a log, readers read everything again after every change."""

    def changes_since(self, version: int) -> Iterable[ObjectKey] | None:
        """Objects that were added, changed or deleted after `version`; None if that is no longer recorded."""


class ObjectLog(ChangeLog[ObjectKey]):
    """The part of a lister that makes it a ChangeFeed."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        super().__init__()
        self._counts: defaultdict[str, int] = defaultdict(int)

    def mark(self, entry: ObjectKey) -> None:
        """Record that an object was added, changed or deleted."""
        self._counts[entry.kind] += 1
        super().mark(entry)

    def version_of(self, kinds: Iterable[str]) -> int:
        """The number of changes of objects of these kinds."""
        counts = self._counts
        return sum([counts[kind] for kind in kinds])


class Follower:
    """The position of one reader in the log of a lister."""

    __slots__ = ("_feed", "_lister", "_version")

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        # `isinstance` with a Protocol takes longer than reading a short log.
        self._feed: ChangeFeed | None = lister if isinstance(lister, ChangeFeed) else None
        self._version = -1

    def changes(self) -> Iterable[ObjectKey] | None:
        """Changes since the last call; None if they are unknown, as in the first call."""
        version, self._version = self._version, self._lister.version
        if version == self._version:
            return ()
        if version < 0 or self._feed is None:
            return None
        return self._feed.changes_since(version)


__all__ = ["ChangeFeed", "ChangeLog", "Follower", "ObjectKey", "ObjectLog"]
