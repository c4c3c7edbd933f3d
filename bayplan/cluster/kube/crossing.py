"""Crossing: how things get from one event loop, and its thread, to another: many per wake-up, in order.

Waking a thread costs more than most of what crosses, and the two threads take turns anyway: whoever can wait a little
lets more come together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Crossing(Generic[Item]):
    """Hands what is put in to `take`, on `loop`. `put` may be called on any thread."""

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
        """Hand over one thing."""
        self._items.append(item)
        # Whoever takes lowers the flag first: if it is still up, this item will be seen.
        if not self._is_announced:
            self._is_announced = True
            self._announce()

    def _announce(self) -> None:
        with suppress(RuntimeError):  # the other side has closed its loop: nobody will take it
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_announced = False
        self._take(self._items)


class PatientCrossing(Crossing[Item]):
    """The same, from one loop to another: what is put in on `source` crosses `patience_s` after the first of it.

    With no patience that is at the end of the turn.
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
