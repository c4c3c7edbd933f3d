"""Sketch: quantiles of many numbers, from counts of numbers of similar size."""

from __future__ import annotations

from collections import Counter
from math import ceil, inf, log

ACCURACY = 0.01
"""A quantile differs from the exact one by at most this share of it."""
SMALLEST = 1e-6
"""Numbers below it count as 0: times are microseconds."""


class QuantileSketch:
    """Counts numbers that are not negative in buckets whose bounds grow by 2 %, as in DDSketch (VLDB 2019).

    Mean and maximum are exact. About 1,700 buckets are enough for a microsecond to a thousand years.
    """

    def __init__(self) -> None:
        self._ratio = (1 + ACCURACY) / (1 - ACCURACY)
        self._scale = 1 / log(self._ratio)
        self._buckets: Counter[int] = Counter()
        self._zeros = 0
        self._sum = 0.0
        self.count = 0
        self.maximum = 0.0
        self._minimum = inf

    def add(self, value: float) -> None:
        """Count a number."""
        self.count += 1
        self._minimum = min(self._minimum, value)
        if value < SMALLEST:
            self._zeros += 1
            return
        self._sum += value
        if value > self.maximum:
            self.maximum = value
        self._buckets[ceil(log(value) * self._scale)] += 1

    @property
    def mean(self) -> float:
        return self._sum / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The number that `share` of all numbers do not exceed; 0 when there are none."""
        rank = max(ceil(share * self.count), 1) - self._zeros
        if rank <= 0 or not self.count:
            return 0.0
        for bucket in sorted(self._buckets):
            rank -= self._buckets[bucket]
            if rank <= 0:
                middle: float = 2 * self._ratio**bucket / (self._ratio + 1)
                return min(max(middle, self._minimum), self.maximum)
        return self.maximum

    def to_dict(self) -> dict[str, float]:
        """Plain data, as docs/traces.md describes it."""
        found = {"mean": self.mean, "max": self.maximum}
        found |= {f"p{percent}": self.quantile(percent / 100) for percent in (50, 95, 99)}
        return {name: round(value, 6) for name, value in found.items()}
