"""Over time: the measures of a run at each of its moments, as arrays and as series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from ...api.node import Node
from ...api.pod import Pod
from ...cluster.memory.absent_owners import stays_with_node
from ...table import Bools, Ints
from ..totals import MAIN_RESOURCES, PODS
from ..use_over_time import PENDING, UseMove, UseSeries
from .amounts import Floats, NodeAmounts, shares_of
from .fragmentation import RequestMix, unusable

NO_NODE = -1
NODE, ON_NODE, WAITING = range(3)
"""Subject of a move: a node, a pod on a node, a pod without one."""


class RunMoves(msgspec.Struct, frozen=True):
    """Moves of a run, one row each, in order: nodes, pods on nodes and pods without one.

    Amounts (moves x resources, int64) are negative for pods that go.
    """

    resources: list[str]
    times_s: Floats
    node: Ints
    """The number of the node that the move is about; -1 for a pod without a node."""
    offered: Ints
    used: Ints
    waiting: Ints
    """Changes of the number of pods without a node."""
    nodes: Ints
    """1 and -1 for nodes."""
    cordons: Ints
    """1 and -1 for cordoned nodes."""
    workload: Ints
    """1 and -1 for pods on nodes other than daemons and static pods."""
    pending: Ints
    """1 and -1 for pods without a node."""

    @staticmethod
    def of(moves: Iterable[UseMove]) -> RunMoves:
        """The moves as arrays, with cpu and memory, the resources that pods request and nodes have, and `pods`."""
        moves = list(moves)
        resources = known_resources(obj for _, obj, _ in moves)
        numbers: dict[str, int] = {}
        kinds = _Kinds(resources[:-1])
        rows: list[tuple[int, int, int, int, int, int]] = []
        for _, obj, sign in moves:
            if isinstance(obj, Node):
                kind = kinds.number(obj.allocatable, obj.allocatable.get(PODS, 0))
                node = numbers.setdefault(obj.name, len(numbers))
                rows.append((NODE, node, kind, sign, obj.unschedulable, 0))
                continue
            kind = kinds.number(obj.usage, 1)
            if obj.node_name:
                node = numbers.setdefault(obj.node_name, len(numbers))
                work = not stays_with_node(obj)
                rows.append((ON_NODE, node, kind, sign, 0, work))
            else:
                rows.append((WAITING, NO_NODE, kind, sign, 0, 0))
        columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        what, node_of, kind_of, signs, is_cordoned, is_work = columns
        signed = kinds.amounts()[kind_of] * signs[:, None]
        return RunMoves(
            resources,
            times_s=np.array([at_s for at_s, _, _ in moves]),
            node=node_of,
            offered=np.where((what == NODE)[:, None], signed, 0),
            used=np.where((what == ON_NODE)[:, None], signed, 0),
            waiting=np.where((what == WAITING)[:, None], signed, 0),
            nodes=np.where(what == NODE, signs, 0),
            cordons=signs * is_cordoned,
            workload=signs * is_work,
            pending=np.where(what == WAITING, signs, 0),
        )

    def ends_moment(self) -> Bools:
        """bool per move: whether it is the last one of its time."""
        times = self.times_s
        return np.append(times[1:] != times[:-1], True)[: len(times)]

    def peak(self, values: Ints | Floats) -> float:
        """The highest of the values per move at the end of a moment."""
        return float(values[self.ends_moment()].max()) if len(values) else 0.0

    def nodes_used(self) -> Ints:
        """int64 per move: how many nodes have pods besides daemons and static pods after it."""
        by_node = _ByNode.of(self.node)
        is_used = (by_node.running(self.nodes) > 0) & (by_node.running(self.workload) > 0)
        return by_node.total(is_used.astype(np.int64)).astype(np.int64)

    def share(self, amounts: Ints, resource: str) -> Floats:
        """float64 per move: the amount after it as a share of the nodes' capacity; 0 without capacity."""
        column = self.resources.index(resource)
        offered = np.cumsum(self.offered[:, column])
        return shares_of(np.cumsum(amounts[:, column]), offered)

    def fragmentation(self, mix: RequestMix, resource: str) -> tuple[Floats, Floats]:
        """float64 per move: the expected unusable share of the free amount, and the usable share of all, after it."""
        by_node = _ByNode.of(self.node)
        columns = {name: i for i, name in enumerate(self.resources)}
        states = NodeAmounts(
            {name: by_node.running(self.offered[:, i]) for name, i in columns.items()},
            {name: by_node.running(self.used[:, i]) for name, i in columns.items()},
            by_node.running(self.cordons) == 0,
        )
        lost = by_node.total(unusable(states, mix, resource))
        free = by_node.total(states.free(resource))
        offered = np.cumsum(self.offered[:, columns[resource]])
        return shares_of(lost, free), shares_of(free - lost, offered)


