"""Emptying: free whole nodes, as many as possible, or the most expensive ones.

A node is emptied completely or not at all: its pods are moved one after the other to the fullest
nodes that accept them, and all moves are undone when one pod fits nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...api.node import Node
from ...api.pod import Pod
from ...errors import InputError
from ...sim.totals import MAIN_RESOURCES
from ...table import Bools, NodeTable
from ..owners import is_daemon, is_static
from ..room import utilisation
from .moving import Mover
from .plan import Move
from .spreading import size_of

COST = "bayplan.dev/cost"
"""Node annotation with its cost, in any unit that is the same for all nodes."""
PATIENCE = 50
"""Stop after this many consecutive nodes that could not be emptied."""
GIB_PER_CORE = 4
GIB = 1 << 30

Price = Callable[[Node], float]


def one_each(node: Node) -> float:
    """Price 1 for every node."""
    return 1.0


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


def total_price(table: NodeTable, price: Price) -> float:
    """The total price of nodes that run pods other than daemons and static pods."""
    nodes = (table.nodes[row] for row in np.flatnonzero(_in_use(table)).tolist())
    return sum(price(node) for node in nodes if node is not None)


def emptying_moves(mover: Mover, most: int, price: Price) -> Iterator[Move]:
    """The moves that empty nodes, highest price per move first."""
    failures, left = 0, most
    tried: set[int] = set()
    while failures < PATIENCE:
        row = _next_node(mover, price, left, tried)
        if row is None:
            return
        tried.add(row)
        moves = _empty(mover, row, price)
        failures = 0 if moves else failures + 1
        left -= len(moves)
        yield from moves


def _next_node(mover: Mover, price: Price, left: int, tried: set[int]) -> int | None:
    """The node to empty next: highest price per move, then lowest utilisation."""
    table = mover.table
    shares = sum(utilisation(table, name) for name in MAIN_RESOURCES)
    best: tuple[float, float, str] | None = None
    chosen = None
    for row in np.flatnonzero(_in_use(table)).tolist():
        node = table.nodes[row]
        if row in tried or node is None:
            continue
        pods = _to_move(mover, row)
        if pods is None or len(pods) > left:
            continue
        rank = (-price(node) / len(pods), float(np.asarray(shares)[row]), node.name)
        if best is None or rank < best:
            best, chosen = rank, row
    return chosen


def _to_move(mover: Mover, row: int) -> list[Pod] | None:
    """The pods to move for the node to be empty, largest first; None when one may not be moved."""
    pods = [pod for pod in mover.pods_at(row) if not (is_daemon(pod) or is_static(pod))]
    if not pods or not all(map(mover.is_movable, pods)):
        return None
    return sorted(pods, key=lambda pod: (size_of(pod), pod.key), reverse=True)


def _empty(mover: Mover, source: int, price: Price) -> list[Move]:
    """Move all pods of a node; undo all when one fits nowhere."""
    table = mover.table
    before = total_price(table, price)
    placed: list[tuple[Pod, int, str]] = []
    for pod in _to_move(mover, source) or ():
        landed = _land(mover, pod, source) if mover.is_movable(pod) else None
        if landed is None:
            mover.put_back((moved, table.names[source]) for moved, _, _ in reversed(placed))
            return []
        placed.append((pod, *landed))
    after = total_price(table, price)
    last = len(placed) - 1
    return [
        Move(
            pod.key,
            table.names[source],
            table.names[row],
            before,
            after if i == last else before,
            choice,
            f"{table.names[source]} is empty then" if i == last else "",
        )
        for i, (pod, row, choice) in enumerate(placed)
    ]


def _land(mover: Mover, pod: Pod, source: int) -> tuple[int, str] | None:
    """Put the pod on the fullest node in use that accepts it; return its row and the scheduler's
    own choice."""
    table = mover.table
    with mover.lifted(pod) as waiting:
        rows = mover.landing_rows(waiting, source)
        rows = rows[_in_use(table)[rows]]
        if not len(rows):
            return None
        shares = np.add.reduce([utilisation(table, name)[rows] for name in MAIN_RESOURCES])
        row = int(rows[int(np.argmax(shares))])
        choice = mover.choice(waiting, row)
        mover.put(waiting, row)
    return row, choice


def _in_use(table: NodeTable) -> Bools:
    """bool per row: the node runs pods other than daemons and static pods."""
    return np.array(
        [
            bool(live) and any(not (is_daemon(pod) or is_static(pod)) for pod in pods.values())
            for live, pods in zip(table.live.tolist(), table.pods, strict=False)
        ],
        dtype=np.bool_,
    )
