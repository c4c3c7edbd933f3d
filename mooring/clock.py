"""Clock: the one source of time, real or set by hand."""

import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Clock(ABC):
    """Tells the time of day and measures durations."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the time of day, with time zone UTC."""

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes backwards."""


class SystemClock(Clock):
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock(Clock):
    """A clock that stands still until it is told to move: for simulations and tests."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = _in_utc(start)
        self._now = self._start

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`."""
        if seconds < 0:
            raise ValueError(f"expected a step forward in time; got {seconds} s")
        self._now += timedelta(seconds=seconds)

    def set(self, moment: datetime) -> None:
        """Move forward to `moment`."""
        moment = _in_utc(moment)
        if moment < self._now:
            raise ValueError(f"expected {self._now.isoformat()} or later; got {moment.isoformat()}")
        self._now = moment


def _in_utc(moment: datetime) -> datetime:
    """The same moment in UTC."""
    if moment.tzinfo is None:
        raise ValueError(f"expected a time with a time zone; got {moment.isoformat()}")
    return moment.astimezone(UTC)
