"""Pool use: how many nodes a pool has, and how much of its limits they take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from ..planning.node_types import NodeType
from ..planning.pools import NodePool


class PoolUse:
    """Counts the nodes of each pool, those that boot included."""

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()
        self.zones: Counter[tuple[str, str]] = Counter()
        """Nodes by pool and zone."""
        self._capacity: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def copy(self) -> PoolUse:
        """The same counts, to be changed for a trial."""
        other = PoolUse()
        other.nodes, other.zones = self.nodes.copy(), self.zones.copy()
        for name, capacity in self._capacity.items():
            other._capacity[name] = capacity.copy()
        return other

    def add(self, pool: NodePool, zone: str, capacity: Mapping[str, int], sign: int = 1) -> None:
        """Count a node, or with -1 one that is gone."""
        self.nodes[pool.name] += sign
        self.zones[pool.name, zone] += sign
        if pool.limits:
            for name in pool.limits:
                self._capacity[pool.name][name] += sign * capacity.get(name, 0)

    def room(self, pool: NodePool) -> int | None:
        """How many more nodes the pool may have by its maximum; None: any number."""
        return None if pool.maximum is None else max(pool.maximum - self.nodes[pool.name], 0)

    def allows(self, pool: NodePool, more: NodeType) -> bool:
        """Whether maximum and limits allow one more node of a type."""
        return self.room(pool) != 0 and pool.fits_limits(self._capacity[pool.name], more)
