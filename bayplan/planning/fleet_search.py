"""Fleet search: find a cheap fleet on which the scheduler places every pod; every step is verified by a simulation.

Order: the fluid problem, which gives a bound at once; first fit decreasing, to compare with; ever more nodes, if there
is no plan by then (`first_fit.py`); whole nodes of the fluid problem, with the smallest reserve on every node with
which the scheduler places all pods; variants of them; column generation, which raises the bound; then nodes are
exchanged: the most promising of many fleets by a guess (`screen.py`) are simulated. As long as guesses are trusted,
neither a reserve nor variants are looked for: a descent by guesses is faster.

A fleet on which pods stay pending is not a plan, and still has information: its price plus the value of these pods is
an estimate of the price of a plan like it. Types and exchanges are judged by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from ..choices import ANY_NODE, ANY_ZONE
from ..table import Ints
from .exchanges import CLOSE, FleetExchanges
from .first_fit import grow, pack_first_fit, with_more
from .fleet import Fleet, all_pools, next_sum, pools_allow, spread_over_zones
from .fleet_check import Demands, FleetVerdict, Verifier
from .fleet_draws import BATCH, FleetDraws
from .fluid import (
    MOST_LP_S,
    MOST_RESERVE,
    PLAIN,
    RESERVE_ACCURACY,
    FleetVariant,
    FluidPlan,
    PlanningProblem,
    least_price,
    pool_rows,
)
from .master import Master
from .node_probe import Probe
from .screen import FEW_TIES, MANY_TIES, REPAIRS, FleetScreen
from .search_state import OnSearch, SearchState

AMPLE_RESERVE, FIRST_RESERVE = 1.5, 0.8
RESERVE_STEP = 0.15
RESERVE_SHARE, VARIANTS_SHARE = 0.4, 0.5
"""Shares of the time at which the search for a reserve and that for variants end."""
LP_SHARE = 0.2
"""Share of the time that a linear program may take."""
RELAX_S = 2.0
"""Time limit of column generation; with many classes it raises the bound for a short time only."""
VARIANT_STEP = 0.015
"""Share of the price that a variant is to save."""
LEAST_RESERVE = 0.5
"""The least share of the reserve that must remain when a type is left out."""
LEFT_FACTOR = 1.3
"""A pod that stays pending costs more than it is worth in the relaxed problem: a plan has gaps."""
UNFIT = 2
"""Number of fleets that are verified if none seems to be good."""
MOST_STEADIED = 2
"""Number of the last fleets of a descent that get nodes for the pods that stay pending with some seed of ties."""
WIDE_GAP = 0.25
"""Above the bound by this share, many nodes are exchanged at a time."""
COARSE_SHARE = 8
"""Divisor of the number of nodes that are exchanged at first."""
PATIENCE = 100
"""Number of exchanges in a row that may fail before the search ends."""


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
    _until_s: float = np.inf
    _trusted_until_s: float | None = None
    """Processor time at which the present part of the search ends, and at which if guesses are trusted."""
    _worth: NDArray[np.float64] = field(init=False)
    """float64 per class: value of a pod in the relaxed problem."""
    _lead: Fleet | None = None
    """The fleet with the lowest estimate."""
    _lead_estimate: float = np.inf
    _screen: FleetScreen | None = None

    def __post_init__(self) -> None:
        """Set the value of pods: without a solution of the relaxed problem, a pod is worth a small node."""
        self._worth = np.full(len(self.probe.classes), min(one.price for one in self.probe.options))
        if self.kept_room is None and not self.demands.survive:
            self._screen = FleetScreen(self.probe, self.verifier.settings)

    def run(self, until_s: float = np.inf, trusted_until_s: float | None = None) -> SearchState:
        """Search until nothing helps or the time is over. Ctrl-C ends it with the best plan so far."""
        self._trusted_until_s = trusted_until_s
        return self._run(self._search, until_s)

    def _run(self, search: Callable[[], None], until_s: float) -> SearchState:
        self._until_s = min(until_s, self.state.budget.limit_s)
        try:
            search()
        except KeyboardInterrupt:
            if self.state.best is None:
                raise
            self.state.is_interrupted = True
        finally:
            self.verifier.close()
        return self.state

    def _search(self) -> None:
        for fleet in self.candidates:
            if pools_allow(fleet, self.probe.options):
                self._offer(self.verifier.verify(fleet))
        problem = self._problem()
        self._raise_bound(least_price(problem))
        limit_s = min(MOST_LP_S, LP_SHARE * self._until_s)
        fluid = FluidPlan(problem, self._penalty, limit_s)
        relaxed = fluid.relax()
        if relaxed is not None:
            self._raise_bound(relaxed.price)
            self._worth = relaxed.duals[: len(self.probe.classes)]
        high = self._begin_with_reserve(fluid)
        self._begin_with_first_fit()
        self._begin_with_many()
        if not self.trusted_screen:
            self._find_reserve(fluid, high)
            self._vary(fluid)
        if relaxed is not None and not self._is_over():
            master = Master(problem, self._penalty, relaxed)
            self._relax(master)
            self._try_patterns(master)
        self._improve()

    def _begin_with_first_fit(self) -> None:
        probe = self.probe
        # Karpenter does not count the volumes and devices of new nodes.
        is_amount = np.array([name not in probe.attachments for name in probe.resources])
        requests = probe.requests * is_amount
        demand = self._first_fit_demand()
        counts, is_complete = pack_first_fit(probe.options, requests, demand)
        fleet = self._fleet(counts)
        if is_complete:
            self.state.first_fit_price = fleet.price(probe.options)
        if fleet.price(probe.options) >= self.state.price - CLOSE:
            return  # too expensive as a first plan
        verdict = self._repair(fleet, self.state.price, requests=requests)
        if not verdict.is_good:
            self.state.failed = verdict

    def _begin_with_many(self) -> None:
        """Find a plan, even an expensive one."""
        if self.state.best is None and self.state.failed is not None:
            verdict = grow(self.state.failed, self.probe, self.verifier.verify, self._is_over)
            self.state.failed = None if self._offer(verdict) else verdict

    def _begin_with_reserve(self, fluid: FluidPlan) -> float:
        """A plan soon: an ample reserve is mostly enough. Returns the highest reserve to try."""
        counts = fluid.whole(AMPLE_RESERVE)
        if counts is None:
            return MOST_RESERVE
        fleet = self._fleet(counts)
        is_cheaper = fleet.price(self.probe.options) < self.state.price - CLOSE
        if is_cheaper and pools_allow(fleet, self.probe.options):
            self._repair(fleet, self.state.price, most=2)
        return AMPLE_RESERVE if self.state.best is not None else MOST_RESERVE

    def _find_reserve(self, fluid: FluidPlan, high: float) -> None:
        """The smallest reserve on every node with which the scheduler places all pods, by bisection."""
        low, reserve = 0.0, min(FIRST_RESERVE, high)
        while high - low > RESERVE_STEP and not self._has_passed(RESERVE_SHARE):
            counts = fluid.whole(reserve)
            if counts is None:
                break
            if self._is_enough(self._fleet(counts)):
                high = reserve
            else:
                low = reserve
            reserve = (low + high) / 2

    def _is_enough(self, fleet: Fleet) -> bool:
        """Whether a fleet is good, or too expensive; a promising fleet is repaired."""
        price = fleet.price(self.probe.options)
        if price >= self.state.price - CLOSE:
            return True
        estimate = self._try(fleet)
        if price < estimate < np.inf:
            self._repair(fleet, self.state.price, most=2)
        return estimate <= price

    def _vary(self, fluid: FluidPlan) -> None:
        """Try other fleets at a price below the best, as long as they are promising: without one type after the other,
        because a scheduler fills fewer kinds of nodes better, and with more of one resource.
        """
        variant: FleetVariant | None = PLAIN
        while variant is not None and not self._has_passed(VARIANTS_SHARE):
            variant = next(self._better_variants(fluid, variant), None)

    def _better_variants(self, fluid: FluidPlan, variant: FleetVariant) -> Iterator[FleetVariant]:
        """Neighbours of a variant whose fleet has a lower estimate than all earlier ones."""
        for one in self._next_variants(fluid, variant):
            if self._has_passed(VARIANTS_SHARE):
                return
            least = self._lead_estimate
            fleet = self._variant_fleet(fluid, one)
            if fleet is not None and not self.verifier.has_verified(fleet):
                self._is_enough(fleet)
                if self._lead_estimate < least - CLOSE:
                    yield one

    def _next_variants(self, fluid: FluidPlan, variant: FleetVariant) -> Iterator[FleetVariant]:
        """One more type left out, those with most nodes first, and one more resource tilted, the tightest first.

        Without some types the price is enough for a small reserve only; these stay.
        """
        price = self._variant_price
        reserve = fluid.reserve_for(price, variant)
        counts = None if reserve is None else fluid.whole(reserve, variant)
        if reserve is None or counts is None:
            return
        if reserve >= MOST_RESERVE - RESERVE_ACCURACY:
            return  # whole nodes of the fluid problem are far below this price
        options = [i for i, _ in counts.most_common()]
        for option, resource in zip_longest(options, self._by_tightness(counts)):
            if option is not None:
                other = replace(variant, without=variant.without | {option})
                if fluid.price(reserve * LEAST_RESERVE, other) <= price:
                    yield other
            if resource is not None:
                yield replace(variant, tilts=(*variant.tilts, resource))

    def _by_tightness(self, counts: Mapping[int, int]) -> list[int]:
        """The resources, those with the least surplus of nodes over requests first."""
        needed = self.probe.demand @ self.probe.requests
        room = sum((self.probe.options[i].free * n for i, n in counts.items()), 0 * needed)
        spare = room / np.maximum(needed, 1)
        return sorted(
            range(1, len(spare)), key=lambda i: spare[i]
        )  # the first is the number of pods

    def _variant_fleet(self, fluid: FluidPlan, variant: FleetVariant) -> Fleet | None:
        """The fleet a little below the best price with the largest reserve for it; None if all are more expensive."""
        reserve = fluid.reserve_for(self._variant_price, variant)
        counts = None if reserve is None else fluid.whole(reserve, variant)
        return None if counts is None else self._fleet(counts)

    @property
    def _variant_price(self) -> float:
        return self.state.price * (1 - VARIANT_STEP)

    def _relax(self, master: Master) -> None:
        until_s = min(self._until_s, self.state.elapsed_s + RELAX_S)
        for relaxation in master.relax(lambda: self.state.elapsed_s >= until_s):
            self._raise_bound(relaxation.bound)
            self._tell()

    def _try_patterns(self, master: Master) -> None:
        """Whole numbers of nodes from the patterns, which suit a scheduler that fills nodes up."""
        whole = master.dive(lambda: self.state.elapsed_s >= self._until_s)
        if whole is not None and not self._is_over():
            self._is_enough(self._fleet(whole))

    def _improve(self) -> None:
        """Exchange nodes of the most promising fleets; many at a time far above the bound, then fewer and fewer."""
        draws = FleetDraws(
            FleetExchanges(self.probe, self.kept_room),
            self.verifier,
            self.state,
            self._screen,
            LEFT_FACTOR * self._worth,
        )
        failures, scale = 0, self._first_scale()
        if self.state.best is not None and self.trusted_screen:
            steady = self.trusted_screen.with_room_for_ties(self.state.best.fleet, FEW_TIES)
            if steady is not None:
                scale = self._descend(draws, steady, scale)
        while self.state.best is not None and failures < PATIENCE and not self._is_over():
            below, draws.lead = self.state.price, self._lead
            drawn = draws.draw(self.state.best.fleet, scale)
            if draws.is_exhausted:
                return
            fleets = draws.screened(drawn, UNFIT if scale == 1 else 0)
            if self.trusted_screen and fleets and not fleets[0][1]:
                scale = self._descend(draws, fleets[0][0], scale)
                fleets = []
            self.verifier.announce([fleet for fleet, _ in fleets])
            for fleet, guess in fleets:
                if not self._is_over():
                    self._is_enough(fleet)
                    draws.learn(fleet, guess)
            if self.state.price < below:
                failures = 0
            elif scale > 1:
                scale //= 2
            else:
                failures += BATCH

    def _descend(self, draws: FleetDraws, fleet: Fleet, scale: int) -> int:
        """Descend from a steady fleet to cheaper ones, first with few seeds of ties, then with many, and verify the
        last, or an earlier one if a guess was wrong.

        Returns the number of nodes that were exchanged at a time in the end.
        """
        chain = [fleet]
        scale = draws.extend(chain, scale, FEW_TIES, self._is_over)
        steady = draws.steadied(chain[-MOST_STEADIED:])
        if steady is None:
            return scale
        chain = [steady]
        draws.extend(chain, 1, MANY_TIES, self._is_over)
        while chain and self.trusted_screen and self.verifier.has_time():
            if self._is_enough(chain[-1]):
                break
            draws.learn(chain.pop(), 0)
        return scale

    @property
    def trusted_screen(self) -> FleetScreen | None:
        """The guesses, if simulations mostly found the same."""
        return self._screen if self._screen is not None and self._screen.is_trusted else None

    def _first_scale(self) -> int:
        """Number of nodes that are exchanged at a time."""
        best = self.state.best
        if best is None or self.state.price <= self.state.bound * (1 + WIDE_GAP):
            return 1
        return max(best.fleet.size() // COARSE_SHARE, 1)

    def _try(self, fleet: Fleet) -> float:
        """Verify and offer a fleet; returns its estimate, which is its price if it is good."""
        price = fleet.price(self.probe.options)
        if price >= self.state.price - CLOSE or not pools_allow(fleet, self.probe.options):
            return np.inf
        verdict = self.verifier.verify(fleet)
        self._offer(verdict)
        left = float(verdict.missing @ self._worth)
        estimate = price + LEFT_FACTOR * max(left, 0.0 if verdict.is_good else CLOSE)
        if estimate < self._lead_estimate:
            self._lead, self._lead_estimate = fleet, estimate
        return estimate

    def _fleet(self, counts: Mapping[int, int]) -> Fleet:
        """Nodes by option in zones, with those that the minimum of each pool adds."""
        counts = Counter(counts)
        for pool in all_pools(self.probe.options):
            members = [i for i, one in enumerate(self.probe.options) if one.pool is pool]
            missing = pool.minimum - sum(counts[i] for i in members)
            if missing > 0:
                counts[min(members, key=lambda i: self.probe.options[i].price)] += missing
        return spread_over_zones(counts, self.probe.options)

    def _repair(
        self, fleet: Fleet, below: float, most: int = REPAIRS, requests: Ints | None = None
    ) -> FleetVerdict:
        """Add nodes for pods that stay pending until none does, or the fleet is not below a price."""
        verdict = self.verifier.verify(fleet)
        for attempt in range(most):
            if verdict.is_good or self._is_over(only_after_first=True):
                break
            more = with_more(verdict, 1 << max(attempt - 2, 0), self.probe, requests)
            if more is None or more.price(self.probe.options) >= below - CLOSE:
                break
            verdict = self.verifier.verify(more)
        self._offer(verdict)
        return verdict

    def _demand(self) -> Ints:
        """Pods per class, and as many more as the loss of a zone leaves to the others."""
        demand: Ints = np.ceil(self.probe.demand * self._zone_factor()).astype(np.int64)
        return demand

    def _first_fit_demand(self) -> Ints:
        """The demand; with nodes that stay, only the pods that the scheduler does not place on them."""
        if self.kept_room is None or self.demands.survive:
            return self._demand()
        return self.verifier.verify(self._fleet({})).missing

    def _problem(self) -> PlanningProblem:
        """The problem that the bound is for: pods that must have a node also after the loss of a zone are covered
        so often.
        """
        factor = self._zone_factor() if self.demands.survive_priority is None else 1.0
        room = None if self.kept_room is None else np.maximum(self.kept_room, 0) * factor
        options = self.probe.options
        demand = self.probe.demand.astype(np.float64) * np.float64(factor)
        return PlanningProblem(options, self.probe.requests, demand, list(pool_rows(options)), room)

    @property
    def _penalty(self) -> float:
        """The penalty for a pod without a node."""
        return 10 * max((one.price for one in self.probe.options), default=1.0)

    def _zone_factor(self) -> float:
        """Factor on the demand that a fleet must cover, so that after the loss of any zone the rest covers it once."""
        if self.demands.survive != ANY_ZONE:
            return 1.0
        zones = {zone for one in self.probe.options for zone in one.zones}
        return len(zones) / max(len(zones) - 1, 1)

    def _raise_bound(self, bound: float) -> None:
        """Raise the bound of the plan by a bound for the workload; if any node may fail, one more node is needed."""
        prices = [one.price for one in self.probe.options]
        if self.demands.survive == ANY_NODE and self.demands.survive_priority is None:
            bound += min(prices)
        self.state.bound = max(self.state.bound, next_sum(bound, prices))

    def _offer(self, verdict: FleetVerdict) -> bool:
        """Record a good fleet that is cheaper than the best one, and try it without empty nodes."""
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
        if verdict.idle and not self._is_over():
            self._try(verdict.fleet.changed({group: -n for group, n in verdict.idle.items()}))
        return True

    def _has_passed(self, share: float) -> bool:
        """Whether a share of the time is over, or all of it, or nothing can be better."""
        return self._is_over() or self.state.elapsed_s > share * self._until_s

    def _is_over(self, only_after_first: bool = False) -> bool:
        """Whether to stop: the time is over, or nothing can be better."""
        if only_after_first and self.state.first_plan_s is None:
            return False
        if self.state.is_optimal:
            return True
        until_s = (self._trusted_until_s if self.trusted_screen else None) or self._until_s
        if self.verifier.has_time() and self.state.elapsed_s < until_s:
            return False
        self.state.is_out_of_time = True
        return True

    def _tell(self) -> None:
        if self.on_state is not None:
            self.on_state(self.state)
