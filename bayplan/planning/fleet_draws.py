"""Fleet draws: cheaper fleets near a good one, drawn at random, and those of them that are guessed to be good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .exchanges import CLOSE, FleetExchanges
from .fleet import Fleet
from .fleet_check import Verifier
from .screen import FEW_TIES, MANY_TIES, FleetScreen
from .search_state import SearchState

STEPS, MOST_REACH = (0.002, 0.004, 0.008, 0.016), 64.0
"""Shares of the price that exchanges may save, in turn, and the factor for small fleets."""
DRAWN, COARSE_DRAWN, BATCH = 48, 16, 4
"""Numbers of fleets that are drawn at a time, if many nodes are exchanged at a time, and that are verified then."""
STALLS = 4
"""Number of draws in a row without a cheaper fleet after which a descent ends."""


@dataclass(slots=True)
class FleetDraws:
    """Draws of one search."""

    exchanges: FleetExchanges
    verifier: Verifier
    state: SearchState
    screen: FleetScreen | None
    worth: NDArray[np.float64]
    """float64 per class: price of a pod that stays pending."""
    lead: Fleet | None = None
    """The fleet with the lowest estimate."""
    is_exhausted: bool = False
    """Whether the last draw found no fleet, however far from the good one."""
    _guessed: Fleet | None = None
    """The fleet with the lowest guess of those that were drawn last."""
    _reach: float = 1.0

    def draw(self, best: Fleet, scale: int) -> list[Fleet]:
        """Fleets near a good one and those of the lowest estimate and guess, cheaper than it by usual steps, more if
        few are left. `scale` nodes are exchanged at a time.
        """
        drawn: dict[object, Fleet] = {}
        price = self._price(best)

        def is_known(fleet: Fleet) -> bool:
            is_unfit = self.screen is not None and self.screen.is_unfit(fleet)
            return is_unfit or fleet.key() in drawn or self.verifier.has_verified(fleet)

        is_fine, most = scale == 1, price * (1 + STEPS[-1] * self._reach)
        others = (self.lead, self._guessed) if is_fine else ()
        starts = [best, *(one for one in others if one and self._price(one) <= most)]
        count = DRAWN if is_fine else COARSE_DRAWN
        for number in range(count if self.screen is not None else BATCH):
            step = STEPS[number % len(STEPS)] * self._reach if is_fine else 1.0
            limits = (max(price * (1 - step), self.state.bound), price - CLOSE)
            fleet = self.exchanges.draw(starts[number % len(starts)], limits, is_known, scale)
            if fleet is not None:
                drawn[fleet.key()] = fleet
            elif number >= len(drawn) + len(STEPS):
                break  # few fleets are left
        if is_fine and len(drawn) < BATCH:
            self.is_exhausted = not drawn and self._reach >= MOST_REACH
            self._reach = min(self._reach * 2, MOST_REACH)
        return list(drawn.values())

    def screened(
        self, fleets: list[Fleet], unfit: int, ties: Sequence[range] = FEW_TIES
    ) -> list[tuple[Fleet, int]]:
        """The fleets to verify, each with the number of pods that may stay pending: `unfit` if no fleet seems to be
        good.
        """
        if self.screen is not None and fleets:
            screened = self.screen.choose(fleets, self.worth, BATCH, unfit, ties)
            if screened is not None:
                self._guessed = screened.best
                return screened.fleets
            self.screen = None
        return [(fleet, 0) for fleet in fleets[:BATCH]]

    def learn(self, fleet: Fleet, guess: int) -> None:
        """Compare the guess for a fleet with its simulation, if there was one."""
        if self.screen is not None and self.verifier.has_verified(fleet):
            self.screen.learn(guess, len(self.verifier.verify(fleet).pending))

    def extend(
        self, chain: list[Fleet], scale: int, ties: Sequence[range], is_over: Callable[[], bool]
    ) -> int:
        """Add ever cheaper fleets that are guessed to be steady with these seeds of ties, until there are none.

        Returns the number of nodes that were exchanged at a time in the end.
        """
        failures = 0
        while failures < STALLS and not is_over():
            found = self.screened(self.draw(chain[-1], scale), 0, ties)
            chain += [fleet for fleet, _ in found[:1]]
            if found:
                failures = 0
            elif scale > 1:
                scale //= 2
            else:
                failures += 1
        return scale

    def steadied(self, fleets: Sequence[Fleet]) -> Fleet | None:
        """The cheapest of some fleets with nodes for pods that are guessed to stay pending with one of many seeds of
        ties; None if none is cheaper than the best plan.
        """
        best, least = None, self.state.price - CLOSE
        for fleet in reversed(fleets):
            steady = None
            if self.screen is not None and self._price(fleet) < least:
                steady = self.screen.with_room_for_ties(fleet, MANY_TIES)
            if steady is not None and self._price(steady) < least:
                best, least = steady, self._price(steady)
        return best

    def _price(self, fleet: Fleet) -> float:
        return fleet.price(self.verifier.options)
