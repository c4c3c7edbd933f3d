"""KeyedHeap: a priority queue whose items are found, replaced and deleted by key.

Corresponds to pkg/scheduler/backend/heap/heap.go.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

SLACK = 64
"""Number of stale slots that never trigger a cleanup."""


class KeyedHeap(Generic[T]):
    """Items in the order of `sort_key`, equal ones in order of insertion.

    A deleted or moved item leaves a stale slot; stale slots are skipped when popped and removed
    when they are the majority. So all operations are a few calls of C code and O(log n), deletion
    amortised. Items mostly arrive in order: those that sort after all earlier ones are appended to
    a list beside the heap, which is cheaper.
    """

    __slots__ = ("_arrivals", "_items", "_row", "_slots", "_sort_key")

    def __init__(self, sort_key: Callable[[T], Any]) -> None:
        self._sort_key = sort_key
        self._arrivals = 0
        self._slots: list[tuple[Any, int, str]] = []
        self._row: deque[tuple[Any, int, str]] = deque()
        self._items: dict[str, tuple[Any, int, T]] = {}

    def put(self, key: str, item: T) -> None:
        """Add an item, or replace the one with this key."""
        rank = self._sort_key(item)
        known = self._items.get(key)
        if known is not None and known[0] == rank:
            self._items[key] = (rank, known[1], item)
            return
        self._arrivals = arrival = self._arrivals + 1
        self._items[key] = (rank, arrival, item)
        row = self._row
        if not row or not rank < row[-1][0]:
            row.append((rank, arrival, key))
        else:
            heapq.heappush(self._slots, (rank, arrival, key))
        if known is not None:
            self._sweep()

    def pop(self) -> T | None:
        """Remove and return the first item; None when empty."""
        items, slots, row = self._items, self._slots, self._row
        while slots or row:
            if not slots or (row and row[0] < slots[0]):
                _, arrival, key = row.popleft()
            else:
                _, arrival, key = heapq.heappop(slots)
            found = items.get(key)
            if found is not None and found[1] == arrival:
                del items[key]
                return found[2]
        return None

    def peek(self) -> T | None:
        """The first item; None when empty."""
        items, slots, row = self._items, self._slots, self._row
        while slots or row:
            in_row = not slots or (row and row[0] < slots[0])
            _, arrival, key = row[0] if in_row else slots[0]
            found = items.get(key)
            if found is not None and found[1] == arrival:
                return found[2]
            row.popleft() if in_row else heapq.heappop(slots)
        return None

    def delete(self, key: str) -> T | None:
        """Remove and return the item with this key; None when absent."""
        found = self._items.pop(key, None)
        if found is None:
            return None
        self._sweep()
        return found[2]

    def get(self, key: str) -> T | None:
        """The item with this key."""
        found = self._items.get(key)
        return None if found is None else found[2]

    def in_order(self) -> list[T]:
        """All items in order, without removing them."""
        return [item for _, _, item in sorted(self._items.values(), key=_rank)]

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[T]:
        return (item for _, _, item in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def _sweep(self) -> None:
        if len(self._slots) + len(self._row) > 2 * len(self._items) + SLACK:
            slots = ((rank, at, key) for key, (rank, at, _) in self._items.items())
            self._row = deque(sorted(slots, key=_rank))
            self._slots = []


def _rank(entry: tuple[Any, int, Any]) -> tuple[Any, int]:
    return entry[0], entry[1]
