"""Exchanges: fleets that are a little cheaper than a given one, with some nodes fewer or other ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..table import Ints
from .fleet import Fleet, all_pools, overdrawn_pools, spread_over_zones
from .probing import Probe

CLOSE = 1e-6
MORE_ADDED = 2
"""By how many more nodes others may be replaced in one step."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A change of a fleet that makes it cheaper: nodes by option."""

    counts: Counter[int]
    change: Counter[int]
    saved: float
    slack: float
    """The least share by which the nodes have more than all pods request, of any resource."""


@dataclass(slots=True)
class FleetExchanges:
    """The cheaper fleets for one workload."""

    probe: Probe
    kept_room: Ints | None = None
    reserve: float = 0.0
    """The share of the largest pod that counts as lost on every node."""

    def around(self, fleet: Fleet, most: float, tilt: int = 0) -> list[Exchange]:
        """Fleets that save up to `most` and have enough of every resource; a tilt weighs one resource more."""
        options, counts = self.probe.options, fleet.by_option()
        room, needed = self._room(counts), self.probe.demand @ self.probe.requests
        lost = self._lost_per_node(tilt)
        usable = room - lost * counts.total()
        found = []
        for saved, change in self._changes(counts, most):
            added = sum((options[number].free * n for number, n in change.items()), 0 * room)
            if (room + added < needed).any():
                continue
            left = usable + added - lost * sum(change.values())
            slack = float(np.min((left - needed) / np.maximum(needed, 1)))
            found.append(Exchange(counts, change, saved, slack))
        return found

    def fleet_of(self, one: Exchange) -> Fleet:
        """The cheaper fleet, with its nodes spread over zones."""
        counts = Counter(one.counts)
        counts.update(one.change)
        return spread_over_zones(+counts, self.probe.options)

    @property
    def tilts(self) -> int:
        """How many ways there are to weigh resources."""
        return len(self.probe.resources)

    def is_allowed(self, fleet: Fleet) -> bool:
        """Whether a fleet keeps the minimum, the maximum and the limits of every pool."""
        counts, options = fleet.by_option(), self.probe.options
        return not overdrawn_pools(fleet, options) and all(
            sum(counts[i] for i, one in enumerate(options) if one.pool is pool) >= pool.minimum
            for pool in all_pools(options)
        )

    def _changes(self, counts: Counter[int], most: float) -> Iterator[tuple[float, Counter[int]]]:
        """What is saved, and the change: nodes left out, or some of one type, or one each of two, for others."""
        options = self.probe.options
        for removed in self._removals(counts):
            price = sum(options[number].price * n for number, n in removed.items())
            if price <= most + CLOSE:
                yield price, Counter({number: -n for number, n in removed.items()})
            for number, one in enumerate(options):
                for added in range(1, removed.total() + MORE_ADDED + 1):
                    saved = price - one.price * added
                    if saved <= CLOSE:
                        break
                    if saved <= most + CLOSE and number not in removed:
                        change = Counter({number: added})
                        change.subtract(removed)
                        yield saved, change

    def _removals(self, counts: Counter[int]) -> Iterator[Counter[int]]:
        for number, count in counts.items():
            for removed in sorted({*range(1, 7), count // 8, count // 4}):
                if 0 < removed <= count:
                    yield Counter({number: removed})
        for pair in combinations(counts, 2):
            yield Counter(pair)

    def _room(self, counts: Counter[int]) -> Ints:
        """What the nodes have together, after daemons; int64 per resource."""
        room = np.zeros(len(self.probe.resources), dtype=np.int64)
        for number, count in counts.items():
            room += self.probe.options[number].free * count
        return room if self.kept_room is None else room + self.kept_room

    def _lost_per_node(self, tilt: int) -> NDArray[np.float64]:
        """The reserve of a node, by resource."""
        weights = np.ones(len(self.probe.resources))
        if tilt:
            weights *= 0.5
            weights[tilt] = 2.0
        largest = self.probe.requests.max(axis=0, initial=0)
        lost: NDArray[np.float64] = largest * weights * self.reserve
        return lost
