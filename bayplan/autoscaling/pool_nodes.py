"""Pool nodes: the nodes of a run that belong to pools, from launch to removal."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from ..api.node import ZONE, Node
from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.resources import CPU, MEMORY
from ..api.text.cron import parse_cron
from ..cluster.memory.workload_pods import DELETION_COST
from ..planning.node_groups import group_of_node
from ..planning.node_types import CAPACITY_TYPE, COST, INSTANCE_TYPE, POOL_LABEL, NodeType
from ..planning.pools import NodeBudget, NodePool
from ..sim.autoscaling_record import ScaledNode
from ..table import Ints, NodeTable
from .launch_options import LaunchOption

PodNeeds: TypeAlias = Sequence[tuple[Pod, int]]
"""A pod of each spec, the largest first, and how many there are."""

EXPECTED_S = 20.0
"""Seconds for which Karpenter does not remove a node that pods are expected on."""


@dataclass(slots=True, eq=False)
class PoolNode:
    """A node that exists or boots."""

    record: ScaledNode
    pool: NodePool
    type: NodeType
    pods: dict[str, Pod] = field(default_factory=dict)
    """The pods on it by uid, without daemons and static pods; terminating ones are among them."""
    changed_s: float = 0.0
    """Time of the last change of such a pod, or when the node joined."""
    expected_until_s: float = 0.0
    """Time until which pods are expected on it, and it is not removed."""
    eligible_s: float = math.inf
    """Time from which on Karpenter may consolidate it; infinite if it never may."""
    rank: tuple[int, float, str] = (0, 0.0, "")
    """Order of nodes of a pool with equal saving: the most expensive first, then by name."""
    name: str = ""
    """The name of the node."""
    had_pods: bool = False
    """Whether a pod ever ran on it, daemons and static pods apart."""

    known_needs: PodNeeds | None = None
    """Cached result of `needs`, until a pod is added, removed or changed."""
    known_disruption: float | None = None
    """Cached result of `disruption`, until then."""
    known_keeper: str | None = None
    """Reason why one of its pods must stay where it is, as `Blockers` found it, until then."""

    def __post_init__(self) -> None:
        self.name = self.record.name
        self.change(self.changed_s)

    def change(self, now_s: float) -> None:
        """Record that a pod was added or removed, or that the node joined."""
        self.changed_s = now_s
        after = self.pool.consolidate_after_s
        if after is not None:
            self.eligible_s = max(now_s + after, self.expected_until_s)

    def expect(self, until_s: float) -> None:
        """Keep the node for pods that are expected on it."""
        self.expected_until_s = max(self.expected_until_s, until_s)
        self.change(self.changed_s)

    def needs(self) -> PodNeeds:
        """The pods that would need another node."""
        if self.known_needs is None:
            counts: Counter[PodSpec] = Counter()
            samples: dict[PodSpec, Pod] = {}
            for pod in self.pods.values():
                if not pod.is_terminating:
                    counts[pod.spec] += 1
                    samples[pod.spec] = pod
            self.known_needs = _largest_first(samples, counts)
        return self.known_needs

    def disruption(self) -> float:
        """The disruption cost of taking it away: one, and about one for each of its pods."""
        if self.known_disruption is None:
            costs = (eviction_cost(p) for p in self.pods.values() if not p.is_terminating)
            self.known_disruption = 1.0 + sum(max(cost, 0.0) for cost in costs)
        return self.known_disruption

    def turn(self) -> tuple[float, tuple[int, float, str]]:
        """The order in which nodes are tried: the highest price for the least disruption first, then by rank."""
        return -(self.record.price or 0.0) / self.disruption(), self.rank

    @property
    def is_joined(self) -> bool:
        """Whether it can run pods."""
        return self.record.joined_s is not None

    @property
    def is_unused(self) -> bool:
        """Whether it joined and never ran a pod."""
        return self.is_joined and not self.had_pods

    @property
    def boots_until_s(self) -> float:
        """Time when it joins, or joined."""
        joined_s = self.record.joined_s
        return self.record.launched_s + self.type.boot_s if joined_s is None else joined_s


class PoolNodes:
    """All nodes of pools, with a record of the removed ones."""

    def __init__(self, pools: Iterable[NodePool]) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self.live: dict[str, PoolNode] = {}
        self.booting: dict[str, PoolNode] = {}
        self._ranks = {name: i for i, name in enumerate(self._pools)}
        self._joined: dict[int, dict[str, PoolNode]] = {}
        """Nodes that have joined, by their number of pods without daemons, and by name."""
        self.records: list[ScaledNode] = []
        self.use = PoolUse()
        self._last_number = 0

    def __iter__(self) -> Iterator[PoolNode]:
        return iter(self.live.values())

    def adopt(self, node: Node, now_s: float) -> PoolNode | None:
        """Count a node that exists already, by its labels; None if it is of no pool."""
        pool = self._pools.get(node.labels.get(POOL_LABEL) or group_of_node(node))
        kind = None if pool is None else _type_of(node, pool)
        if pool is None or kind is None:
            return None
        record = ScaledNode(
            node.name,
            pool.name,
            kind.name,
            node.labels.get(ZONE, ""),
            _price(node, kind),
            kind.is_spot,
            now_s,
            now_s,
            is_given=True,
        )
        return self._add(PoolNode(record, pool, kind, changed_s=now_s))

    def launch(
        self, option: LaunchOption, now_s: float, is_taken: Callable[[str], bool]
    ) -> PoolNode:
        """A new node that begins to boot; its name is one that `is_taken` does not refuse."""
        pool, kind = option.pool, option.type
        while True:
            self._last_number += 1
            name = f"{pool.name}-{self._last_number}"
            if name not in self.live and not is_taken(name):
                break
        record = ScaledNode(
            name, pool.name, kind.name, option.zone, kind.price, kind.is_spot, now_s
        )
        return self._add(PoolNode(record, pool, kind))

    def remove(self, node: PoolNode, now_s: float, why: str) -> None:
        """A node was removed."""
        del self.live[node.name]
        if node.is_joined:
            del self._joined[len(node.pods)][node.name]
        self.booting.pop(node.name, None)
        node.record.removed_s, node.record.why = now_s, node.record.why or why
        self.use.add(node.pool, node.record.zone, node.type.capacity, -1)

    def join(self, node: PoolNode, now_s: float) -> None:
        """Record that a node has booted."""
        node.record.joined_s = now_s
        node.change(now_s)
        del self.booting[node.name]
        self._count(node)

    def booting_rows(self, table: NodeTable) -> list[int]:
        """The rows of nodes that boot."""
        return [table.row_of[name] for name in self.booting if name in table.row_of]

    def expect_pods(self, names: Iterable[str], until_s: float) -> None:
        """Keep nodes for pods that are expected on them."""
        for name in names:
            node = self.live.get(name)
            if node is not None:
                node.expect(until_s)

    def put_pod(self, node: PoolNode, pod: Pod) -> bool:
        """Note a pod on a node, or its change; whether it is new there."""
        before = len(node.pods)
        node.pods[pod.uid], node.had_pods = pod, True
        node.known_needs = node.known_disruption = node.known_keeper = None
        return self._recount(node, before)

    def take_pod(self, node: PoolNode, pod: Pod) -> bool:
        """Note that a pod is not on a node any more; whether it was."""
        before = len(node.pods)
        node.pods.pop(pod.uid, None)
        node.known_needs = node.known_disruption = node.known_keeper = None
        return self._recount(node, before)

    def empty(self) -> Iterable[PoolNode]:
        """Nodes that have joined and have no pods but daemons, in the order in which they became so."""
        return self._joined.get(0, {}).values()

    def recent(self, now_s: float) -> set[str]:
        """Nodes that have joined and changed within the time for which their pool leaves them alone."""
        waits = [pool.consolidate_after_s or 0.0 for pool in self._pools.values()]
        if not any(waits):
            return set()
        return {
            node.name
            for node in self.live.values()
            if now_s < node.changed_s + (node.pool.consolidate_after_s or 0.0)
        }

    def by_savings(self, now_s: float) -> list[PoolNode]:
        """Nodes with pods that are eligible now, in the order in which they are tried."""
        found = [
            node
            for number, nodes in self._joined.items()
            if number
            for node in nodes.values()
            if node.eligible_s <= now_s
        ]
        found.sort(key=PoolNode.turn)
        return found

    def _add(self, node: PoolNode) -> PoolNode:
        self.live[node.name] = node
        node.rank = self._ranks[node.pool.name], -(node.record.price or 0.0), node.name
        if node.is_joined:
            self._count(node)
        else:
            self.booting[node.name] = node
        self.records.append(node.record)
        self.use.add(node.pool, node.record.zone, node.type.capacity)
        return node

    def _count(self, node: PoolNode) -> None:
        self._joined.setdefault(len(node.pods), {})[node.name] = node

    def _recount(self, node: PoolNode, before: int) -> bool:
        """Whether the number of pods changed."""
        if len(node.pods) == before:
            return False
        if node.is_joined:
            del self._joined[before][node.name]
            self._count(node)
        return True


def all_needs(nodes: Sequence[PoolNode]) -> PodNeeds:
    """The pods of several nodes that need another node if these are removed."""
    if len(nodes) == 1:
        return nodes[0].needs()
    counts: Counter[PodSpec] = Counter()
    samples: dict[PodSpec, Pod] = {}
    for node in nodes:
        for pod, count in node.needs():
            counts[pod.spec] += count
            samples[pod.spec] = pod
    return _largest_first(samples, counts)


def _largest_first(samples: Mapping[PodSpec, Pod], counts: Mapping[PodSpec, int]) -> PodNeeds:
    largest = sorted(samples.values(), key=size_of, reverse=True)
    return [(pod, counts[pod.spec]) for pod in largest]


def size_of(pod: Pod) -> tuple[int, int]:
    """By which pods are placed, the largest first."""
    return pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)


def next_of(rows: Ints, last: int) -> int:
    """The first of the rows after `last`, else the first of all: the begin of the next search of Cluster Autoscaler."""
    later = rows[rows > last]
    return int(later[0] if len(later) else rows[0])


def _type_of(node: Node, pool: NodePool) -> NodeType | None:
    """The type of a node of a pool, by name and capacity type; else the only type of the pool."""
    name = node.labels.get(INSTANCE_TYPE)
    found = [one for one in pool.types if one.name == name]
    capacity_type = node.labels.get(CAPACITY_TYPE)
    exact = [one for one in found if one.labels.get(CAPACITY_TYPE) == capacity_type]
    if exact or found:
        return (exact or found)[0]
    return pool.types[0] if len(pool.types) == 1 else None


def _price(node: Node, kind: NodeType) -> float | None:
    """The price on the node itself, else the price of its type."""
    text = (node.annotations or {}).get(COST)
    try:
        return kind.price if text is None else float(text)
    except ValueError:
        return kind.price


def eviction_cost(pod: Pod) -> float:
    """One, more or less by the annotation of its deletion cost and its priority, between -10 and 10."""
    text = pod.annotations.get(DELETION_COST, "0")
    deletion = int(text) if re.fullmatch(r"-?[0-9]{1,10}", text) else 0
    return min(max(1.0 + deletion / 2**27 + pod.priority / 2**25, -10.0), 10.0)


EMPTY, UNDERUTILIZED, UNNEEDED = "empty", "underutilized", "unneeded"
"""Reasons; the first two are Karpenter's, and budgets have them with a capital letter."""


