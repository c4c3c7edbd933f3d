"""Live use: the measured use of pods for a live page, read again when a page requests it and it is old."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..clock import Clock
from ..errors import BayplanError

log = logging.getLogger(__name__)

FRESH_S = 30.0
"""Age up to which an answer is given again; metrics-server measures every 15 s."""
UseByPod = Mapping[tuple[str, str], Mapping[str, int]]
"""By namespace and name of a pod: cpu in milli, memory in bytes."""
ReadUse = Callable[[], Awaitable[UseByPod]]
"""Reads the use; raises BayplanError if there is none."""


class LiveUse:
    """Reads at most once in `FRESH_S`, and only while a page is open."""

    def __init__(self, read: ReadUse, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, Any] = {}
        self._read_at_s: float | None = None

    async def tree(self) -> dict[str, Any]:
        """The use by `namespace/name`; a `problem` in place of it if it cannot be read."""
        now_s = self._clock.monotonic()
        if self._read_at_s is None or now_s - self._read_at_s > FRESH_S * self._clock.speed:
            self._read_at_s = now_s
            self._known = await self._read_now()
        return self._known

    async def _read_now(self) -> dict[str, Any]:
        try:
            found = await self._read()
        except BayplanError as error:
            log.warning("measured use: %s", error)
            return {"use": {}, "problem": str(error)}
        return {"use": {"/".join(pod): dict(amounts) for pod, amounts in found.items()}}
