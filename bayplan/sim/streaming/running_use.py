"""Running use: use of each resource over time, summed up during a simulation.

The same quantities as in `use_over_time.py`, without a record of each change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...api.node import Node
from ...api.pod import Pod
from ..totals import MAIN_RESOURCES, PODS
from ..use_over_time import PENDING, MeansOverTime, is_counted

BUCKETS = 1024
FIRST_WIDTH_S = 2.0**-10


@dataclass(slots=True)
class SampledSeries(MeansOverTime):
    """A quantity as the means of equal parts of the time; peak and mean are exact.

    There are at most `BUCKETS` parts: beyond that, pairs of parts are merged.
    """

    name: str
    peak: float = 0.0
    peak_at_s: float = 0.0
    _width_s: float = FIRST_WIDTH_S
    _sums: list[float] = field(default_factory=list)
    _total: float = 0.0
    end_s: float = 0.0

    def add(self, start_s: float, end_s: float, value: float) -> None:
        """Add the value that the quantity had from `start_s` to `end_s`."""
        if value > self.peak:
            self.peak, self.peak_at_s = value, start_s
        self.end_s = end_s
        if not value:
            return
        self._total += value * (end_s - start_s)
        while end_s > self._width_s * BUCKETS:
            self._merge()
        first, last = int(start_s / self._width_s), int(end_s / self._width_s)
        sums = self._sums
        if len(sums) <= last:
            sums.extend([0.0] * (last + 1 - len(sums)))
        if first == last:
            sums[first] += value * (end_s - start_s)
            return
        for i in range(first, last + 1):
            inside = min(end_s, (i + 1) * self._width_s) - max(start_s, i * self._width_s)
            sums[i] += value * max(inside, 0.0)

    def _merge(self) -> None:
        """Merge each pair of parts."""
        sums = [*self._sums, 0.0]
        self._sums = [sums[i] + sums[i + 1] for i in range(0, len(sums) - 1, 2)]
        self._width_s *= 2

    @property
    def is_flat(self) -> bool:  # type: ignore[override]  # computed here
        """Whether nothing changed after the start."""
        return self.peak - self.mean < 1e-9

    @property
    def mean(self) -> float:  # type: ignore[override]  # computed here
        """The mean over time."""
        return self._total / self.end_s if self.end_s else 0.0

    def parts(self) -> Iterator[tuple[float, float, float]]:
        """Beginning, end and mean of each bucket."""
        for i, total in enumerate(self._sums):
            start_s, end_s = i * self._width_s, min((i + 1) * self._width_s, self.end_s)
            if end_s > start_s:
                yield start_s, end_s, total / (end_s - start_s)


class RunningUse:
    """Use of nodes by pods, and the number of waiting pods, over time."""

    def __init__(self, first: Iterable[Pod | Node]) -> None:
        self._used: Counter[str] = Counter()
        self._offered: Counter[str] = Counter()
        self._pending = 0
        self._asked: set[str] = set()
        self._series: dict[str, SampledSeries] = {}
        self._pending_series = SampledSeries(PENDING)
        self._since_s = 0.0
        for obj in first:
            self._count(obj, 1)

    def change(self, at_s: float, old: Pod | Node | None, new: Pod | Node | None) -> None:
        """Record that an amount is added, changed or removed."""
        if at_s > self._since_s:
            self._pass(at_s)
        if old is not None:
            self._count(old, -1)
        if new is not None:
            self._count(new, 1)

    def series(self, end_s: float) -> list[SampledSeries]:
        """A series for each resource that pods use, cpu and memory first, and one of the pending pods; at the end."""
        self._pass(end_s)
        if not end_s:
            return []
        names = dict.fromkeys([*MAIN_RESOURCES, *self._series])
        return [
            *(
                self._series[name]
                for name in names
                if name in self._series
                and name != PODS
                and (name in self._asked or name in MAIN_RESOURCES)
            ),
            self._pending_series,
        ]

    def _count(self, obj: Pod | Node, sign: int) -> None:
        if not is_counted(obj):
            return
        if isinstance(obj, Node):
            for name, amount in obj.allocatable.items():
                self._offered[name] += sign * amount
                self._series.setdefault(name, SampledSeries(name))
        elif obj.node_name:
            for name, amount in obj.usage.items():
                self._used[name] += sign * amount
            self._asked.update(obj.usage)
        else:
            self._pending += sign

    def _pass(self, now_s: float) -> None:
        """Advance to `now_s` with unchanged amounts."""
        since_s, self._since_s = self._since_s, now_s
        for name, series in self._series.items():
            offered = self._offered[name]
            series.add(since_s, now_s, self._used[name] / offered if offered else 0.0)
        self._pending_series.add(since_s, now_s, float(self._pending))
