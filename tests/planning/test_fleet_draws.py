"""Draws of cheaper fleets: descents by guesses, and what they end with."""

from collections.abc import Sequence

import numpy as np
import pytest

from bayplan.amounts import kernel
from bayplan.planning.exchanges import FleetExchanges
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import NO_DEMANDS, Verifier
from bayplan.planning.fleet_draws import FleetDraws
from bayplan.planning.fleet_search import FleetSearch
from bayplan.planning.node_probe import probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.screen import FEW_TIES, MANY_TIES, FleetScreen
from bayplan.planning.search_state import SearchState
from bayplan.planning.time_budget import TimeBudget
from bayplan.table import Ints

from .test_plan import LARGE, POOL, SEEDED, SMALL, make_deployment

pytestmark = pytest.mark.skipif(kernel.compiled is None, reason="the kernel is not built")

ENOUGH, STEADY = 4, 6
"""Small nodes for eight pods of 900m, and those on which none waits with a late seed of ties, as is pretended here."""


class UnluckyScreen(FleetScreen):
    """A pod waits on fewer than six nodes with the hundredth seed of ties."""

    def missing(self, fleets: Sequence[Fleet], ties: range = FEW_TIES[0]) -> Ints | None:
        found = super().missing(fleets, ties)
        if found is not None and 100 in ties:
            short = np.array([[fleet.size() < STEADY] for fleet in fleets])
            found = np.where(short, np.maximum(found, 1), found)
        return found


def small_nodes(count: int) -> Fleet:
    return Fleet({NodeGroupKey(0, ""): count})


def search_with(screen: type[FleetScreen]) -> FleetSearch:
    given_ = prepare_input([make_deployment("web", 8, "900m")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, NO_DEMANDS)
    search = FleetSearch(probe, verifier, NO_DEMANDS, SearchState(TimeBudget(20.0)))
    search._screen = screen(probe, SEEDED)
    search._offer(verifier.verify(small_nodes(20)))
    return search


def draws_of(search: FleetSearch) -> FleetDraws:
    exchanges = FleetExchanges(search.probe)
    return FleetDraws(exchanges, search.verifier, search.state, search._screen, search._worth)


@pytest.mark.parametrize(
    ("ties", "price"),
    [
        pytest.param(FEW_TIES, LARGE.price, id="with few seeds of ties, to one node"),
        pytest.param(MANY_TIES, STEADY * (SMALL.price or 0), id="with many, to six"),
    ],
)
def test_a_descent_ends_with_the_cheapest_fleet_that_is_guessed_to_be_steady(
    ties: Sequence[range], price: float
) -> None:
    search = search_with(UnluckyScreen)
    chain = [small_nodes(9)]

    scale = draws_of(search).extend(chain, 2, ties, lambda: False)

    prices = [fleet.price(search.probe.options) for fleet in chain]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] == pytest.approx(price)
    assert scale == 1


def test_no_descent_goes_on_when_the_time_is_over() -> None:
    chain = [small_nodes(9)]

    draws_of(search_with(FleetScreen)).extend(chain, 1, FEW_TIES, lambda: True)

    assert chain == [small_nodes(9)]


def test_fleets_get_nodes_until_they_are_steady_and_the_cheapest_is_taken() -> None:
    draws = draws_of(search_with(UnluckyScreen))

    assert draws.steadied([small_nodes(8), small_nodes(ENOUGH)]) == small_nodes(STEADY)
    assert draws.steadied([small_nodes(30)]) is None, "it is dearer than the plan"


def test_a_search_verifies_no_fleet_that_is_guessed_to_be_unsteady() -> None:
    search = search_with(UnluckyScreen)

    search._improve()

    assert search.state.price == pytest.approx(STEADY * (SMALL.price or 0))
    assert not search.verifier.has_verified(small_nodes(STEADY - 1))
