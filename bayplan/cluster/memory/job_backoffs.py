"""Job backoffs: how long a job waits before it replaces failed pods.

Mirrors pkg/controller/job/backoff_utils.go: 10 s after the first failure, doubled with each further
one up to 10 min; a success resets it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...api.pod import Pod
from ...clock import Clock
from ..objects import Later
from .pod_index import OwnerKey

FIRST_S, MAX_S = 10.0, 600.0


class _Failures(msgspec.Struct):
    """The failures of a job since its last success."""

    number: int = 0
    last_s: float = 0.0
    is_expected: bool = False
    """Whether a timer is set."""


class JobBackoffs:
    """The failures of all jobs. Without a clock and timers no job waits."""

    def __init__(
        self, time: tuple[Clock, Later] | None, recheck: Callable[[OwnerKey], None]
    ) -> None:
        self._time = time
        self._recheck = recheck
        self._failures: dict[OwnerKey, _Failures] = {}

    def finished(self, key: OwnerKey, pod: Pod) -> None:
        """Record the end of a pod of the job."""
        if self._time is None:
            return
        if pod.status.phase != "Failed":
            self._failures.pop(key, None)
            return
        found = self._failures.setdefault(key, _Failures())
        found.number += 1
        found.last_s = self._time[0].monotonic()

    def forget(self, key: OwnerKey) -> None:
        """Remove a job."""
        self._failures.pop(key, None)

    def must_wait(self, key: OwnerKey) -> bool:
        """Whether the job may not create pods yet; it is looked at again when it may."""
        found = self._failures.get(key)
        if found is None or self._time is None:
            return False
        clock, timers = self._time
        wait_s = min(FIRST_S * 2.0 ** min(found.number - 1, 10), MAX_S)
        left_s = found.last_s + wait_s - clock.monotonic()
        if left_s <= 0:
            return False
        if not found.is_expected:
            found.is_expected = True
            timers.after(left_s, lambda: self._fire(key, found))
        return True

    def _fire(self, key: OwnerKey, failures: _Failures) -> None:
        failures.is_expected = False
        self._recheck(key)
