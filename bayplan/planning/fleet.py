"""Fleet: a number of nodes of each type in each zone, its price, and its nodes as objects."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..api.node import Node
from ..api.resources import CPU, MEMORY
from ..cluster.objects.object_index import ClusterObject
from ..table import Bools, Ints
from .node_types import NodeType
from .pools import NodePool

REDUCED = (CPU, MEMORY, "ephemeral-storage")
"""The resources of which a headroom is kept."""
CPU_COLUMN, MEMORY_COLUMN = 1, 2
"""Positions of cpu and memory in vectors of amounts; the number of pods is the first."""


@dataclass(frozen=True, eq=False)
class NodeOption:
    """A type of nodes in zones that make no difference to any pod of the workload."""

    pool: NodePool
    type: NodeType
    zones: tuple[str, ...]
    free: Ints
    """int64 per resource: amounts that an empty node has left after its daemons."""
    accepts: Bools
    """bool per class of pods: whether an empty node can run one."""
    caps: Ints
    """int64 per class of pods: how many copies a node can run, apart from resources."""

    @property
    def price(self) -> float:
        """Per hour."""
        assert self.type.price is not None, "types without a price are refused before"
        return self.type.price


@dataclass(frozen=True, slots=True, order=True)
class NodeGroupKey:
    """Equal nodes of a fleet: number of the option, and zone."""

    option: int
    zone: str


class Fleet(Counter[NodeGroupKey]):
    """Number of nodes of each option in each zone."""

    def key(self) -> tuple[tuple[NodeGroupKey, int], ...]:
        """Equal for equal fleets."""
        return tuple(sorted(item for item in self.items() if item[1] > 0))

    def price(self, options: Sequence[NodeOption]) -> float:
        """Per hour."""
        return sum(options[group.option].price * count for group, count in self.items())

    def size(self) -> int:
        """The number of nodes."""
        return sum(self.values())

    def by_option(self) -> Counter[int]:
        """Nodes per option, in all zones."""
        found: Counter[int] = Counter()
        for group, count in self.items():
            found[group.option] += count
        return found

    def changed(self, changes: Mapping[NodeGroupKey, int]) -> Fleet:
        """A copy with some nodes more or fewer."""
        fleet = Fleet(self)
        for group, count in changes.items():
            fleet[group] += count
        return Fleet({group: count for group, count in fleet.items() if count > 0})

    def zones(self) -> list[str]:
        """The zones that have nodes."""
        return sorted({group.zone for group, count in self.items() if count > 0})


def spread_over_zones(
    counts: Mapping[int, int],
    options: Sequence[NodeOption],
    start: Fleet | None = None,
    within: Collection[str] = (),
) -> Fleet:
    """Nodes by option as a fleet, each in the zone with the least cpu so far, of those `within` if there are any.

    Nodes that run different pods are spread apart from each other.
    """
    fleet = Fleet(start or {})
    weight: defaultdict[tuple[bytes, str], float] = defaultdict(float)
    kinds = [one.accepts.tobytes() for one in options]
    for group, count in fleet.items():
        kind = kinds[group.option]
        weight[kind, group.zone] += options[group.option].type.allocatable.get(CPU, 0) * count
    sizes = sorted(
        counts.items(), key=lambda item: (-options[item[0]].type.allocatable.get(CPU, 0), item[0])
    )
    for option, count in sizes:
        one, kind = options[option], kinds[option]
        zones = [zone for zone in one.zones if zone in within] or list(one.zones)
        groups = {zone: NodeGroupKey(option, zone) for zone in zones}
        size = one.type.allocatable.get(CPU, 0)
        if len(zones) == 1:
            weight[kind, zones[0]] += size * count
            fleet[groups[zones[0]]] += count
            continue
        for _ in range(count):
            _, zone = min((weight[kind, name], name) for name in zones)
            weight[kind, zone] += size
            fleet[groups[zone]] += 1
    return fleet


def node_names(fleet: Fleet, options: Sequence[NodeOption]) -> Iterator[tuple[str, NodeGroupKey]]:
    """The names of a fleet's nodes, in order: `<pool>-<type>-<zone>-<number>`."""
    numbers: Counter[str] = Counter()
    for group, count in fleet.key():
        one = options[group.option]
        parts = (one.pool.name, one.type.name, "spot" if one.type.is_spot else "", group.zone)
        stem = "-".join(part for part in parts if part).lower().replace("_", "-")
        for _ in range(count):
            numbers[stem] += 1
            yield f"{stem}-{numbers[stem]}", group


