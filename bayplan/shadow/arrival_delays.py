"""Arrival delays: the time from the creation of pods to their arrival here, to find a watch that delivers late."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

LATE_S = 3.0
"""A delay that is this much longer than the shortest shows a late watch; creation times have whole seconds."""
DRIFT = 0.001
"""Seconds per second by which clocks may differ."""
LASTING_S = 60.0
"""Delays that are longer for this time are a change of clocks, not a late watch."""


class ArrivalDelays:
    """Follows the shortest delay, which is latency and the difference of two clocks."""

    def __init__(self) -> None:
        self._least_s: float | None = None
        self._least_at_s = 0.0
        self._late_since_s: float | None = None

    def is_late(self, now_s: float, now: datetime, created: Iterable[str]) -> bool:
        """Note the pods that arrived at once; returns whether they are late."""
        delay_s = max((now - _time_of(text)).total_seconds() for text in created)
        least = self._least_s
        if least is not None:
            least += (now_s - self._least_at_s) * DRIFT
        if least is None or delay_s <= least:
            self._accept(now_s, delay_s)
            return False
        if delay_s <= least + LATE_S:
            self._late_since_s = None
            return False
        if self._late_since_s is None:
            self._late_since_s = now_s
        if now_s - self._late_since_s > LASTING_S:
            self._accept(now_s, delay_s)
        return True

    def _accept(self, now_s: float, delay_s: float) -> None:
        self._least_s, self._least_at_s, self._late_since_s = delay_s, now_s, None


def _time_of(text: str) -> datetime:
    """A time of the API; without a zone it is UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