def allowed_disruptions(
    pool: NodePool, reason: str, now: datetime, *, nodes: int, disrupted: int
) -> int:
    """Number of `nodes` nodes that may still be removed while `disrupted` are drained."""
    active = [
        budget.allowed(nodes)
        for budget in pool.budgets
        if (not budget.reasons or reason.capitalize() in budget.reasons) and is_active(budget, now)
    ]
    return max(min(active, default=nodes) - disrupted, 0)


def is_active(budget: NodeBudget, now: datetime) -> bool:
    """Whether the budget holds now."""
    if not budget.schedule or budget.duration_s is None:
        return True
    begun = now - timedelta(seconds=budget.duration_s)
    next_start = parse_cron(budget.schedule).next_after(begun)
    return next_start is not None and next_start <= now


class PoolUse:
    """Counts the nodes of each pool, those that boot included."""

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()
        self.zones: Counter[tuple[str, str]] = Counter()
        """Nodes by pool and zone."""
        self._capacity: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.without_maximum = False
        """Whether the maxima of pools are left out."""

    def copy(self) -> PoolUse:
        """A copy of the counts, for a trial."""
        other = PoolUse()
        other.nodes, other.zones = self.nodes.copy(), self.zones.copy()
        for name, capacity in self._capacity.items():
            other._capacity[name] = capacity.copy()
        return other

    def add(self, pool: NodePool, zone: str, capacity: Mapping[str, int], sign: int = 1) -> None:
        """Count a node, or a removed one with -1."""
        self.nodes[pool.name] += sign
        self.zones[pool.name, zone] += sign
        if pool.limits:
            for name in pool.limits:
                self._capacity[pool.name][name] += sign * capacity.get(name, 0)

    def room(self, pool: NodePool) -> int | None:
        """Number of nodes that the pool may still add up to its maximum; None if it has none."""
        if pool.maximum is None or self.without_maximum:
            return None
        return max(pool.maximum - self.nodes[pool.name], 0)

    def allows(self, pool: NodePool, more: NodeType) -> bool:
        """Whether maximum and limits allow one more node of a type."""
        return self.room(pool) != 0 and pool.fits_limits(self._capacity[pool.name], more)
