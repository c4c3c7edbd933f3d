"""Use over time: how much of each resource was in use, and how many pods waited, over the time of a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec

from ..api.node import Node
from ..api.pod import Pod
from .totals import MAIN_RESOURCES, PODS

PENDING = "pending"
"""The series of the pods without a node: a count, not a share."""
SAMPLES = 60

UseMove: TypeAlias = tuple[float, Pod | Node, int]
"""At this time a pod comes to a node or leaves it, starts or ends to wait, or a node comes or goes: 1 or -1."""


class UseSeries(msgspec.Struct, frozen=True):
    """One quantity over time: a share of the nodes' allocatable amount, or the number of pending pods."""

    name: str
    """A resource, or `pending`."""
    times_s: list[float]
    """Time when it changed, from 0 on."""
    values: list[float]
    """The value from each of these times on."""
    end_s: float

    @property
    def peak(self) -> float:
        return max(self.values)

    @property
    def peak_at_s(self) -> float:
        """Time when it was at its peak for the first time."""
        return self.times_s[self.values.index(self.peak)]

    @property
    def mean(self) -> float:
        """The mean over time."""
        return self.samples(1)[0]

    @property
    def is_flat(self) -> bool:
        """Whether nothing changed after the start."""
        return len(self.values) < 2

    def samples(self, count: int = SAMPLES) -> list[float]:
        """The means of `count` equal parts of the time."""
        if not self.end_s:
            return [self.values[-1]] * count
        length = self.end_s / count
        sums = [0.0] * count
        ends = [*self.times_s[1:], self.end_s]
        for start, end, value in zip(self.times_s, ends, self.values, strict=True):
            first, last = int(start / length), min(int(end / length), count - 1)
            for i in range(first, last + 1):
                inside = min(end, (i + 1) * length) - max(start, i * length)
                sums[min(i, count - 1)] += max(inside, 0.0) * value
        return [each / length for each in sums]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        return {
            "name": self.name,
            "peak": round(self.peak, 6),
            "peakAt": round(self.peak_at_s, 6),
            "mean": round(self.mean, 6),
            "samples": [round(value, 6) for value in self.samples()],
        }


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


def use_over_time(history: UseHistory, end_s: float) -> list[UseSeries]:
    """A series for each resource that pods use, cpu and memory first, and one of the pending pods.

    Empty when no time passed.
    """
    if not end_s:
        return []
    moves = list(history.moves())
    asked = {
        name for _, obj, _ in moves if isinstance(obj, Pod) and obj.node_name for name in obj.usage
    }
    offered = dict.fromkeys(
        name for _, obj, _ in moves if isinstance(obj, Node) for name in obj.allocatable
    )
    names = [name for name in (*MAIN_RESOURCES, *offered) if name in offered]
    found = [
        _series(name, moves, end_s)
        for name in dict.fromkeys(names)
        if name != PODS and (name in asked or name in MAIN_RESOURCES)
    ]
    return [*found, _series(PENDING, moves, end_s)]


def _series(name: str, moves: Sequence[UseMove], end_s: float) -> UseSeries:
    """The values of one quantity; simultaneous events are one change."""
    times, values = [0.0], [0.0]
    used = offered = 0
    for at_s, obj, sign in moves:
        if name == PENDING:
            used += sign if isinstance(obj, Pod) and not obj.node_name else 0
        elif isinstance(obj, Node):
            offered += sign * obj.allocatable.get(name, 0)
        elif obj.node_name:
            used += sign * obj.usage.get(name, 0)
        value = float(used) if name == PENDING else used / offered if offered else 0.0
        if at_s > times[-1]:
            times.append(at_s)
            values.append(value)
        else:
            values[-1] = value
    kept = [0, *(i for (_, a), (i, b) in pairwise(enumerate(values)) if a != b)]
    return UseSeries(name, [times[i] for i in kept], [values[i] for i in kept], end_s)
