"""Backlog: changes that were received and are not followed yet. Bounded by the size of the cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..kube.reflector import DELETED, ObjectEvent

MOST_CHANGES = 50_000
"""From here on only the latest change of each object is kept."""


class ReceivedChange(NamedTuple):
    """A change, and when it was received. `cause`: why a decision in it cannot be judged; "" if it can."""

    at_s: float
    obj: Any
    is_deleted: bool
    cause: str


class Backlog:
    """A queue of changes in the order in which they were received."""

    def __init__(self, most: int = MOST_CHANGES) -> None:
        self._changes: deque[ReceivedChange] = deque()
        self._most = self._limit = most
        self.merged = 0
        """Number of changes that were dropped for a later one of the same object."""

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, at_s: float, batch: Iterable[ObjectEvent], cause: str) -> None:
        """Append received changes."""
        for type, obj in batch:
            self._changes.append(ReceivedChange(at_s, obj, type == DELETED, cause))
        if len(self._changes) > self._limit:
            self._merge()

    def oldest_s(self, now_s: float) -> float:
        """Time when the first change was received; now if there is none."""
        return self._changes[0].at_s if self._changes else now_s

    def pop(self) -> ReceivedChange:
        """Remove the first change."""
        return self._changes.popleft()

    def _merge(self) -> None:
        """Keep the latest change of each object, in order of time."""
        latest = {(one.obj.kind, one.obj.namespace, one.obj.name): one for one in self._changes}
        kept = sorted(latest.values(), key=lambda one: one.at_s)
        self.merged += len(self._changes) - len(kept)
        self._changes = deque(kept)
        # as many objects as there are may have changed; merge again when the queue has doubled
        self._limit = max(self._most, 2 * len(kept))
