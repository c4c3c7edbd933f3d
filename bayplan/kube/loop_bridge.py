"""Loop bridge: pass items from one event loop, and its thread, to another: in batches, in order.

Waking a thread costs more than most items, and the two threads take turns anyway: a short delay
lets more items form a batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Crossing(Generic[Item]):
    """Passes items to `take`, on `loop`. `put` may be called on any thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, take: Callable[[deque[Item]], None]
    ) -> None:
        self._loop = loop
        self._take = take
        self._items: deque[Item] = deque()
        self._is_announced = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        """Pass one item."""
        self._items.append(item)
        # The receiver clears the flag first: if it is still set, this item will be included.
        if not self._is_announced:
            self._is_announced = True
            self._announce()

    def _announce(self) -> None:
        with suppress(RuntimeError):  # the receiving loop is closed: the item is dropped
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_announced = False
        self._take(self._items)


class PatientCrossing(Crossing[Item]):
    """The same, from one loop to another: items put on `source` cross `patience_s` after the first of them.

    With no patience that is at the end of the current iteration.
    """

    def __init__(
        self,
        source: asyncio.AbstractEventLoop,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[deque[Item]], None],
        patience_s: float = 0.0,
    ) -> None:
        super().__init__(loop, take)
        self._source = source
        self._patience_s = patience_s

    def _announce(self) -> None:
        if not self._is_on_source():
            super()._announce()
        elif self._patience_s:
            self._source.call_later(self._patience_s, super()._announce)
        else:
            self._source.call_soon(super()._announce)

    def _is_on_source(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._source
        except RuntimeError:
            return False
