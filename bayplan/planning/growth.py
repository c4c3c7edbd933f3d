"""Growth: nodes for pods that stay pending, ever more of them, so that there is a plan even if it is dear.

A scheduler that spreads pods uses all nodes, so that a large pod which comes late finds room only if there are about as
many nodes as pods before it. Nodes are added as for a part of all pods, then for twice as many. Where the maximum of a
pool is reached, half of its nodes are replaced by larger ones, then half of the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from ..table import Ints
from .first_fit import first_fit
from .fleet import Fleet, NodeGroupKey, pools_allow, spread_over_zones
from .fleet_check import FleetVerdict
from .node_probe import Probe

FIRST_PART = 8
"""Nodes for an eighth of all pods are added at first."""


def grow(
    verdict: FleetVerdict,
    probe: Probe,
    verify: Callable[[Fleet], FleetVerdict],
    is_over: Callable[[], bool],
) -> FleetVerdict:
    """Verify ever larger fleets until one is good; returns it, or that with the fewest pending pods."""
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
            break  # a node more for every pod did not help
        part = max(part // 2, 1)
    return best


def with_more(
    verdict: FleetVerdict, times: int, probe: Probe, requests: Ints | None = None
) -> Fleet | None:
    """A fleet with nodes for so many times the pods that stay pending, at most for as many as there are pods; None:
    pools have no further node for them."""
    options, fleet = probe.options, verdict.fleet
    requests = probe.requests if requests is None else requests
    most = int(probe.demand.sum()) // max(int(verdict.missing.sum()), 1)
    need = verdict.missing * max(min(times, most), 1)
    added = first_fit(options, requests, need, start=fleet.by_option())
    if not added:
        return None
    return spread_over_zones(added, options, start=fleet, but=verdict.lost_zone)


def with_larger(fleet: Fleet, probe: Probe) -> Fleet | None:
    """A fleet with half of the nodes of each type replaced by the largest that takes the same pods; None: there is no
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
    """The dearest type of the pool that holds at least as much of everything."""
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
