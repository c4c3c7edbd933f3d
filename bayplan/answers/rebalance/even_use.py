"""Even use: even out the nodes' utilisation of cpu and memory.

The objective is the root mean square of each node's deviation from the utilisation of the whole
cluster, which no move changes. A move's gain is therefore the sum of the gains of its source and
its target, and pods of equal size are handled together: a few vectors per size instead of every pod
on every node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...sim.measures.amounts import Floats
from ...sim.totals import MAIN_RESOURCES
from ...table import NodeTable
from ..node_use import offered, used
from .move_plan import Move
from .trial_moves import Mover

ENOUGH_TRIED = 40
"""Number of pods tried per step, most promising first."""
LEAST_GAIN = 0.00005
"""A move that lowers the objective by less is not worth an eviction: tables show a gain of 0.00%."""
FEW = 500
"""Number of pods that are sorted at first; more are rarely needed."""

Size = tuple[int, ...]
"""The pod's usage of each main resource."""


class Balance:
    """The utilisation of a table's nodes and its evenness."""

    def __init__(self, table: NodeTable) -> None:
        live = table.live.astype(np.float64)
        self._offers = [offered(table, name).astype(np.float64) for name in MAIN_RESOURCES]
        self._used = [used(table, name).astype(np.float64) for name in MAIN_RESOURCES]
        self._counts = [live * (offers > 0) for offers in self._offers]
        self._means = [
            float((u * c).sum() / max(float((o * c).sum()), 1.0))
            for u, o, c in zip(self._used, self._offers, self._counts, strict=True)
        ]
        self._cells = max(sum(float(c.sum()) for c in self._counts), 1.0)
        self._now = self._squares((0,) * len(MAIN_RESOURCES))
        """float64 per row: squared deviation."""

    def value(self) -> float:
        """The objective."""
        return float(np.sqrt(self._now.sum() / self._cells))

    @property
    def least_gain(self) -> float:
        """The decrease of the sum of squares that lowers the objective by LEAST_GAIN; infinite if it is below that."""
        value = self.value()
        if value < LEAST_GAIN:
            return np.inf
        return self._cells * (value**2 - (value - LEAST_GAIN) ** 2)

    def gains(self, size: Size) -> Floats:
        """float64 per row: decrease of the sum of squares when a pod of that size is added."""
        gained: Floats = self._now - self._squares(size)
        return gained

    def _squares(self, size: Size) -> Floats:
        """float64 per row: squared deviation with this additional usage."""
        total = np.zeros(len(self._offers[0]))
        for amount, offers, in_use, counts, mean in zip(
            size, self._offers, self._used, self._counts, self._means, strict=True
        ):
            shares = (in_use + amount) / np.maximum(offers, 1.0)
            total += counts * (shares - mean) ** 2
        return total


@dataclass(slots=True)
class _Step:
    """The best move found so far."""

    pod: Pod
    row: int
    gain: float


class Candidates:
    """The pods that may be moved, in order of their names, and the properties that each shares with others."""

    def __init__(self, mover: Mover) -> None:
        self._mover = mover
        row_of = mover.table.row_of
        sizes: dict[PodSpec, Size] = {}
        sized = []
        for pod in sorted(mover.movable_pods, key=lambda pod: pod.key):
            size = size_of(pod) if pod.status.has_resources else sizes.get(pod.spec)
            if size is None:
                size = sizes[pod.spec] = size_of(pod)
            if any(size):
                sized.append((pod, size))
        self._pods = [pod for pod, _ in sized]
        rows = [row_of[pod.node_name] for pod in self._pods]
        self._rows = np.array(rows, dtype=np.int64)
        self._sizes = list(dict.fromkeys(size for _, size in sized))
        numbers = {size: number for number, size in enumerate(self._sizes)}
        self._size_ids = np.array([numbers[size] for _, size in sized], dtype=np.int64)
        self._groups = [
            (row, size, pod.pod_class, pod.spec)
            for row, (pod, size) in zip(rows, sized, strict=True)
        ]
        """Groups of equal pods on one node, of which only the first pod is tried."""

    def ranked(self, balance: Balance) -> Iterator[tuple[float, Pod]]:
        """Pods by the upper bound of their gain, ignoring the filters; one of each group."""
        if not self._pods:
            return
        live, bounds = self._mover.table.live, np.empty(len(self._pods))
        for number, size in enumerate(self._sizes):
            coming = float(np.max(balance.gains(size), initial=-np.inf, where=live))
            going = balance.gains(tuple(-amount for amount in size))
            of_size = np.flatnonzero(self._size_ids == number)
            bounds[of_size] = going[self._rows[of_size]] + coming
        seen: set[object] = set()
        for index in _descending(bounds):
            pod, group = self._pods[index], self._groups[index]
            if group not in seen and self._mover.is_movable(pod):
                seen.add(group)
                yield float(bounds[index]), pod


def _descending(bounds: Floats) -> Iterator[int]:
    """The places of the bounds, the greatest first, of equal ones the first; only a few of them are read."""
    is_few = np.ones(len(bounds), dtype=bool)
    if len(bounds) > FEW:
        is_few = bounds > np.partition(bounds, -FEW)[-FEW]
    for places in (np.flatnonzero(is_few), np.flatnonzero(~is_few)):
        yield from places[np.argsort(-bounds[places], kind="stable")].tolist()


def spread_moves(mover: Mover, most: int) -> Iterator[Move]:
    """The moves that even out the cluster most, one after the other."""
    candidates = Candidates(mover)
    for _ in range(most):
        balance = Balance(mover.table)
        step = _best_step(mover, balance, candidates)
        if step is None:
            return
        before = balance.value()
        with mover.lifted(step.pod) as waiting:
            choice = mover.choice(waiting, step.row)
            mover.put(waiting, step.row)
        after = Balance(mover.table).value()
        target = mover.table.names[step.row]
        yield Move(step.pod.key, step.pod.node_name, target, before, after, choice)


def _best_step(mover: Mover, balance: Balance, candidates: Candidates) -> _Step | None:
    """The move with the greatest gain among the most promising pods."""
    best: _Step | None = None
    least = balance.least_gain
    for tried, (bound, pod) in enumerate(candidates.ranked(balance)):
        is_beaten = best is not None and best.gain >= bound
        if tried >= ENOUGH_TRIED or is_beaten or bound < least:
            break
        found = _try(mover, balance, pod)
        if found is not None and found.gain >= least and (best is None or found.gain > best.gain):
            best = found
    return best


def _try(mover: Mover, balance: Balance, pod: Pod) -> _Step | None:
    """The best target of a pod, if any."""
    source, size = mover.table.row_of[pod.node_name], size_of(pod)
    with mover.lifted(pod) as waiting:
        rows = mover.landing_rows(waiting, source)
    if not len(rows):
        return None
    coming = balance.gains(size)[rows]
    going = float(balance.gains(tuple(-amount for amount in size))[source])
    place = int(np.argmax(coming))
    return _Step(pod, int(rows[place]), going + float(coming[place]))


def size_of(pod: Pod) -> Size:
    """The pod's usage of each main resource."""
    return tuple(pod.usage.get(name, 0) for name in MAIN_RESOURCES)
