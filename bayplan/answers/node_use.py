"""Node use: capacity and usage of a cluster's nodes, in total and per node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..sim.measures.amounts import Floats, shares_of
from ..sim.plain_part import PlainPart
from ..sim.totals import MAIN_RESOURCES, PODS, ClusterTotals, ResourceTotal, keeps_away
from ..table import ALL, Bools, Ints, NodeTable


@dataclass(frozen=True, slots=True)
class ResourceRoom(PlainPart):
    """Capacity and usage of one resource in the scheduler's units: cpu in milli, others in whole
    units."""

    PLAIN = "resource allocatable# before# after# free# utilisation~"

    resource: str
    allocatable: int
    before: int
    """Usage before."""
    after: int

    @property
    def free(self) -> int:
        return self.allocatable - self.after

    @property
    def utilisation(self) -> float:
        """Used share; 0 without capacity."""
        return self.after / self.allocatable if self.allocatable else 0.0


def offered(table: NodeTable, resource: str) -> Ints:
    """int64 per row: allocatable amount."""
    return table.max_pods if resource == PODS else table.allocatable[resource]


def used(table: NodeTable, resource: str) -> Ints:
    """int64 per row: amount requested by pods."""
    return table.pod_count if resource == PODS else table.requested[resource]


def utilisation(table: NodeTable, resource: str) -> Floats:
    """float64 per row: used share; 0 without capacity."""
    return shares_of(used(table, resource), offered(table, resource))


def cluster_totals(table: NodeTable) -> ClusterTotals:
    """The totals of all nodes; what is free on cordoned and on tainted nodes is apart."""
    live: Bools = table.live
    cordoned: Bools = live & table.unschedulable
    tainted: Bools = live & ~cordoned & (table.taints.count(keeps_away, ALL) > 0)
    found = ClusterTotals({}, table.node_count, int(tainted.sum()), int(cordoned.sum()))
    for name in known_resources(table):
        offers, uses = offered(table, name), used(table, name)
        free = np.maximum(offers - uses, 0)
        open_, behind, closed = (
            int(free[rows].sum()) for rows in (live & ~cordoned & ~tainted, tainted, cordoned)
        )
        sums = int(offers[live].sum()), int(uses[live].sum())
        found.resources[name] = ResourceTotal(*sums, open_, behind, closed)
    return found


def known_resources(table: NodeTable) -> tuple[str, ...]:
    """The resources of the nodes, cpu and memory first, pods last."""
    others = sorted(name for name in table.allocatable if name not in (*MAIN_RESOURCES, PODS))
    return (*MAIN_RESOURCES, *others, PODS)
