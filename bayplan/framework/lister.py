"""Lister: how plugins read the objects of the cluster, and which of them changed.

So an index over thousands of volumes is not read again because one claim was bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..api.pod import Pod
from ..api.pod_groups import PodGroup, pod_group_of
from ..table import ChangeLog


class Lister(Protocol):
    """The objects of the cluster that are not nodes or pods, by kind: `Service`, `ReplicaSet`, ...; by default none."""

    @property
    def version(self) -> int:
        """Changes whenever an object does."""
        return 0

    def version_of(self, *kinds: str) -> int:
        """Changes whenever an object of one of `kinds` does."""
        return 0

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""
        return ()

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-wide kinds have the namespace ""."""
        return None


def group_of(pod: Pod, lister: Lister) -> PodGroup | None:
    """The PodGroup of the pod; None if it has no group, or its group is not there."""
    name = pod_group_of(pod)
    return None if name is None else lister.get("PodGroup", pod.namespace, name)


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
