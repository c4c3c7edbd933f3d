"""Searching: find a cheap fleet on which the scheduler places every pod; every step is verified by a simulation.

Order: first fit decreasing, which gives a plan at once; column generation for the bound; whole numbers of nodes, with a
little more room until the scheduler is content; then nodes are left out or exchanged for cheaper ones.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ..table import Ints
from .first_fit import first_fit
from .fleet import (
    Fleet,
    NodeGroupKey,
    all_pools,
    overdrawn_pools,
    pools_allow,
    spread_over_zones,
)
from .master import Master
from .packing import can_pack
from .probing import Probe, pending_counts
from .verifying import ANY_NODE, ANY_ZONE, Demands, FleetVerdict, Verifier

REPAIRS = 10
GROWTH_STEPS = 6
RELAX_SHARE = 0.3
CLOSE = 1e-6
MOST_ADDED = 3
"""How many nodes of one type may take the place of others in one step."""


@dataclass(slots=True)
class SearchState:
    """How far a search is."""

    started: float
    time_limit_s: float
    best: FleetVerdict | None = None
    price: float = np.inf
    bound: float = 0.0
    first_fit_price: float | None = None
    first_plan_s: float | None = None
    failed: FleetVerdict | None = None
    """The fleet of a search that found no plan."""
    is_interrupted: bool = False
    is_out_of_time: bool = False

    @property
    def elapsed_s(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    @property
    def deadline(self) -> float:
        """When to stop."""
        return self.started + self.time_limit_s


OnSearch = Callable[[SearchState], None]


@dataclass(slots=True)
class FleetSearch:
    """One search; `run` fills its state."""

    probe: Probe
    verifier: Verifier
    demands: Demands
    state: SearchState
    kept_room: Ints | None = None
    candidates: list[Fleet] = field(default_factory=list)
    """Fleets to begin with."""
    on_state: OnSearch | None = None

    def run(self) -> SearchState:
        """Search until nothing helps or the time is over. Ctrl-C ends it with the best plan so far."""
        try:
            self._search()
        except KeyboardInterrupt:
            if self.state.best is None:
                raise
            self.state.is_interrupted = True
        return self.state

    def _search(self) -> None:
        for fleet in self.candidates:
            if pools_allow(fleet, self.probe.options):
                self._offer(self.verifier.verify(fleet))
        self._begin_with_first_fit()
        factor = self._zone_factor() if self.demands.survive_priority is None else 1.0
        master = Master(
            self.probe.options, self.probe.requests, self.probe.demand, self.kept_room, factor
        )
        self._relax(master)
        if self._is_over():
            return
        self._solve_whole(master)
        self._improve()

    # The parts in order

    def _begin_with_first_fit(self) -> None:
        counts = first_fit(self.probe.options, self.probe.requests, self._demand())
        verdict = self._repair(self._fleet(counts), np.inf)
        if verdict.is_good:
            self.state.first_fit_price = verdict.fleet.price(self.probe.options)
        else:
            self.state.failed = verdict

    def _relax(self, master: Master) -> None:
        until = time.monotonic() + self.state.time_limit_s * RELAX_SHARE
        for relaxation in master.relax(until):
            self.state.bound = max(self.state.bound, self._raised(relaxation.bound))
            self._tell()

    def _solve_whole(self, master: Master) -> None:
        """Whole numbers of nodes, with as little growth of the demand as the scheduler needs."""
        whole = master.dive(self.state.deadline)
        if whole is not None:
            self._try(self._fleet(whole))
        low, high = 0.0, 0.25
        for step in range(GROWTH_STEPS):
            growth = 0.0 if step == 0 else (low + high) / 2
            counts = master.round_up(growth)
            if counts is None or self._is_over():
                return
            if self._try(self._pack_down(self._fleet(counts))):
                high = growth
            else:
                low = growth
            if high - low < 0.005:
                return

    def _pack_down(self, fleet: Fleet) -> Fleet:
        """The fleet without nodes that packing by size does not need, the dearest first."""
        if self.kept_room is not None or self.demands.survive:
            return fleet
        for group in sorted(fleet, key=lambda group: -self.probe.options[group.option].price):
            while fleet[group] and not self._is_over():
                fewer = fleet.changed({group: -1})
                if not self._is_allowed(fewer) or not can_pack(fewer, self.probe):
                    break
                fleet = fewer
        return fleet

    def _try(self, fleet: Fleet) -> bool:
        """Whether a fleet is good after some repairs, or too dear to be of use."""
        price = fleet.price(self.probe.options)
        is_dear = price >= self.state.price - CLOSE or not self._is_allowed(fleet)
        return is_dear or self._repair(fleet, self.state.price, most=5).is_good

    def _improve(self) -> None:
        """Leave nodes out or exchange them, as long as that helps."""
        is_better = True
        while is_better and self.state.best is not None:
            is_better = False
            for fleet in self._neighbours(self.state.best.fleet):
                if self._is_over():
                    return
                if self._offer(self.verifier.verify(fleet)):
                    is_better = True
                    break

    # Fleets

    def _fleet(self, counts: Mapping[int, int]) -> Fleet:
        """Nodes by option in zones, with what the minimum of each pool adds."""
        counts = Counter(counts)
        for pool in all_pools(self.probe.options):
            members = [i for i, one in enumerate(self.probe.options) if one.pool is pool]
            missing = pool.minimum - sum(counts[i] for i in members)
            if missing > 0:
                counts[min(members, key=lambda i: self.probe.options[i].price)] += missing
        return spread_over_zones(counts, self.probe.options)

    def _repair(self, fleet: Fleet, below: float, most: int = REPAIRS) -> FleetVerdict:
        """Add nodes for pods that stay pending until none does, or the fleet is not below a price."""
        verdict = self.verifier.verify(fleet)
        for attempt in range(most):
            if verdict.is_good or self._is_over(only_after_first=True):
                break
            options = self.probe.options
            need = pending_counts(self.probe, verdict.pending) << max(attempt - 2, 0)
            added = first_fit(options, self.probe.requests, need, start=fleet.by_option())
            more = spread_over_zones(added, options, start=fleet, but=verdict.lost_zone)
            if not added or more.price(options) >= below - CLOSE:
                break
            fleet, verdict = more, self.verifier.verify(more)
        self._offer(verdict)
        return verdict

    def _neighbours(self, fleet: Fleet) -> Iterator[Fleet]:
        """Cheaper fleets: some nodes fewer, then up to three exchanged for others, what saves most first.

        What cannot suffice is left out.
        """
        options = self.probe.options
        groups = sorted(fleet, key=lambda group: -options[group.option].price)
        for group in groups:
            for share in (4, 1):
                count = fleet[group] // share if share > 1 else 1
                if count:
                    yield from self._if_enough(fleet.changed({group: -count}))
        for _, change in sorted(self._exchanges(fleet), key=lambda item: -item[0]):
            yield from self._if_enough(fleet.changed(change))

    def _exchanges(self, fleet: Fleet) -> Iterator[tuple[float, Counter[NodeGroupKey]]]:
        """What is saved, and the change: one to three nodes of a group, or one each of two groups, for others."""
        options = self.probe.options
        removals = [
            Counter({group: number})
            for group in fleet
            for number in (1, 2, 3)
            if fleet[group] >= number
        ]
        removals += [Counter(pair) for pair in combinations(fleet, 2)]
        most, spare = self.state.price - self.state.bound, self._room(fleet) - self._needed()
        for removed in removals:
            price = sum(options[group.option].price * n for group, n in removed.items())
            short = sum(options[group.option].free * n for group, n in removed.items()) - spare
            zones = [group.zone for group in removed]
            for number, one in enumerate(options):
                zone = next((name for name in zones if name in one.zones), one.zones[0])
                for added in range(1, MOST_ADDED + 1):
                    saved = price - one.price * added
                    if saved <= CLOSE:
                        break
                    if saved > most + CLOSE or (one.free * added < short).any():
                        continue
                    change = Counter({NodeGroupKey(number, zone): added})
                    change.subtract(removed)
                    yield saved, change

    def _if_enough(self, fleet: Fleet) -> Iterator[Fleet]:
        """The fleet, if it has enough of every resource, and its pools allow it."""
        if (self._room(fleet) < self._needed()).any() or not self._is_allowed(fleet):
            return
        if fleet.price(self.probe.options) < self.state.bound - CLOSE:
            return
        if self.kept_room is not None or can_pack(fleet, self.probe):
            yield fleet

    def _room(self, fleet: Fleet) -> Ints:
        """What the nodes have together, after daemons; int64 per resource."""
        room = np.zeros(len(self.probe.resources), dtype=np.int64)
        for group, count in fleet.items():
            room += self.probe.options[group.option].free * count
        return room if self.kept_room is None else room + self.kept_room

    def _needed(self) -> Ints:
        """What all pods request together; int64 per resource."""
        return self.probe.demand @ self.probe.requests

    def _is_allowed(self, fleet: Fleet) -> bool:
        counts, options = fleet.by_option(), self.probe.options
        return not overdrawn_pools(fleet, options) and all(
            sum(counts[i] for i, one in enumerate(options) if one.pool is pool) >= pool.minimum
            for pool in all_pools(options)
        )

    # State

    def _demand(self) -> Ints:
        """Pods per class, and as many more as the loss of a zone leaves to the others."""
        demand: Ints = np.ceil(self.probe.demand * self._zone_factor()).astype(np.int64)
        return demand

    def _zone_factor(self) -> float:
        """How many times the demand a fleet must cover: what is left after the loss of any zone must cover it once."""
        if self.demands.survive != ANY_ZONE:
            return 1.0
        zones = {zone for one in self.probe.options for zone in one.zones}
        return len(zones) / max(len(zones) - 1, 1)

    def _raised(self, bound: float) -> float:
        """A bound for the workload as one for the plan: with any node gone, the rest must suffice."""
        if self.demands.survive == ANY_NODE and self.demands.survive_priority is None:
            return bound + min(one.price for one in self.probe.options)
        return bound

    def _offer(self, verdict: FleetVerdict) -> bool:
        """Take a good fleet that is cheaper than the best one."""
        price = verdict.fleet.price(self.probe.options)
        if not verdict.is_good or price >= self.state.price - CLOSE:
            verdict.simulation = None
            return False
        if self.state.best is not None:
            self.state.best.simulation = None
        self.state.best, self.state.price = verdict, price
        if self.state.first_plan_s is None:
            self.state.first_plan_s = self.state.elapsed_s
        self._tell()
        return True

    def _is_over(self, only_after_first: bool = False) -> bool:
        """Whether to stop: the time is over, or nothing can be better."""
        if only_after_first and self.state.best is None:
            return False
        if self.state.price <= self.state.bound * (1 + CLOSE):
            return True
        if time.monotonic() < self.state.deadline:
            return False
        self.state.is_out_of_time = True
        return True

    def _tell(self) -> None:
        if self.on_state is not None:
            self.on_state(self.state)
