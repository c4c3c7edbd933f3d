"""Searching: find a cheap fleet on which the scheduler places every pod; every step is verified by a simulation.

Order: the fluid problem, which gives a bound at once; first fit decreasing, to compare with; whole nodes of the fluid
problem, with the smallest reserve on every node with which the scheduler places all pods; column generation,
which raises the bound; then nodes are left out or exchanged for cheaper ones.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..table import Ints
from .exchanges import CLOSE, Exchange, FleetExchanges
from .first_fit import first_fit
from .fleet import Fleet, all_pools, pools_allow, spread_over_zones
from .fluid import FluidPlan, PlanningProblem
from .master import Master
from .pool_rows import pool_rows
from .price_sums import next_sum
from .probing import Probe, pending_counts
from .verifying import ANY_NODE, ANY_ZONE, Demands, FleetVerdict, Verifier

REPAIRS = 10
AMPLE_RESERVE, FIRST_RESERVE = 0.6, 0.35
RESERVE_STEP = 0.04
RESERVE_SHARE, RELAX_SHARE = 0.4, 0.1
"""How much of the time the search for a reserve and the column generation may take."""
PATIENCE = 40
"""How many exchanges in a row may fail before the search ends."""


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
        problem = self._problem()
        fluid = FluidPlan(problem, self._penalty)
        relaxed = fluid.relax()
        if relaxed is not None:
            self._raise_bound(relaxed.price)
        high = self._begin_with_reserve(fluid)
        self._begin_with_first_fit()
        reserve = self._find_reserve(fluid, high)
        exchanges = FleetExchanges(self.probe, self.kept_room, reserve)
        if relaxed is not None and not self._is_over():
            master = Master(problem, self._penalty, relaxed)
            self._relax(master)
            self._try_patterns(master)
        self._improve(exchanges)

    # The parts in order

    def _begin_with_first_fit(self) -> None:
        counts = first_fit(self.probe.options, self.probe.requests, self._demand())
        verdict = self._repair(self._fleet(counts), np.inf)
        if verdict.is_good:
            self.state.first_fit_price = verdict.fleet.price(self.probe.options)
        else:
            self.state.failed = verdict

    def _begin_with_reserve(self, fluid: FluidPlan) -> float:
        """A plan soon: an ample reserve is mostly enough. Returns the highest reserve to try."""
        counts = fluid.whole(AMPLE_RESERVE)
        if counts is None:
            return 1.0
        fleet = self._fleet(counts)
        is_good = pools_allow(fleet, self.probe.options) and self._offer(
            self.verifier.verify(fleet)
        )
        return AMPLE_RESERVE if is_good else 1.0

    def _find_reserve(self, fluid: FluidPlan, high: float) -> float:
        """The smallest reserve on every node with which the scheduler places all pods."""
        low, reserve = 0.0, FIRST_RESERVE
        until = time.monotonic() + RESERVE_SHARE * self.state.time_limit_s
        while high - low > RESERVE_STEP and time.monotonic() < until and not self._is_over():
            counts = fluid.whole(reserve)
            if counts is None:
                break
            if self._is_enough(self._fleet(counts)):
                high = reserve
            else:
                low = reserve
            reserve = (low + high) / 2
        return high

    def _is_enough(self, fleet: Fleet) -> bool:
        """Whether a fleet is good after few repairs, or too dear to be of use."""
        if fleet.price(self.probe.options) >= self.state.price - CLOSE:
            return True
        if not pools_allow(fleet, self.probe.options):
            return False
        verdict = self.verifier.verify(fleet)
        if not verdict.is_good:
            self._repair(fleet, self.state.price, most=2)
        return self._offer(verdict) or verdict.is_good

    def _relax(self, master: Master) -> None:
        for relaxation in master.relax(time.monotonic() + RELAX_SHARE * self.state.time_limit_s):
            self._raise_bound(relaxation.bound)
            self._tell()

    def _try_patterns(self, master: Master) -> None:
        """Whole numbers of nodes from the patterns, which suit a scheduler that fills nodes up."""
        whole = master.dive(self.state.deadline)
        if whole is not None and not self._is_over():
            self._is_enough(self._fleet(whole))

    def _improve(self, exchanges: FleetExchanges) -> None:
        """Leave nodes out or exchange them: a step that saves less after each failure, more after each success."""
        target, failures, tilt = np.inf, 0, 0
        while self.state.best is not None and failures < PATIENCE and not self._is_over():
            most = self.state.price - self.state.bound
            target = min(target, most / 2)
            found = exchanges.around(self.state.best.fleet, most, tilt)
            fleet = self._choose(exchanges, found, target)
            if fleet is None:
                return
            if self._offer(self.verifier.verify(fleet)):
                target, failures = target * 1.5, 0
            else:
                target, failures = target * 0.8, failures + 1
                tilt = (tilt + 1) % exchanges.tilts

    def _choose(
        self, exchanges: FleetExchanges, found: list[Exchange], target: float
    ) -> Fleet | None:
        """An untried fleet that saves about the target, of those the one with most to spare; else any."""

        def rank(one: Exchange) -> tuple[bool, float]:
            return not 0.6 * target <= one.saved <= target + CLOSE, -one.slack

        for one in sorted(found, key=rank):
            fleet = exchanges.fleet_of(one)
            if not self.verifier.has_verified(fleet) and exchanges.is_allowed(fleet):
                return fleet
        return None

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

    # State

    def _demand(self) -> Ints:
        """Pods per class, and as many more as the loss of a zone leaves to the others."""
        demand: Ints = np.ceil(self.probe.demand * self._zone_factor()).astype(np.int64)
        return demand

    def _problem(self) -> PlanningProblem:
        """What the bound is about: pods that must have a node also after the loss of a zone are covered so often."""
        factor = self._zone_factor() if self.demands.survive_priority is None else 1.0
        room = None if self.kept_room is None else np.maximum(self.kept_room, 0) * factor
        options = self.probe.options
        demand = self.probe.demand.astype(np.float64) * np.float64(factor)
        return PlanningProblem(options, self.probe.requests, demand, list(pool_rows(options)), room)

    @property
    def _penalty(self) -> float:
        """The price of a pod that no node is had for."""
        return 10 * max((one.price for one in self.probe.options), default=1.0)

    def _zone_factor(self) -> float:
        """How many times the demand a fleet must cover: what is left after the loss of any zone must cover it once."""
        if self.demands.survive != ANY_ZONE:
            return 1.0
        zones = {zone for one in self.probe.options for zone in one.zones}
        return len(zones) / max(len(zones) - 1, 1)

    def _raise_bound(self, bound: float) -> None:
        """Take a bound for the workload as one for the plan: with any node gone, the rest must suffice."""
        prices = [one.price for one in self.probe.options]
        if self.demands.survive == ANY_NODE and self.demands.survive_priority is None:
            bound += min(prices)
        self.state.bound = max(self.state.bound, next_sum(bound, prices))

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
