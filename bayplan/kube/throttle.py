"""Throttle: a client-side rate limit.

Mirrors k8s.io/client-go/util/flowcontrol/throttle.go: a bucket of `burst` tokens that fills at
`qps` per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .retry_backoff import loop_time


class TokenBucket:
    """Returns the delay of each request; requests are served in order."""

    def __init__(self, qps: float, burst: int, now: Callable[[], float] = loop_time) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._now = now
        self._tokens = float(self._burst)
        self._filled_at = -math.inf

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._qps > 0

    def take(self) -> float:
        """Take a token; return the seconds until it is available. Without a limit (`qps` negative)
        that is 0."""
        if self._qps <= 0:
            return 0.0
        now = self._now()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1
        return max(-self._tokens / self._qps, 0.0)
