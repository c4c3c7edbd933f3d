"""Steady plan: a fleet that holds with other seeds of ties than those that the search verified it with."""

from __future__ import annotations

import numpy as np

from .first_fit import with_more
from .fleet import pools_allow
from .fleet_check import FleetVerdict, OtherSeeds, Verifier
from .fleet_search import FleetSearch
from .node_probe import Probe

SPARE_ROOM_SHARE = 0.65
"""Share of the time limit at which the search with spare room ends; the rest is for other seeds."""


def find_steady(search: FleetSearch) -> tuple[FleetVerdict, OtherSeeds | None]:
    """A good fleet on which no pod waits with other seeds either, as far as there is time to find one."""
    state, verifier = search.state, search.verifier
    assert state.best is not None, "there is a plan"
    found = verifier.try_other_seeds(state.best.fleet)
    if found.is_steady:
        return state.best, found
    if not search.trusted_screen:  # else it was guessed to hold with many seeds: a node is enough
        search.go_on_with_spare_room(SPARE_ROOM_SHARE * state.budget.limit_s)
    if state.is_interrupted:
        return state.best, None
    return steadied(state.best, search.probe, verifier)


def steadied(
    verdict: FleetVerdict, probe: Probe, verifier: Verifier
) -> tuple[FleetVerdict, OtherSeeds]:
    """A good fleet on which no pod waits with other seeds either, as far as there is time to find one.

    Tried in the order of their prices: dearer fleets that the search found to be good, and the fleet with nodes for the
    pods that would wait.
    """
    found = verifier.try_other_seeds(verdict.fleet)
    failed, least = found.failed, verdict.fleet.price(probe.options)
    dearer = [one for one in verifier.good_verdicts() if one.fleet.price(probe.options) > least]
    while not found.is_steady:
        fleet = None if failed is None else with_more(failed, 1, probe)
        if fleet is not None and not pools_allow(fleet, probe.options):
            fleet = None
        most = np.inf if fleet is None else fleet.price(probe.options)
        if dearer and dearer[0].fleet.price(probe.options) <= most:
            more = dearer.pop(0)
            others = verifier.try_other_seeds(more.fleet)
        elif fleet is None or not verifier.has_time():
            break
        else:
            failed = verifier.try_other_seeds(fleet, only_hard=True).failed
            if failed is not None:
                continue
            more = verifier.verify(fleet)
            if not more.is_good:
                failed = more
                continue
            others = verifier.try_other_seeds(fleet)
            failed = others.failed
        if not others.tried:
            break
        if others.is_steady or others.held >= found.held:
            verdict, found = more, others
    return verdict, found
