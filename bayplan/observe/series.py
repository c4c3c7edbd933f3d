"""Series: the counted numbers, as plain objects.

The counting code holds such an object and changes it: no look-up, no lock. That is safe because a
single thread, the scheduler's, records and reads; a driver with other threads runs the reading on
the scheduler's thread between two attempts.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CounterSeries:
    """A counter: `count += 1`."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Tally(CounterSeries):
    """A counter for several series at once, each of which grows by `count`; in a histogram, by that
    many zeros."""

    __slots__ = ()


class Gauge:
    """A gauge: `value += 1`, `value -= 1`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


@dataclass(slots=True)
class Distribution:
    """Contents of a histogram: observations per bucket, the unlimited one last, and their sum."""

    counts: list[int]
    sum: float

    @property
    def count(self) -> int:
        return sum(self.counts)


class Histogram:
    """Observations by size. `bounds` are the upper limits of the buckets; a limit belongs to its bucket."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: list[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Add one observation, or a number of equal ones."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def observe_all(self, values: NDArray[np.float64]) -> None:
        """Add many observations at once; NaN stands for nothing observed."""
        import numpy as np  # late: connections count before the scheduler is imported

        values = values[~np.isnan(values)]
        buckets = np.bincount(np.searchsorted(self._bounds, values), minlength=len(self._counts))
        self._counts = [
            seen + new for seen, new in zip(self._counts, buckets.tolist(), strict=True)
        ]
        self._sum += float(values.sum())

    def read(self) -> Distribution:
        """All observations so far."""
        return Distribution(list(self._counts), self._sum)


def exponential_buckets(start: float, factor: float, count: int) -> list[float]:
    """`count` limits, each `factor` times the one before."""
    bounds = [start]
    while len(bounds) < count:
        # Multiplied step by step, so that rounding is Go's, and with it the text of the `le` label.
        bounds.append(bounds[-1] * factor)
    return bounds
