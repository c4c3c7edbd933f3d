"""Use over time: how much of each resource was in use, and how many pods waited, over the time of a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from ..api.node import Node
from ..api.pod import Pod
from .plain_part import PlainPart

PENDING = "pending"
"""The series of the pods without a node: a count, not a share."""
SAMPLES = 60

UseMove: TypeAlias = tuple[float, Pod | Node, int]
"""A change at a time: 1 or -1 for a pod on a node, a waiting pod, or a node."""


class MeansOverTime(PlainPart):
    """One quantity over time, from 0 to `end_s`. Subclasses have the attributes and `parts`."""

    PLAIN = "name peak~ peakAt=peak_at_s~ mean~"

    name: str
    end_s: float
    peak: float
    peak_at_s: float
    """Time of the first peak."""
    mean: float
    """The mean over time."""
    is_flat: bool
    """Whether nothing changed after the start."""

    def parts(self) -> Iterator[tuple[float, float, float]]:
        """Beginning, end and mean of parts of the time, in order."""
        raise NotImplementedError

    def samples(self, count: int = SAMPLES) -> list[float]:
        """The means of `count` equal parts of the time."""
        if not self.end_s:
            return [self.peak] * count
        length = self.end_s / count
        sums = [0.0] * count
        for start, end, value in self.parts():
            first, last = int(start / length), min(int(end / length), count - 1)
            for i in range(first, last + 1):
                inside = min(end, (i + 1) * length) - max(start, i * length)
                sums[i] += max(inside, 0.0) * value
        return [each / length for each in sums]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        return {**super().to_dict(), "samples": [round(value, 6) for value in self.samples()]}


class UseSeries(MeansOverTime, msgspec.Struct, frozen=True):
    """A share of the nodes' allocatable amount, or the number of pending pods, with every change."""

    name: str
    """A resource, or `pending`."""
    times_s: list[float]
    """Time when it changed, from 0 on."""
    values: list[float]
    """The value from each of these times on."""
    end_s: float

    @property
    def peak(self) -> float:  # type: ignore[override]  # computed here
        return max(self.values)

    @property
    def peak_at_s(self) -> float:  # type: ignore[override]  # computed here
        """Time when it was at its peak for the first time."""
        return self.times_s[self.values.index(self.peak)]

    @property
    def mean(self) -> float:  # type: ignore[override]  # computed here
        """The mean over time."""
        return self.samples(1)[0]

    @property
    def is_flat(self) -> bool:  # type: ignore[override]  # computed here
        """Whether nothing changed after the start."""
        return len(self.values) < 2

    def parts(self) -> Iterator[tuple[float, float, float]]:
        """The time between two changes, and the value."""
        ends = [*self.times_s[1:], self.end_s]
        return zip(self.times_s, ends, self.values, strict=True)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per change."""
        for time, value in zip(self.times_s, self.values, strict=True):
            yield {"name": self.name, "time_s": time, "value": value}


class UseHistory(msgspec.Struct):
    """The pods and nodes at the start, and each change of one of them; summed up on demand."""

    first: Sequence[Pod | Node] = ()
    changes: list[tuple[float, Pod | Node | None, Pod | Node | None]] = msgspec.field(
        default_factory=list
    )
    """The time of the change, the amounts before, and the amounts since."""

    def moves(self) -> Iterator[UseMove]:
        """Pods and nodes that come and go, in order."""
        for obj in self.first:
            if is_counted(obj):
                yield 0.0, obj, 1
        for at_s, old, new in self.changes:
            if old is not None and is_counted(old):
                yield at_s, old, -1
            if new is not None and is_counted(new):
                yield at_s, new, 1


def is_change_of_use(old: Pod, new: Pod) -> bool:
    """Whether a pod got a node, ended, or is being deleted."""
    return (
        old.node_name != new.node_name
        or old.status.phase != new.status.phase
        or old.is_terminating != new.is_terminating
    )


def is_counted(obj: Pod | Node) -> bool:
    """Whether the object is a node, or a pod that runs or waits for a node."""
    if isinstance(obj, Node):
        return True
    return not obj.is_finished and (bool(obj.node_name) or not obj.is_terminating)
