"""SelectHost: the node among those with the highest score.

Mirrors prioritizeNodes/selectHost of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from ..engine import Decision
from ..table import Bools, Ints, NodeTable


class Ordered(Protocol):
    """A search that visited the nodes in a given order."""

    @property
    def order(self) -> Ints: ...


class TieBreak(ABC):
    """Chooses one of several equally good nodes."""

    reads_others = False
    """Whether the choice depends on nodes besides the equally good ones."""

    @abstractmethod
    def choose(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        """Position in `rows` (the feasible rows) of the winner; `tied` are the positions to choose from.

        `search.order` has the rows in the order of the cycle.
        """

    def restart(self) -> None:  # noqa: B027  # most have no state
        """Begin again with the seed, if there is one."""

    def choose_scored(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        """Choose between nodes that an extender scored."""
        return self.choose(tied, rows, table, search)

    def ranks(self, table: NodeTable) -> Ints:
        """int64 per row: its rank, for many choices at once; the lowest of equally good rows wins."""
        return np.arange(len(table), dtype=np.int64)

    def choose_any(self, tied: Ints) -> int:
        """Choose between equally good items other than nodes, which are in the order of their names."""
        return int(tied[0])

    def choose_best(self, decision: Decision, table: NodeTable, search: Ordered) -> int:
        """The row that wins by a decision of the engine."""
        best = decision.best
        if best.ties == 1:
            return best.row
        totals = decision.ranked.totals()
        rows = np.flatnonzero(totals >= 0)
        tied = np.flatnonzero(totals[rows] == totals[best.row])
        return int(rows[self.choose(tied, rows, table, search)])


class RandomTies(TieBreak):
    """Chooses at random, by a seeded generator, as kube-scheduler up to v1.34 does.

    If many rows are tied, rows are drawn until one of them is hit; if few are, one is drawn by its position. `choose`
    and `choose_best` draw the same row.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.restart()

    def restart(self) -> None:
        self._draw = random.Random(self._seed).random

    def ranks(self, table: NodeTable) -> Ints:
        seed = int(self._draw() * 2**32)
        return np.random.default_rng(seed).permutation(len(table)).astype(np.int64)

    def choose_any(self, tied: Ints) -> int:
        return int(tied[int(self._draw() * len(tied))])

    def choose(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        count, size = len(tied), len(table)
        if _are_few(count, size):
            return int(tied[int(self._draw() * count)])
        among = rows[tied]
        marks = np.zeros(size, dtype=np.bool_)
        marks[among] = True
        is_tied = marks.tobytes()  # bytes are quicker to index one at a time
        while not is_tied[row := int(self._draw() * size)]:
            pass
        return int(tied[int(among.searchsorted(row))])

    def choose_best(self, decision: Decision, table: NodeTable, search: Ordered) -> int:
        best = decision.best
        if best.ties == 1:
            return best.row
        size, total_at = len(table), decision.ranked.total_at
        if _are_few(best.ties, size):
            return decision.ranked.nth_best(int(self._draw() * best.ties))
        highest = total_at(best.row)
        while total_at(row := int(self._draw() * size)) != highest:
            pass
        return row


def _are_few(count: int, size: int) -> bool:
    """Whether it takes more than a few draws to hit one of `count` rows among `size`."""
    return 4 * count < size


class FirstByName(TieBreak):
    """Chooses the smallest name, whatever the order of events."""

    def __init__(self) -> None:
        self._version = -1
        self._rank: Ints = np.zeros(0, dtype=np.int64)

    def choose(self, tied: Ints, rows: Ints, table: NodeTable, search: Ordered) -> int:
        return int(tied[np.argmin(self.ranks(table)[rows[tied]])])

    def choose_best(self, decision: Decision, table: NodeTable, search: Ordered) -> int:
        best = decision.best
        if best.ties == 1:
            return best.row
        totals = decision.ranked.totals()
        tied = (totals == totals[best.row]).nonzero()[0]
        return int(tied[self.ranks(table)[tied].argmin()])

    def ranks(self, table: NodeTable) -> Ints:
        """int64 per row: its position in the order of names."""
        if self._version != table.node_changes.version:
            by_name = sorted(range(len(table)), key=table.names.__getitem__)
            self._rank = np.empty(len(table), dtype=np.int64)
            self._rank[by_name] = np.arange(len(table))
            self._version = table.node_changes.version
        return self._rank


def select_host(
    totals: Ints,
    rows: Ints,
    table: NodeTable,
    search: Ordered,
    ties: TieBreak,
    is_scored: Bools | None = None,
) -> int:
    """Position in `rows` of the best; `is_scored` marks rows that an extender scored, which win among equal ones."""
    best = best_positions(totals)
    if len(best) == 1:
        return int(best[0])
    scored = best[is_scored[best]] if is_scored is not None else best[:0]
    if len(scored):
        return ties.choose_scored(scored, rows, table, search)
    return ties.choose(best, rows, table, search)


def best_positions(totals: Ints) -> Ints:
    """Positions of the highest total."""
    positions: Ints = (totals == totals[totals.argmax()]).nonzero()[0]
    return positions
