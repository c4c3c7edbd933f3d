"""First fit: nodes for pods in decreasing size, each as the cheapest type that holds its pods.

This is how Karpenter chooses nodes for a batch of pods. They are sorted by cpu, then memory, the largest first; a new
node stays open for every type that can hold what it has so far; the next pod goes to the node with the fewest pods of
those that have room; in the end each node is the cheapest of its types. Zones and the weights of pools are left out
here: a fleet that lacks something for them is repaired afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..table import Bools, Ints
from .fleet import (
    CPU_COLUMN,
    MEMORY_COLUMN,
    Fleet,
    NodeGroupKey,
    NodeOption,
    fill_level,
    pools_allow,
    spread_over_zones,
)
from .fleet_check import FleetVerdict
from .node_probe import Probe


@dataclass(slots=True)
class _Claim:
    """A node that has no type yet."""

    used: Ints
    options: Bools
    copies: Ints
    cheapest: int = -1
    """The cheapest of its options."""


def pack_first_fit(
    options: Sequence[NodeOption],
    requests: Ints,
    demand: Ints,
    start: Mapping[int, int] | None = None,
) -> tuple[Counter[int], bool]:
    """Nodes per option for `demand`, pods per class, and whether every pod has a node.

    `start` are existing nodes, which count for the limits of their pools. Pods for which the pools have no more nodes
    are left out.
    """
    book, is_complete = _Book(options, requests, Counter(start or {})), True
    for number in np.lexsort((-requests[:, MEMORY_COLUMN], -requests[:, CPU_COLUMN])):
        if demand[number] > 0:
            is_complete &= book.place(int(number), int(demand[number]))
    return +book.chosen, is_complete


class _Book:
    """The open nodes."""

    def __init__(self, options: Sequence[NodeOption], requests: Ints, start: Counter[int]) -> None:
        self._options, self._requests = options, requests
        self._free = np.array([one.free for one in options])
        self._accepts = np.array([one.accepts for one in options])
        self._caps = np.array([one.caps for one in options])
        self._prices = np.array([one.price for one in options])
        self._claims: list[_Claim] = []
        self._start = start
        self.chosen: Counter[int] = Counter()
        """Nodes per option, each as the cheapest that it can be."""
        self._has_limits = any(one.pool.maximum is not None or one.pool.limits for one in options)

    def place(self, number: int, count: int) -> bool:
        """Put pods of one class on open nodes, those with the fewest pods first, then on new ones; False if some have
        no node.
        """
        fits = [int(self._fits(claim, number).max(initial=0)) for claim in self._claims]
        for claim, more in zip(self._claims, self._levelled(fits, count), strict=True):
            if more > 0:
                count -= self._fill(claim, number, more)
        while count > 0:
            claim = _Claim(
                np.zeros_like(self._free[0]),
                self._open_options(),
                np.zeros(len(self._requests), dtype=np.int64),
            )
            placed = self._fill(claim, number, count)
            if placed <= 0:
                return False  # the pools are used up
            self._claims.append(claim)
            count -= placed
        return True

    def _levelled(self, fits: Sequence[int], count: int) -> list[int]:
        """Number of `count` pods that each node gets, if the one with the fewest pods that has room is always next."""
        has = np.array([int(claim.copies.sum()) for claim in self._claims], dtype=np.int64)
        most = np.array(fits, dtype=np.int64)
        count = min(count, int(most.sum()))
        low = fill_level(has, most, count)
        given = np.clip(low - has, 0, most)
        next_ones = np.flatnonzero((has + given <= low) & (given < most))
        given[next_ones[: count - int(given.sum())]] += 1
        return [int(one) for one in given]

    def _fits(self, claim: _Claim, number: int) -> Ints:
        """Number of copies that each type of the node can hold besides its pods."""
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
            self._choose(claim)
        return placed

    def _choose(self, claim: _Claim) -> None:
        """Count a node as the cheapest of its types."""
        if claim.cheapest >= 0:
            self.chosen[claim.cheapest] -= 1
        claim.cheapest = int(np.where(claim.options, self._prices, np.inf).argmin())
        self.chosen[claim.cheapest] += 1

    def _open_options(self) -> Bools:
        """The options whose pools may have one more node if each open node becomes its cheapest type."""
        if not self._has_limits:
            return np.ones(len(self._options), dtype=np.bool_)
        counts = self._start + self.chosen
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


FIRST_PART = 8
"""Divisor of the number of pods for which nodes are added at first."""


def grow(
    verdict: FleetVerdict,
    probe: Probe,
    verify: Callable[[Fleet], FleetVerdict],
    is_over: Callable[[], bool],
) -> FleetVerdict:
    """Verify ever larger fleets until one is good; returns it, or the fleet with the fewest pending pods."""
    best, pods, part = verdict, int(probe.demand.sum()), FIRST_PART
    while not best.is_good and not is_over():
        left = int(verdict.missing.sum())
        fleet = with_more(verdict, pods // (part * left), probe)
        is_used_up = fleet is None
        fleet = fleet or with_larger(verdict.fleet, probe)
        if fleet is None:
            break
        verdict = verify(fleet)
        best = min(best, verdict, key=lambda one: len(one.pending))
        if part == 1 and not is_used_up and verdict.missing.sum() >= left:
            break  # one more node per pod did not help
        part = max(part // 2, 1)
    return best


def with_more(
    verdict: FleetVerdict, times: int, probe: Probe, requests: Ints | None = None
) -> Fleet | None:
    """A fleet with nodes for `times` times the pending pods, at most for all pods; None if pools have no further node
    for them.
    """
    options, fleet = probe.options, verdict.fleet
    requests = probe.requests if requests is None else requests
    most = int(probe.demand.sum()) // max(int(verdict.missing.sum()), 1)
    need = verdict.missing * max(min(times, most), 1)
    added, _ = pack_first_fit(options, requests, need, start=fleet.by_option())
    if not added:
        return None
    return spread_over_zones(added, options, start=fleet, within=verdict.zones)


def with_larger(fleet: Fleet, probe: Probe) -> Fleet | None:
    """A fleet with half of the nodes of each type replaced by the largest that takes the same pods; None if there is no
    larger one, or the pools do not allow it."""
    larger = Fleet(fleet)
    for group, count in fleet.items():
        largest = NodeGroupKey(_largest(group, probe), group.zone)
        larger[group] -= (count + 1) // 2
        larger[largest] += (count + 1) // 2
    larger = Fleet(+larger)
    if larger.key() == fleet.key() or not pools_allow(larger, probe.options):
        return None
    return larger


def _largest(group: NodeGroupKey, probe: Probe) -> int:
    """The most expensive type of the pool with at least as much of each resource."""
    one = probe.options[group.option]
    found = [
        i
        for i, other in enumerate(probe.options)
        if other.pool is one.pool
        and group.zone in other.zones
        and (other.free >= one.free).all()
        and (other.accepts >= one.accepts).all()
        and (other.caps >= one.caps).all()
    ]
    return max(found, key=lambda i: probe.options[i].price)
