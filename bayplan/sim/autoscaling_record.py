"""Autoscaling record: the nodes that an autoscaler adds and removes during a simulation, and their price.

A node costs its price from its launch, before it can run pods, until it is gone. Costs are sums over nodes, and the
series over time are their derivatives, so both always agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cluster.memory.absent_owners import is_daemon
from .measures.waits import distribution, latencies
from .outcomes import PodResult
from .plain_part import PlainPart
from .use_over_time import UseSeries

HOUR_S = 3600.0
COST, NODES = "cost", "nodes"


@dataclass(slots=True)
class ScaledNode(PlainPart):
    """One node of a pool; times are seconds on the simulation's clock."""

    PLAIN = "name pool type zone spot=is_spot price launched=launched_s~ joined=joined_s~ removed=removed_s~ why"

    name: str
    pool: str
    type: str
    zone: str
    price: float | None
    """Per hour; None if unknown."""
    is_spot: bool = False
    launched_s: float = 0.0
    joined_s: float | None = None
    """Time when it could run pods; None before."""
    removed_s: float | None = None
    why: str = ""
    """Reason why it was removed."""
    is_given: bool = False
    """Whether it is an initial node, or was added by a timeline."""

    def hours(self, end_s: float) -> float:
        """Hours for which it existed until `end_s`."""
        end = end_s if self.removed_s is None else min(self.removed_s, end_s)
        return max(end - self.launched_s, 0.0) / HOUR_S

    def cost(self, end_s: float) -> float:
        """Cost of the node until `end_s`; 0 if its price is unknown."""
        return (self.price or 0.0) * self.hours(end_s)

    def row(self, end_s: float) -> dict[str, Any]:
        """Plain data, with its cost until `end_s`."""
        return {**self.to_dict(), "cost": round(self.cost(end_s), 6)}


@dataclass(frozen=True, slots=True)
class ScalingEviction(PlainPart):
    """A pod that was removed from its node because the node is removed."""

    PLAIN = "time=time_s~ pod node why"

    time_s: float
    pod: str
    node: str
    why: str


@dataclass(slots=True)
class UnplaceablePods(PlainPart):
    """Pods of one workload that no node of any pool can ever run, and why."""

    PLAIN = "workload pods=count reasons"

    workload: str
    count: int
    reasons: dict[str, list[str]]
    """The types, as `pool/type`, that a reason is about."""


@dataclass(frozen=True, slots=True)
class NeglectedPod(PlainPart):
    """A pod that waits at the end of a run, though it fits on a new node that its pool allows."""

    PLAIN = "pod pool type zone message"

    pod: str
    pool: str
    type: str
    zone: str

    @property
    def message(self) -> str:
        """The error in a sentence."""
        where = f" in zone {self.zone}" if self.zone else ""
        return (
            f"pod {self.pod} waits at the end, though pool {self.pool} may have a new node of type "
            f"{self.type}{where} that would take it"
        )


