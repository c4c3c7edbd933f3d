"""Clock: the single source of time, real or manual, and timers.

No thread and no sleep: the driver of the scheduler reads when the next timer is due, and fires it.
In a simulation time jumps to it; on a real clock the driver waits for it.
"""

from __future__ import annotations

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Clock(ABC):
    """Gives the time of day and measures durations.

    `speed` is how many seconds pass on this clock in one second of the machine.
    """

    speed = 1.0

    @abstractmethod
    def now(self) -> datetime:
        """Return the time of day, with time zone UTC."""

    def timestamp(self) -> float:
        """Return the time of day in seconds since 1970, in whole microseconds."""
        return self.now().timestamp()

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes backwards."""

    def wait_s(self, when: float) -> float:
        """Return in how many seconds of the machine `monotonic` will be `when`; 0 when it is past."""
        return max(when - self.monotonic(), 0) / self.speed


class SystemClock(Clock):
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def timestamp(self) -> float:
        return time.time_ns() // 1000 / 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class FastClock(Clock):
    """The clock of the machine, running `speed` times as fast since it was made: its time of day runs ahead."""

    def __init__(self, speed: float, machine: Clock | None = None) -> None:
        if speed <= 0:
            raise ValueError(f"expected a speed above 0; got {speed}")
        self.speed = speed
        self._machine = machine or SystemClock()
        self._start = self._machine.now()
        self._zero = self._machine.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (self._machine.monotonic() - self._zero) * self.speed


class ManualClock(Clock):
    """A clock that moves only by calls: for simulations and tests."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = _in_utc(start)
        self._set(self._start)

    def now(self) -> datetime:
        return self._now

    def timestamp(self) -> float:
        return self._timestamp

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`."""
        if seconds < 0:
            raise ValueError(f"expected a step forward in time; got {seconds} s")
        self._set(self._now + timedelta(seconds=seconds))

    def set(self, moment: datetime) -> None:
        """Move forward to `moment`."""
        moment = _in_utc(moment)
        if moment < self._now:
            raise ValueError(f"expected {self._now.isoformat()} or later; got {moment.isoformat()}")
        self._set(moment)

    def _set(self, moment: datetime) -> None:
        self._now = moment
        # Both are read far more often than time moves.
        self._timestamp = moment.timestamp()
        self._monotonic = (moment - self._start).total_seconds()


def _in_utc(moment: datetime) -> datetime:
    """The same moment in UTC."""
    if moment.tzinfo is None:
        raise ValueError(f"expected a time with a time zone; got {moment.isoformat()}")
    return moment.astimezone(UTC)


def rfc3339(moment: datetime, timespec: str = "seconds") -> str:
    """A moment in Kubernetes' format, in UTC: to the second, or a MicroTime with `microseconds`."""
    in_utc = moment.astimezone(UTC).isoformat(timespec=timespec)
    return f"{in_utc.removesuffix('+00:00')}Z"


def whole_micros(seconds: float) -> float:
    """`seconds` rounded to the microsecond, as a clock moved there will show it.

    A ManualClock can never show a moment between two microseconds.
    """
    return round(seconds * 1_000_000) / 1_000_000


Action = Callable[[], None]


class Timer:
    """An action due at a moment, in seconds of the clock's `monotonic`."""

    __slots__ = ("_action", "when")

    def __init__(self, when: float, action: Action) -> None:
        self.when = when
        self._action: Action | None = action

    def cancel(self) -> None:
        """Cancel the timer."""
        self._action = None

    @property
    def is_cancelled(self) -> bool:
        return self._action is None

    def fire(self) -> None:
        """Run the action, once."""
        action, self._action = self._action, None
        if action is not None:
            action()


class Timers:
    """Timers in order of time; equal ones in the order in which they were set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()

    def at(self, when: float, action: Action) -> Timer:
        """Run `action` at `when`, to the microsecond."""
        when = whole_micros(when)
        timer = Timer(when, action)
        heapq.heappush(self._heap, (when, next(self._numbers), timer))
        return timer

    def first_at(self, when: float, action: Action) -> Timer:
        """Run `action` at `when`, before all other timers of that time; only one such timer may be set."""
        timer = Timer(whole_micros(when), action)
        heapq.heappush(self._heap, (timer.when, -1, timer))
        return timer

    def after(self, seconds: float, action: Action) -> Timer:
        """Run `action` in `seconds`."""
        return self.at(self._clock.monotonic() + seconds, action)

    def next(self) -> float | None:
        """Time when the next timer is due; None when there is none."""
        while self._heap and self._heap[0][2].is_cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def fire_due(self) -> int:
        """Fire every timer that is due, those they set included; returns how many."""
        fired = 0
        while (when := self.next()) is not None and when <= self._clock.monotonic():
            heapq.heappop(self._heap)[2].fire()
            fired += 1
        return fired


class LoopAlarm:
    """Calls `action` on an event loop at the moment of `clock` that was set last."""

    def __init__(self, clock: Clock, action: Callable[[], None]) -> None:
        self._clock = clock
        self._action = action
        self._handle: TimerHandle | None = None
        self._when: float | None = None

    def set(self, loop: AbstractEventLoop | None, when: float | None) -> None:
        """Set another time; None unsets it."""
        if when == self._when:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._when = None, when
        if loop is not None and when is not None:
            self._handle = loop.call_later(self._clock.wait_s(when), self._fire)

    def _fire(self) -> None:
        self._when = None
        self._action()
