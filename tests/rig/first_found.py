"""FirstFound: the tie-break of kube-scheduler v1.36 where the order of nodes is known."""

from __future__ import annotations

import random

import numpy as np

from bayplan.scheduler import TieBreak
from bayplan.scheduler.select_host import Ordered
from bayplan.table import Ints, NodeTable


class FirstFound(TieBreak):
    """Chooses the node on top of kube-scheduler v1.36's heap, with nodes found in order.

    A heap made of a list has, of several equal maxima, the first in pre-order of the heap's tree on top: the root
    before its left subtree before its right. Position i of the list sits in the tree where the binary digits of i+1,
    after the leading one, lead: 0 is left, 1 is right. Pre-order compares these paths digit by digit.

    There, nodes that an extender scored have a random number in addition to their total, and the highest wins.
    """

    reads_others = True

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose_scored(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        return int(tied[self._random.randrange(len(tied))])

    def choose(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        found = np.zeros(len(table), dtype=np.int64)
        found[rows] = 1
        position = np.zeros(len(table), dtype=np.int64)
        order = search.order
        position[order] = np.cumsum(found[order]) - 1
        return int(tied[np.lexsort(_paths(position[rows[tied]]))[0]])


def _paths(positions: Ints) -> tuple[Ints, Ints]:
    """Sort keys (the last is the first): the path to a heap position, and its depth."""
    depth = np.frexp((positions + 1).astype(np.float64))[1].astype(np.int64) - 1
    path = (positions + 1) - (1 << depth)
    return depth, path << (62 - depth)