class _Kinds:
    """The distinct amounts of pods and nodes: equal pods share one mapping, so these are few."""

    def __init__(self, resources: Sequence[str]) -> None:
        self._resources = resources
        self._numbers: dict[int, int] = {}
        self._held: list[Mapping[str, int]] = []  # keeps the ids of mappings valid
        self._amounts: list[tuple[int, ...]] = []

    def number(self, given: Mapping[str, int], pods: int) -> int:
        """The number of these amounts; `pods` is that of pods."""
        number = self._numbers.get(id(given))
        if number is None:
            number = self._numbers[id(given)] = len(self._amounts)
            self._held.append(given)
            self._amounts.append((*(given.get(name, 0) for name in self._resources), pods))
        return number

    def amounts(self) -> Ints:
        """int64 per number and resource, with pods at the end."""
        return np.array(self._amounts, dtype=np.int64).reshape(-1, len(self._resources) + 1)


class _ByNode(msgspec.Struct, frozen=True):
    """Moves sorted by node, in their order for each node."""

    order: Ints
    first: Bools
    """Whether a move is the first of its node."""
    size: int
    """The number of moves, including moves without a node."""

    @staticmethod
    def of(node: Ints) -> _ByNode:
        order = np.argsort(node, kind="stable")
        order = order[np.searchsorted(node[order], 0) :]  # without moves that have no node
        here = node[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = here[1:] != here[:-1]
        return _ByNode(order, first, len(node))

    def running(self, deltas: Ints) -> Ints:
        """The sum of each node's moves so far, in sorted order."""
        sums = np.cumsum(deltas[self.order])
        starts = np.flatnonzero(self.first)
        before = np.concatenate(([0], sums))[starts]
        lengths = np.diff(np.append(starts, len(sums)))
        running: Ints = sums - np.repeat(before, lengths)
        return running

    def total(self, values: Ints | Floats) -> Floats:
        """The sum over all nodes after each move, in the order of the moves, from the nodes' values in sorted order."""
        before = np.concatenate(([0], values[:-1])) if len(values) else values
        deltas = values - np.where(self.first, 0, before)
        changes = np.zeros(self.size)
        changes[self.order] = deltas
        total: Floats = np.cumsum(changes)
        return total


def known_resources(objects: Iterable[Pod | Node]) -> list[str]:
    """Cpu, memory, the other resources that nodes have and pods request, and `pods` at the end."""
    offered: dict[str, None] = {}
    asked: set[str] = set()
    for obj in objects:
        if isinstance(obj, Node):
            offered.update(dict.fromkeys(obj.allocatable))
        else:
            asked.update(obj.usage)
    others = (name for name in offered if name in asked and name != PODS)
    return [*dict.fromkeys((*MAIN_RESOURCES, *others)), PODS]


def series_of(moves: RunMoves, end_s: float, mix: RequestMix) -> Iterator[UseSeries]:
    """Each measure that changes over the time of a run: shares per resource, pending pods, nodes in use."""
    if not end_s or not len(moves.times_s):
        return
    for name in moves.resources[:-1]:
        unusable_share, usable = moves.fragmentation(mix, name)
        yield _series(f"{name}Utilisation", moves, moves.share(moves.used, name), end_s)
        requested = moves.share(moves.used + moves.waiting, name)
        yield _series(f"{name}Requested", moves, requested, end_s)
        yield _series(f"{name}Fragmentation", moves, unusable_share, end_s)
        yield _series(f"{name}Usable", moves, usable, end_s)
    yield _series(PENDING, moves, np.cumsum(moves.pending), end_s)
    yield _series("nodesUsed", moves, moves.nodes_used(), end_s)


def use_series(moves: RunMoves, end_s: float) -> list[UseSeries]:
    """A series for each resource that pods use, cpu and memory first, and one of the pending pods."""
    if not len(moves.times_s):
        return [UseSeries(PENDING, [0.0], [0.0], end_s)]
    found = [
        _series(name, moves, moves.share(moves.used, name), end_s)
        for i, name in enumerate(moves.resources[:-1])
        if moves.offered[:, i].any() and (name in MAIN_RESOURCES or moves.used[:, i].any())
    ]
    return [*found, _series(PENDING, moves, np.cumsum(moves.pending), end_s)]


def _series(name: str, moves: RunMoves, values: Floats | Ints, end_s: float) -> UseSeries:
    """The values as a series: simultaneous events are one change."""
    found = np.asarray(values, dtype=np.float64)
    last = moves.ends_moment()
    times, found = moves.times_s[last], found[last]
    if times[0] > 0:
        times, found = np.concatenate(([0.0], times)), np.concatenate(([0.0], found))
    kept = np.concatenate(([True], found[1:] != found[:-1]))
    return UseSeries(name, times[kept].tolist(), found[kept].tolist(), end_s)
