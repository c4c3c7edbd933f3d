"""Time budget: the processor time that a search may take, and the time of one more simulation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LAST_RUNS = 8
FINAL_RUNS = 1
"""Simulations for the answer: that of the plan is run once more if a worker ran it."""


class TimeBudget:
    """Counts the processor time of this process and of its workers since it was made, and the finished simulations.

    It counts processor time, not wall-clock time, so that a search gets as far on a busy machine as on an idle one.
    """

    def __init__(
        self, limit_s: float, spent_s: float = 0.0, now: Callable[[], float] = time.process_time
    ) -> None:
        """`spent_s` was spent before, and counts for the limit."""
        self.limit_s = limit_s
        self._now = now
        self._start_s = now() - spent_s
        self._elsewhere_s = 0.0
        self._runs: deque[float] = deque(maxlen=LAST_RUNS)

    def add(self, seconds: float) -> None:
        """Count the time of another process."""
        self._elsewhere_s += seconds

    def note_run(self, seconds: float) -> None:
        """Record the duration of a simulation, which is counted already."""
        self._runs.append(seconds)

    @property
    def run_s(self) -> float:
        """Time of a simulation, the mean of the last ones; 0 before the first."""
        return sum(self._runs) / max(len(self._runs), 1)

    def spent_s(self) -> float:
        """Processor time so far."""
        return self._now() - self._start_s + self._elsewhere_s

    def has_time_for(self, runs: int) -> bool:
        """Whether `runs` simulations, and then the one for the answer, can end before the limit.

        One of them may take as long as the longest recent one.
        """
        needed_s = (runs + FINAL_RUNS - 1) * self.run_s + max(self._runs, default=0.0)
        return self.spent_s() + needed_s < self.limit_s
