"""Turns: writes of one object happen one after the other.

kube-scheduler reads an object again after each conflict. If many pods wrote one object at the same time, all but one
would fail.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Turn:
    """A place in the line of an object."""

    __slots__ = ("_arrived", "is_due")

    def __init__(self) -> None:
        self.is_due = False
        self._arrived: asyncio.Future[None] | None = None

    def come(self) -> None:
        """Mark the turn as due, after all earlier ones have left the line."""
        self.is_due = True
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def wait(self) -> None:
        """Wait until it is due."""
        if not self.is_due:
            import asyncio

            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived


class Turns:
    """The lines, by key of an object; the first of each line may write."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[Turn]] = {}

    def join(self, key: str) -> Turn:
        """Take a place at the end of the line of `key`; call `leave` afterwards."""
        line = self._lines.setdefault(key, deque())
        turn = Turn()
        line.append(turn)
        if line[0] is turn:
            turn.come()
        return turn

    def leave(self, key: str, turn: Turn) -> None:
        """Leave the line, due or not."""
        line = self._lines[key]
        line.remove(turn)
        if not line:
            del self._lines[key]
        elif not line[0].is_due:
            line[0].come()
