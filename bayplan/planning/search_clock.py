"""Search clock: the time of a search, in seconds of processor time, so that a busy machine finds the same plan.

It counts this process, and the workers for each answer of theirs that was used. Which process gave an answer, and how
long it had to wait for a core, makes no difference.
"""

from __future__ import annotations

import time


class SearchClock:
    """Runs from its making."""

    def __init__(self) -> None:
        self._started = time.process_time()
        self._elsewhere_s = 0.0

    def add(self, seconds: float) -> None:
        """Count the time that a worker took for an answer."""
        self._elsewhere_s += seconds

    def spent_s(self) -> float:
        """Since the start."""
        return time.process_time() - self._started + self._elsewhere_s
