"""First fit: nodes for pods in decreasing size, each as the cheapest type that holds its pods.

This is how Karpenter chooses nodes for a batch of pods. They are sorted by cpu, then memory, the largest first; a new
node stays open for every type that can hold what it has so far; the next pod goes to the node with the fewest pods of
those that have room; in the end each node is the cheapest of its types. Zones and the weights of pools are left out
here: a fleet that lacks something for them is repaired afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..table import Bools, Ints
from .fleet import CPU_COLUMN, MEMORY_COLUMN, NodeOption


@dataclass(slots=True)
class _Claim:
    """A node that has no type yet."""

    used: Ints
    options: Bools
    copies: Ints


def first_fit(
    options: Sequence[NodeOption],
    requests: Ints,
    demand: Ints,
    start: Mapping[int, int] | None = None,
    allowed: Bools | None = None,
) -> Counter[int]:
    """Nodes per option for `demand`, pods per class; pods that pools leave no node for are left out.

    `start` are nodes that there are already, which count for the limits of their pools. `allowed` options may be used.
    """
    book = _Book(options, requests, Counter(start or {}), allowed)
    for number in np.lexsort((-requests[:, MEMORY_COLUMN], -requests[:, CPU_COLUMN])):
        book.place(int(number), int(demand[number]))
    return book.close()


class _Book:
    """The open nodes."""

    def __init__(
        self,
        options: Sequence[NodeOption],
        requests: Ints,
        start: Counter[int],
        allowed: Bools | None,
    ) -> None:
        self._options, self._requests = options, requests
        self._free = np.array([one.free for one in options])
        self._accepts = np.array([one.accepts for one in options])
        self._caps = np.array([one.caps for one in options])
        self._prices = np.array([one.price for one in options])
        self._allowed = np.ones(len(options), dtype=np.bool_) if allowed is None else allowed
        self._claims: list[_Claim] = []
        self._start = start

    def place(self, number: int, count: int) -> None:
        """Put pods of one class on open nodes, those with the fewest pods first, then on new ones."""
        fits = [int(self._fits(claim, number).max(initial=0)) for claim in self._claims]
        for claim, more in zip(self._claims, self._levelled(fits, count), strict=True):
            if more > 0:
                count -= self._fill(claim, number, more)
        while count > 0:
            claim = _Claim(
                np.zeros_like(self._free[0]),
                self._allowed & self._open_options(),
                np.zeros(len(self._requests), dtype=np.int64),
            )
            placed = self._fill(claim, number, count)
            if placed <= 0:
                return  # the pools are used up
            self._claims.append(claim)
            count -= placed

    def close(self) -> Counter[int]:
        """Choose the cheapest type of each node."""
        chosen: Counter[int] = Counter()
        for claim in self._claims:
            prices = np.where(claim.options, self._prices, np.inf)
            chosen[int(prices.argmin())] += 1
        return chosen

    def _levelled(self, fits: Sequence[int], count: int) -> list[int]:
        """How many of `count` pods each node gets, if the one with the fewest pods that has room is always next."""
        has = np.array([int(claim.copies.sum()) for claim in self._claims], dtype=np.int64)
        most = np.array(fits, dtype=np.int64)
        count = min(count, int(most.sum()))
        low, high = 0, int((has + most).max(initial=0))
        while low < high:  # the highest level that `count` pods reach on every node with room
            level = (low + high + 1) // 2
            if np.clip(level - has, 0, most).sum() <= count:
                low = level
            else:
                high = level - 1
        given = np.clip(low - has, 0, most)
        next_ones = np.flatnonzero((has + given <= low) & (given < most))
        given[next_ones[: count - int(given.sum())]] += 1
        return [int(one) for one in given]

    def _fits(self, claim: _Claim, number: int) -> Ints:
        """How many copies each type of the node can hold besides what it has."""
        need = self._requests[number]
        used = need > 0
        room = (self._free - claim.used)[:, used] // need[used]
        fits = np.minimum(room.min(axis=1), self._caps[:, number] - claim.copies[number])
        return np.where(claim.options & self._accepts[:, number], fits, 0)

    def _fill(self, claim: _Claim, number: int, count: int) -> int:
        """Add as many copies as a type of the node can hold."""
        need, fits = self._requests[number], self._fits(claim, number)
        placed = min(int(fits.max(initial=0)), count)
        if placed > 0:
            claim.options = claim.options & (fits >= placed)
            claim.used = claim.used + need * placed
            claim.copies[number] += placed
        return placed

    def _open_options(self) -> Bools:
        """The options whose pools may have one more node, if each open node were the cheapest it can be."""
        counts = self._start + self.close()
        return np.array([self._is_open(one, counts) for one in self._options], dtype=np.bool_)

    def _is_open(self, option: NodeOption, counts: Counter[int]) -> bool:
        pool = option.pool
        if pool.maximum is None and not pool.limits:
            return True
        members = [
            (self._options[i], n) for i, n in counts.items() if self._options[i].pool is pool
        ]
        if pool.maximum is not None and sum(n for _, n in members) >= pool.maximum:
            return False
        use = {
            name: sum(one.type.capacity.get(name, 0) * n for one, n in members)
            for name in pool.limits
        }
        return pool.fits_limits(use, option.type)