@dataclass(slots=True)
class ScalingReport:
    """Actions of an autoscaler in a run, and the cost of its nodes."""

    autoscaler: str
    nodes: list[ScaledNode] = field(default_factory=list)
    """The nodes of pools, also those of the input, in the order in which they were launched."""
    evictions: list[ScalingEviction] = field(default_factory=list)
    unplaceable: list[UnplaceablePods] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    neglected: list[NeglectedPod] = field(default_factory=list)
    """Errors of the autoscaler; empty in a correct run."""
    end_s: float = 0.0

    @property
    def notices(self) -> list[str]:
        """Errors, pods that fit no pool, and remarks, to print with other results."""
        errors = [f"error: {one.message}" for one in self.neglected]
        unplaceable = [f"{one.workload}: {one.count:,} fit no pool" for one in self.unplaceable]
        return [*errors, *unplaceable, *self.remarks]

    @property
    def cost(self) -> float:
        """The price of all nodes for the time they existed."""
        return sum(node.cost(self.end_s) for node in self.nodes)

    @property
    def launched(self) -> int:
        """Number of nodes that the autoscaler launched."""
        return sum(not node.is_given for node in self.nodes)

    @property
    def removed(self) -> int:
        """Number of nodes that were removed."""
        return sum(node.removed_s is not None for node in self.nodes)

    @property
    def unpriced(self) -> int:
        """Number of nodes without a price."""
        return sum(node.price is None for node in self.nodes)

    def series(self) -> list[UseSeries]:
        """The cost per hour, the number of nodes, and the number of nodes of each type, over time."""
        if not self.end_s:
            return []
        types = dict.fromkeys(f"{node.pool}/{node.type}" for node in self.nodes)
        return [
            self._series(COST, lambda node: node.price or 0.0),
            self._series(NODES, lambda node: 1.0),
            *(
                self._series(
                    f"{NODES}: {name}",
                    lambda node, name=name: float(f"{node.pool}/{node.type}" == name),  # type: ignore[misc]  # mypy: default of a lambda
                )
                for name in types
            ),
        ]

    def _series(self, name: str, weight: Callable[[ScaledNode], float]) -> UseSeries:
        """The sum of `weight` over the nodes that exist, from each change on."""
        changes: list[tuple[float, float]] = []
        for node in self.nodes:
            amount = weight(node)
            if amount:
                changes.append((node.launched_s, amount))
                if node.removed_s is not None:
                    changes.append((node.removed_s, -amount))
        changes.sort(key=lambda change: change[0])
        times, values, total = [0.0], [0.0], 0.0
        for at_s, amount in changes:
            total += amount
            if at_s > times[-1]:
                times.append(at_s)
                values.append(round(total, 9))
            else:
                values[-1] = round(total, 9)
        return UseSeries(name, times, values, self.end_s)

    def by_type(self) -> list[dict[str, Any]]:
        """One row per pool and type: nodes launched, at the peak and at the end, node-hours and cost."""
        groups: dict[tuple[str, str], list[ScaledNode]] = {}
        for node in self.nodes:
            groups.setdefault((node.pool, node.type), []).append(node)
        return [
            {
                "pool": pool,
                "type": name,
                "price": nodes[0].price,
                "spot": nodes[0].is_spot,
                "nodes": len(nodes),
                "peak": int(
                    ScalingReport("", nodes, end_s=self.end_s)._series("", lambda _: 1.0).peak
                ),
                "end": sum(node.removed_s is None for node in nodes),
                "hours": round(sum(node.hours(self.end_s) for node in nodes), 6),
                "cost": round(sum(node.cost(self.end_s) for node in nodes), 6),
            }
            for (pool, name), nodes in groups.items()
        ]

    def measures(self) -> dict[str, float]:
        """Measures of the autoscaling of a run; docs/measures.md has the names."""
        series = self.series()
        return {
            "cost": self.cost,
            "meanCostPerHour": self.cost / self.end_s * HOUR_S if self.end_s else 0.0,
            "peakCostPerHour": series[0].peak if series else 0.0,
            "peakPoolNodes": series[1].peak if series else float(len(self.nodes)),
            "nodesLaunched": self.launched,
            "nodesRemoved": self.removed,
            "scalingEvictions": len(self.evictions),
            "unplaceablePods": sum(one.count for one in self.unplaceable),
        }

    def frames(self) -> dict[str, Callable[[], list[dict[str, Any]]]]:
        """Rows for frames: the nodes, and each change of cost per hour and numbers of nodes."""
        return {
            "scaled": lambda: [node.row(self.end_s) for node in self.nodes],
            "cost": lambda: [row for one in self.series() for row in one.rows()],
        }

    def evictions_by_reason(self) -> dict[str, int]:
        """Number of pods that were taken off nodes, by reason."""
        return dict(Counter(eviction.why for eviction in self.evictions))

    def to_dict(self, pods: Sequence[PodResult]) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        series = self.series()
        return {
            "autoscaler": self.autoscaler,
            "cost": round(self.cost, 6),
            "costPerHour": round(series[0].values[-1], 6) if series else None,
            "meanCostPerHour": round(self.cost / self.end_s * HOUR_S, 6) if self.end_s else None,
            "launched": self.launched,
            "removed": self.removed,
            "unpriced": self.unpriced,
            "waiting": waiting_times(pods),
            "byType": self.by_type(),
            "overTime": [one.to_dict() for one in series],
            "nodes": [node.row(self.end_s) for node in self.nodes],
            "evictions": [eviction.to_dict() for eviction in self.evictions],
            "unplaceable": [one.to_dict() for one in self.unplaceable],
            "remarks": list(self.remarks),
            "errors": [one.to_dict() for one in self.neglected],
        }


def waiting_times(pods: Iterable[PodResult]) -> dict[str, float]:
    """Median, 95th percentile and maximum of the seconds that pods other than daemons waited for a node."""
    found = distribution("", latencies(one for one in pods if not is_daemon(one.pod)))
    return {name: round(found[name], 6) for name in ("p50", "p95", "max")}
