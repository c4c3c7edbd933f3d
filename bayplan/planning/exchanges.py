"""Exchanges: fleets near a given one, with some nodes removed, added or replaced at random from a fixed seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..table import Ints
from .fleet import Fleet, NodeGroupKey, pools_allow, spread_over_zones
from .knapsack import most_copies
from .node_probe import Probe

CLOSE = 1e-6
DRAWS = 400
"""Number of draws for a fleet within the prices that was not tried."""
ANOTHER_ZONE = 0.2
"""Probability that one node is in another zone than with even counts."""
USED_TYPES = 0.5
"""Probability that added nodes are of a type that the fleet has."""


@dataclass(slots=True)
class FleetExchanges:
    """The neighbouring fleets for one workload."""

    probe: Probe
    kept_room: Ints | None = None
    _random: random.Random = field(default_factory=lambda: random.Random(0))
    _demand: Ints = field(init=False)
    """int64 per class: the number of pods."""
    _most: list[Ints] = field(init=False)
    """int64 per class, for each option: how many of its pods alone a node holds."""

    def __post_init__(self) -> None:
        self._demand = self.probe.demand
        self._most = [
            most_copies(one, self.probe.requests, self._demand) for one in self.probe.options
        ]

    def draw(
        self,
        fleet: Fleet,
        prices: tuple[float, float],
        is_known: Callable[[Fleet], bool],
        scale: int = 1,
    ) -> Fleet | None:
        """Draw a fleet near `fleet`, with a price within two limits and enough of every resource, that was not tried;
        None if none is found.

        `scale` nodes are exchanged at a time.
        """
        options, counts = self.probe.options, fleet.by_option()
        room = self._room(counts) - self.probe.demand @ self.probe.requests
        start = fleet.price(options)
        for _ in range(DRAWS):
            change = self._change(counts, scale)
            price = start + sum(options[i].price * n for i, n in change.items())
            if not prices[0] - CLOSE <= price <= prices[1]:
                continue
            if (room + sum(options[i].free * n for i, n in change.items()) < 0).any():
                continue
            changed = Counter(counts)
            changed.update(change)
            if not self._holds_each(changed):
                continue
            found = self._placed(changed)
            if not is_known(found) and pools_allow(found, options):
                return found
        return None

    def _holds_each(self, counts: Counter[int]) -> bool:
        """Whether the nodes can hold the pods of each class alone; kept nodes may hold any."""
        if self.kept_room is not None:
            return True
        holds = sum((self._most[i] * n for i, n in counts.items()), np.zeros_like(self._demand))
        return bool((holds >= self._demand).all())

    def _change(self, counts: Counter[int], scale: int) -> Counter[int]:
        """Remove nodes of up to two types, and add nodes of up to two types."""
        draw, change = self._random, Counter[int]()
        used = [option for option, count in counts.items() if count > 0]
        for _ in range(draw.choice((0, 1, 1, 2))):
            if used:
                option = draw.choice(used)
                number = draw.choice((1, 1, 2, 3)) * scale
                change[option] -= min(number, counts[option] + change[option])
        for _ in range(draw.choice((0, 1, 1, 2))):
            is_used = used and draw.random() < USED_TYPES
            option = draw.choice(used) if is_used else draw.randrange(len(self.probe.options))
            change[option] += draw.choice((1, 1, 2, 3)) * scale
        return change

    def _placed(self, counts: Counter[int]) -> Fleet:
        """The nodes spread over zones, sometimes with one of them in another zone."""
        options = self.probe.options
        fleet = spread_over_zones(+counts, options)
        if fleet and self._random.random() < ANOTHER_ZONE:
            group = self._random.choice(sorted(fleet))
            zone = self._random.choice(options[group.option].zones)
            return fleet.changed({group: -1}).changed({NodeGroupKey(group.option, zone): 1})
        return fleet

    def _room(self, counts: Counter[int]) -> Ints:
        """Sum of the nodes' amounts, after daemons; int64 per resource."""
        room = np.zeros(len(self.probe.resources), dtype=np.int64)
        for number, count in counts.items():
            room += self.probe.options[number].free * count
        return room if self.kept_room is None else room + self.kept_room
