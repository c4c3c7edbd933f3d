"""Node plan: the answer of the planner, as text, plain data and frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..answers.what_if.answer import PodChange
from ..api.pod import Pod
from ..api.resources import PODS
from ..api.wire.encode import to_dict
from ..errors import counted
from ..sim.html_summary import ShownAnswer
from ..sim.plain_part import PlainPart
from .fleet import Fleet, NodeOption, fleet_objects, node_names
from .fleet_check import FleetVerdict, OtherSeeds
from .node_probe import UnplaceableClass, class_label
from .node_types import NodeType
from .search_state import SearchState

LACKING = ("Insufficient ", "Too many pods")
"""Text in the scheduler's messages about a lack of resources."""
BETWEEN_PODS = ("affinity rules", "topology spread constraints")
"""Refusals by other pods, which more nodes of the same kind do not change."""


@dataclass(slots=True)
class PlannedNodes(PlainPart):
    """Equal nodes of a plan."""

    PLAIN = "pool type zone? spot=is_spot count price"

    pool: str
    type: str
    zone: str
    count: int
    price: float
    """Price of one node per hour."""
    is_spot: bool
    use: dict[str, float]
    """Utilisation of all nodes together, by resource."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **PlainPart.to_dict(self),
            "total": round(self.price * self.count, 6),
            "use": {name: round(share, 4) for name, share in self.use.items()},
        }


@dataclass(slots=True, repr=False)
class NodePlan(PlainPart, ShownAnswer):
    """The nodes by type and zone, their price, and the lower bound of all plans."""

    PLAIN = (
        "kubernetesVersion=release nodes=node_count price~ bound~ gap~ firstFitPrice~ pods=pod_count groups"
        " pending=pending_rows unplaceable demands notices seconds~ firstPlanSeconds=first_plan_s~ simulations"
        " interrupted=is_interrupted outOfTime=is_out_of_time otherSeeds exchange"
    )

    groups: list[PlannedNodes]
    price: float
    bound: float
    pod_count: int
    placements: dict[str, str] = field(default_factory=dict)
    """The node of each planned pod in the simulation that verified the plan."""
    first_fit_price: float | None = None
    """Price of the packing of first fit decreasing, before scheduling; None if pools are too small."""
    pending: Counter[str] = field(default_factory=Counter)
    """Pods by workload for which pools have no more nodes, with their messages."""
    messages: dict[str, str] = field(default_factory=dict)
    unplaceable: list[UnplaceableClass] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    demands: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    first_plan_s: float | None = None
    simulations: int = 0
    is_interrupted: bool = False
    is_out_of_time: bool = False
    fleet: Fleet = field(default_factory=Fleet)
    options: Sequence[NodeOption] = ()
    other_seeds: OtherSeeds | None = None
    """None if there is no plan, or the search was interrupted."""
    exchange: NodeExchange | None = None
    """Set if the nodes of an existing cluster are planned again."""
    release: str = ""
    """The kube-scheduler whose decisions verified the plan."""

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return sum(group.count for group in self.groups)

    @property
    def is_complete(self) -> bool:
        """Whether every pod has a node, also after the last step of an exchange."""
        if self.exchange is not None and self.exchange.pending:
            return False
        return not self.pending and not self.unplaceable

    @property
    def lacks_room(self) -> bool:
        """Whether pods that stay pending find too little of a resource on some node, and no rule between pods keeps
        them from others.
        """
        return any(
            any(text in one for text in LACKING) and not any(text in one for text in BETWEEN_PODS)
            for one in self.messages.values()
        )

    @property
    def kept_apart(self) -> list[str]:
        """The workloads with pending pods that a rule between pods keeps from nodes."""
        return [
            name
            for name, message in self.messages.items()
            if name in self.pending and any(text in message for text in BETWEEN_PODS)
        ]

    @property
    def gap(self) -> float:
        """Distance of the price from the bound, as a share of the bound."""
        return (self.price - self.bound) / self.bound if self.bound > 0 else 0.0

    def headline(self) -> str:
        """`14 nodes, 3.61 per hour; no plan is below 3.48 (3.7 %)`."""
        text = f"{counted(self.node_count, 'node')}, {self.price:,.2f} per hour"
        if self.pending:
            return f"no plan: {sum(self.pending.values()):,} pods stay pending with {text}"
        if self.unplaceable:
            number = sum(one.count for one in self.unplaceable)
            pods = "1 pod that fits" if number == 1 else f"{number:,} pods that fit"
            text = f"{text}, without {pods} no pool"
        if not self.groups and not self.pod_count:
            return text
        if self.bound <= 0:
            return f"{text}; there was no time for a bound"
        if self.gap < 0.0005:
            return f"{text}; no plan is cheaper"
        return f"{text}; no plan is below {_down(self.bound)} ({self.gap * 100:.1f} %)"

    def shown_rows(self) -> list[dict[str, Any]]:
        """The nodes by pool, type and zone."""
        return [
            {
                "pool": group.pool,
                "type": group.type,
                "zone": group.zone,
                "count": group.count,
                "price": group.price,
                "total": group.price * group.count,
                **{name: group.use[name] for name in group.use},
            }
            for group in self.groups
        ]

    def node_names(self) -> list[str]:
        """The names of the nodes."""
        return [name for name, _ in node_names(self.fleet, self.options)]

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes, with their objects, as manifests."""
        return [to_dict(obj) for obj in fleet_objects(self.fleet, self.options)]

    @property
    def pending_rows(self) -> list[dict[str, Any]]:
        """The pending pods, with their messages."""
        return [
            {"workload": name, "pods": count, "message": self.messages.get(name, "")}
            for name, count in self.pending.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        document = PlainPart.to_dict(self)
        document["gap"] = document["gap"] if self.bound > 0 else None
        absent = {name for name in ("otherSeeds", "exchange") if document[name] is None}
        return {name: value for name, value in document.items() if name not in absent}


def _down(bound: float) -> str:
    """A bound with two digits, never rounded up."""
    return f"{int(bound * 100 + 1e-9) / 100:,.2f}"


def describe_nodes(
    fleet: Fleet, options: Sequence[NodeOption], pods: Sequence[Pod]
) -> list[PlannedNodes]:
    """The nodes of a fleet by pool, type and zone, with the use of the pods on them."""
    group_of = dict(node_names(fleet, options))
    use: defaultdict[tuple[NodeType, str], Counter[str]] = defaultdict(Counter)
    for pod in pods:
        group = group_of.get(pod.node_name)
        if group is not None:
            amounts = use[options[group.option].type, group.zone]
            amounts[PODS] += 1
            amounts.update(pod.requests)
    counts: Counter[tuple[NodeType, str]] = Counter()
    for group, count in fleet.items():
        counts[options[group.option].type, group.zone] += count
    return [
        PlannedNodes(
            one.pool,
            one.name,
            zone,
            count,
            one.price or 0.0,
            one.is_spot,
            {
                name: use[one, zone][name] / (amount * count)
                for name, amount in one.allocatable.items()
                if amount and (name in ("cpu", "memory", PODS) or use[one, zone][name])
            },
        )
        for (one, zone), count in sorted(
            counts.items(), key=lambda item: (item[0][0].pool, item[0][0].name, item[0][1])
        )
    ]


def pending_by_workload(pods: Sequence[Pod]) -> Counter[str]:
    """The number of pods of each workload."""
    return Counter(map(class_label, pods))


def plan_of(state: SearchState, verdict: FleetVerdict, options: Sequence[NodeOption]) -> NodePlan:
    """The plan that a search found, or the last fleet that it tried."""
    simulation = verdict.simulation
    pods = list(simulation.cluster.list("Pod")) if simulation is not None else []
    price = verdict.fleet.price(options)
    return NodePlan(
        describe_nodes(verdict.fleet, options, pods),
        price,
        min(state.bound, price) if state.best is not None else state.bound,
        sum(1 for pod in pods if pod.node_name),
        {pod.key: pod.node_name for pod in pods if pod.node_name},
        state.first_fit_price,
        pending_by_workload(verdict.pending) if state.best is None else Counter(),
        seconds=round(state.elapsed_s, 3),
        first_plan_s=state.first_plan_s,
        is_interrupted=state.is_interrupted,
        is_out_of_time=state.is_out_of_time,
        fleet=verdict.fleet,
        options=options,
    )


@dataclass(slots=True)
class NodeExchange(PlainPart):
    """The steps from a cluster to the planned one."""

    PLAIN = "priceBefore~ stayingPrice~ kept added removed staying@node,reason unknown moves pending@pod,message"

    price_before: float
    """Price of the nodes whose type is known, per hour."""
    staying_price: float = 0.0
    """The price of the nodes that no plan removes."""
    kept: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """In the order in which they are drained."""
    staying: dict[str, str] = field(default_factory=dict)
    """The nodes that are never removed, each with the reason; no pod is planned on them."""
    unknown: list[str] = field(default_factory=list)
    """The nodes that match no type."""
    moves: list[PodChange] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    """Pods that have no node after the last step, with their messages."""
    is_possible: bool = False
    """False if pods that run now would have no node; then there are no steps."""
    types: dict[str, str] = field(default_factory=dict)
    """The type of each node that is added or removed."""

    def rows_of(self, names: Iterable[str]) -> list[dict[str, str]]:
        """Nodes with their types."""
        return [{"node": name, "type": self.types[name]} for name in names]

    def to_dict(self) -> dict[str, Any]:
        changed = {"added": self.rows_of(self.added), "removed": self.rows_of(self.removed)}
        moves = [
            {"pod": move.key, "from": move.was.node or None, "to": move.now.node or None}
            for move in self.moves
        ]
        return PlainPart.to_dict(self) | changed | {"moves": moves}