def fleet_objects(
    fleet: Fleet, options: Sequence[NodeOption], headroom: float = 0.0
) -> list[ClusterObject]:
    """The nodes of a fleet with their objects; with a headroom they have less to give."""
    objects: list[ClusterObject] = []
    for name, group in node_names(fleet, options):
        for obj in options[group.option].type.make_objects(name, group.zone):
            objects.append(reduced(obj, headroom) if headroom and isinstance(obj, Node) else obj)
    return objects


def reduced(node: Node, headroom: float) -> Node:
    """The node without a share of its cpu, memory and storage."""
    allocatable = {
        name: int(amount * (1 - headroom)) if name in REDUCED else amount
        for name, amount in node.allocatable.items()
    }
    return node.replace(allocatable=allocatable)


def pools_allow(fleet: Fleet, options: Sequence[NodeOption]) -> bool:
    """Whether a fleet keeps the minimum, the maximum and the limits of every pool."""
    counts = fleet.by_option()
    return not overdrawn_pools(fleet, options) and all(
        sum(counts[i] for i, one in enumerate(options) if one.pool is pool) >= pool.minimum
        for pool in all_pools(options)
    )


def overdrawn_pools(fleet: Fleet, options: Sequence[NodeOption]) -> list[NodePool]:
    """The pools of which a fleet has more than they may have."""
    count: Counter[NodePool] = Counter()
    use: defaultdict[NodePool, Counter[str]] = defaultdict(Counter)
    for group, number in fleet.items():
        one = options[group.option]
        count[one.pool] += number
        for name in one.pool.limits:
            use[one.pool][name] += one.type.capacity.get(name, 0) * number
    return [
        pool
        for pool in count
        if (pool.maximum is not None and count[pool] > pool.maximum)
        or any(use[pool][name] > limit for name, limit in pool.limits.items())
    ]


def free_of(amounts: Mapping[str, int], resources: Sequence[str]) -> Ints:
    """Amounts as a vector; int64 per resource."""
    return np.array([amounts.get(name, 0) for name in resources], dtype=np.int64)


def all_pools(options: Iterable[NodeOption]) -> list[NodePool]:
    """The pools of some options, each once."""
    return list(dict.fromkeys(one.pool for one in options))


DIGITS = 6
"""Digits after the point in which prices are compared."""
MOST_STEPS = 20_000_000
TOLERANCE = 1e-7


def next_sum(bound: float, prices: Sequence[float]) -> float:
    """The least sum of any numbers of these prices that is not below the bound, or the bound where that takes long."""
    units = sorted({round(price * 10**DIGITS) for price in prices})
    exact = all(abs(price * 10**DIGITS - round(price * 10**DIGITS)) < 1e-3 for price in prices)
    if not units or not exact or bound <= 0:
        return bound
    step: int = math.gcd(*units)
    start = math.ceil(bound * (1 - TOLERANCE) * 10**DIGITS / step)
    sizes = [unit // step for unit in units]
    length = start + sizes[0] + 1
    if length > MOST_STEPS:
        return bound
    # A bit for each sum, counted in steps.
    sums, mask = 1, (1 << length) - 1
    for size in sizes:
        shift = size
        while shift < length:  # 1, 2, 4 ... more nodes of this price
            sums = (sums | sums << shift) & mask
            shift *= 2
    above = sums >> start
    found = start + (above & -above).bit_length() - 1
    raised: float = found * step / 10**DIGITS
    return max(bound, raised)


def fill_level(has: Ints, room: Ints, count: int) -> int:
    """The highest level that `count` pods reach on every node, if the node with the fewest pods is always next.

    Nodes have `has` pods, and room for `room` more (int64 per node).
    """
    low, high = 0, int((has + room).max(initial=0))
    while low < high:
        level = (low + high + 1) // 2
        if np.clip(level - has, 0, room).sum() <= count:
            low = level
        else:
            high = level - 1
    return low
