"""First fit: nodes for pods in decreasing size, each as the cheapest type that holds its pods.

This is how Karpenter chooses nodes for a batch of pods: a new node stays open for every type that can hold what it has
so far, the next pod goes to the first node with room, and in the end each node is the cheapest of its types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..table import Bools, Ints
from .fleet import NodeOption


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
    total = np.array([one.free for one in options]).max(axis=0, initial=1)
    size = (requests / np.maximum(total, 1)).max(axis=1)
    for number in np.argsort(-size, kind="stable"):
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
        """Put pods of one class on open nodes, then on new ones."""
        for claim in self._claims:
            if count <= 0:
                return
            count -= self._fill(claim, number, count)
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

    def _fill(self, claim: _Claim, number: int, count: int) -> int:
        """Add as many copies as a type of the node can hold."""
        need = self._requests[number]
        used = need > 0
        room = (self._free - claim.used)[:, used] // need[used]
        fits = np.minimum(room.min(axis=1), self._caps[:, number] - claim.copies[number])
        fits = np.where(claim.options & self._accepts[:, number], fits, 0)
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
