"""Report of a stream: sums, quantiles and use over time; the pods are in the rows that were passed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf, log
from typing import Any

from ...api.own_documents import API_VERSION
from ...cluster.memory.refusals import AdmissionRefusal
from ..outcomes import time_entry
from ..pending_pods import PendingGroup
from ..totals import TotalsChange
from ..use_over_time import MeansOverTime

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
        """The quantile by the definition of `measures/waits.py`: interpolated between two numbers; 0 without any."""
        if not self.count:
            return 0.0
        place = share * (self.count - 1)
        below = floor(place)
        low, high = self._at(below), self._at(ceil(place))
        return low + (high - low) * (place - below)

    def _at(self, place: int) -> float:
        """The number at this place of the sorted numbers, from 0 on."""
        left = place - self._zeros
        if left < 0:
            return 0.0
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left < 0:
                middle: float = 2 * self._ratio**bucket / (self._ratio + 1)
                return min(max(middle, self._minimum), self.maximum)
        return self.maximum

    def to_dict(self) -> dict[str, float]:
        """Plain data, as docs/traces.md describes it."""
        found = {"mean": self.mean, "max": self.maximum}
        found |= {f"p{percent}": self.quantile(percent / 100) for percent in (50, 95, 99)}
        return {name: round(value, 6) for name, value in found.items()}


@dataclass(slots=True)
class StreamReport:
    """The result of a simulation whose pods were streamed."""

    counts: Mapping[str, int]
    """Number of pods without preempted ones, and of these the placed and the finished; the number of preempted pods.
    """
    running: int
    """Number of pods on a node at the start."""
    nodes: int
    """Number of nodes, those that were removed included."""
    pending_groups: list[PendingGroup]
    totals: TotalsChange
    use: Sequence[MeansOverTime]
    waits: QuantileSketch
    """Seconds from creation until a pod had a node."""
    slowdowns: QuantileSketch
    """Time from creation to end divided by the time on the node."""
    time_s: float
    seconds: float
    """Duration of the run on the wall clock."""
    refused: list[AdmissionRefusal] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        return self.counts.get("pods", 0)

    @property
    def placed(self) -> int:
        return self.counts.get("placed", 0)

    @property
    def is_complete(self) -> bool:
        """Whether every pod was placed, and none refused."""
        return not self.refused and self.placed == self.pods

    @property
    def notices(self) -> list[str]:
        """Remarks to print with the result."""
        return [*(f"refused: {refusal}" for refusal in self.refused), *self.remarks]

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain data, as `bayplan research trace simulate -o json` prints it."""
        return {
            "apiVersion": API_VERSION,
            "kind": "StreamReport",
            "summary": {
                "pods": self.pods,
                "placed": self.placed,
                "pending": self.pods - self.placed,
                "preempted": self.counts.get("preempted", 0),
                "refused": sum(refusal.count for refusal in self.refused),
                "running": self.running,
                "nodes": self.nodes,
                "finished": self.counts.get("finished", 0),
                "time": time_entry(self.time_s),
            },
            "pendingGroups": [group.to_dict() for group in self.pending_groups],
            "totals": self.totals.to_list(),
            "useOverTime": [series.to_dict() for series in self.use],
            "waits": self.waits.to_dict(),
            "slowdowns": self.slowdowns.to_dict(),
            "refused": [refusal.to_dict() for refusal in self.refused],
            **({"remarks": self.remarks} if self.remarks else {}),
        }

    def headline(self) -> str:
        """`12 of 14 pods placed, 2 pending, on 7 nodes`."""
        waiting = self.pods - self.placed
        pending = f", {waiting:,} pending" if waiting else ""
        return f"{self.placed:,} of {self.pods:,} pods placed{pending}, on {self.nodes:,} nodes"
