"""Empty nodes: free whole nodes, as many as possible, or the most expensive ones.

A node is emptied completely or not at all: its pods are moved one after the other to the fullest
nodes that accept them, and all moves are undone when one pod fits nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ...api.node import Node
from ...api.pod import Pod
from ...cluster.memory.absent_owners import stays_with_node
from ...errors import InputError
from ...sim.totals import MAIN_RESOURCES
from ...table import Ints, NodeTable
from ..node_use import utilisation
from .even_use import size_of
from .move_plan import Move
from .trial_moves import Mover

COST = "bayplan.dev/cost"
"""Node annotation with its cost, in any unit that is the same for all nodes."""
PATIENCE = 50
"""Stop after this many consecutive nodes that could not be emptied."""
GIB_PER_CORE = 4
GIB = 1 << 30

Price = Callable[[Node], float]


def cost_of(node: Node) -> float:
    """The node's cost annotation; else 1 per core plus 1 per four GiB of memory. Raises InputError
    for no number."""
    text = node.annotations.get(COST)
    if text is None:
        memory = node.allocatable.get("memory", 0) / GIB
        return node.allocatable.get("cpu", 0) / 1000 + memory / GIB_PER_CORE
    try:
        cost = float(text)
    except ValueError:
        cost = -1.0
    if not 0 <= cost < np.inf:
        where = f"node {node.name}: metadata.annotations[{COST}]"
        raise InputError(f'{where}: expected a number that is not negative; got "{text}"')
    return cost


class NodesInUse:
    """The nodes with pods to move, followed from move to move."""

    def __init__(self, table: NodeTable, price: Price) -> None:
        counts = [sum(not stays_with_node(pod) for pod in pods.values()) for pods in table.pods]
        self.loads: Ints = np.where(table.live, np.array(counts, dtype=np.int64), 0)
        """int64 per row: pods other than daemons and static pods."""
        in_use = self.loads > 0
        prices = [
            price(node) if is_used and node is not None else 0.0
            for node, is_used in zip(table.nodes, in_use.tolist(), strict=True)
        ]
        self.prices = np.array(prices)
        self._names = np.argsort(np.argsort(np.array(table.names, dtype=np.str_)))
        """Rank of each row by the name of its node."""

    def total(self) -> float:
        """The price of all nodes in use."""
        return float(sum(self.prices[self.loads > 0].tolist()))

    def move_all(self, source: int, targets: Iterable[int]) -> None:
        """Note that the pods of a row are on other rows now."""
        self.loads[source] = 0
        for row in targets:
            self.loads[row] += 1

    def ranked(self, table: NodeTable, most: int) -> Iterator[int]:
        """The rows in use with a price and at most `most` pods: highest price per move, then lowest utilisation."""
        rows = np.flatnonzero((self.loads > 0) & (self.loads <= most) & (self.prices > 0))
        shares = np.add.reduce([utilisation(table, name)[rows] for name in MAIN_RESOURCES])
        per_move = -self.prices[rows] / self.loads[rows]
        yield from rows[np.lexsort((self._names[rows], shares, per_move))].tolist()


def emptying_moves(mover: Mover, most: int, price: Price) -> Iterator[Move]:
    """The moves that empty nodes, highest price per move first."""
    failures, left = 0, most
    tried: set[int] = set()
    in_use = NodesInUse(mover.table, price)
    while failures < PATIENCE:
        row = _next_node(mover, in_use, left, tried)
        if row is None:
            return
        tried.add(row)
        moves = _empty(mover, row, in_use)
        failures = 0 if moves else failures + 1
        left -= len(moves)
        yield from moves


def _next_node(mover: Mover, in_use: NodesInUse, left: int, tried: set[int]) -> int | None:
    """The node to empty next, all of whose pods may be moved."""
    ranked = in_use.ranked(mover.table, left)
    return next((row for row in ranked if row not in tried and _to_move(mover, row)), None)


def _to_move(mover: Mover, row: int) -> list[Pod]:
    """The pods to move for the node to be empty, largest first; none when one may not be moved."""
    pods = [pod for pod in mover.table.pods[row].values() if not stays_with_node(pod)]
    if not all(map(mover.is_movable, pods)):
        return []
    return sorted(pods, key=lambda pod: (size_of(pod), pod.key), reverse=True)


def _empty(mover: Mover, source: int, in_use: NodesInUse) -> list[Move]:
    """Move all pods of a node; undo all when one fits nowhere."""
    table = mover.table
    before = in_use.total()
    placed: list[tuple[Pod, int, str]] = []
    for pod in _to_move(mover, source):
        landed = _land(mover, pod, source, in_use) if mover.is_movable(pod) else None
        if landed is None:
            mover.put_back((moved, table.names[source]) for moved, _, _ in reversed(placed))
            return []
        placed.append((pod, *landed))
    in_use.move_all(source, (row for _, row, _ in placed))
    after = in_use.total()
    name, count = table.names[source], len(placed)
    return [
        Move(
            pod.key,
            name,
            table.names[row],
            before,
            after if i == count else before,
            choice,
            f"{name} is empty then" if i == count else f"{i} of {count} moves that empty {name}",
        )
        for i, (pod, row, choice) in enumerate(placed, 1)
    ]


def _land(mover: Mover, pod: Pod, source: int, in_use: NodesInUse) -> tuple[int, str] | None:
    """Put the pod on the fullest node in use that accepts it; return its row and the scheduler's
    own choice."""
    table = mover.table
    with mover.lifted(pod) as waiting:
        rows = mover.landing_rows(waiting, source)
        rows = rows[in_use.loads[rows] > 0]
        if not len(rows):
            return None
        shares = np.add.reduce([utilisation(table, name)[rows] for name in MAIN_RESOURCES])
        row = int(rows[int(np.argmax(shares))])
        choice = mover.choice(waiting, row)
        mover.put(waiting, row)
    return row, choice
