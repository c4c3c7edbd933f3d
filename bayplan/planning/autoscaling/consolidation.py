"""Consolidation: which nodes Karpenter takes away by choice.

Facts from its documentation of disruption: nodes without pods go first; then several nodes whose pods fit elsewhere, or
beside them on one new node that is cheaper than all of them; then single ones. Nodes with fewer pods are tried first.
Budgets of the pool, annotations and disruption budgets of pods keep nodes. A spot node is not replaced by a spot node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ...api.node import Node
from ..pools import WHEN_UNDERUTILIZED, NodePool
from .blockers import Blockers
from .launch_options import LaunchOption
from .pool_budgets import EMPTY, UNDERUTILIZED, allowed_disruptions
from .pool_nodes import PoolNode, PoolNodes
from .relocation import Relocation

MAX_NODES, MAX_PODS = 100, 300
"""Of a group of nodes that are tried together."""
MAX_SINGLE = 20
"""Single nodes that are tried at a time; the next time goes on behind them."""


@dataclass(slots=True)
class RemovalCommand:
    """Nodes to take away, and what is launched before."""

    nodes: list[PoolNode]
    why: str
    launches: list[LaunchOption] = field(default_factory=list)


class Consolidation:
    """Decides for all pools."""

    def __init__(
        self,
        nodes: PoolNodes,
        relocation: Relocation,
        blockers: Blockers,
        find_node: Callable[[str], Node | None],
    ) -> None:
        self._nodes, self._relocation, self._blockers = nodes, relocation, blockers
        self._find_node = find_node
        self._last = ""
        """The single node that was tried last."""

    def eligible_s(self, node: PoolNode) -> float | None:
        """From when on the node may be taken away; None: never."""
        after = node.pool.consolidate_after_s
        return None if after is None else max(node.changed_s + after, node.expected_until_s)

    def empty(self, now_s: float, now: datetime, leaving: set[str]) -> RemovalCommand | None:
        """The nodes without pods that may go now."""
        pools: dict[str, list[PoolNode]] = {}
        for node in self._nodes.empty.values():
            pools.setdefault(node.pool.name, []).append(node)
        found: list[PoolNode] = []
        for members in pools.values():
            ready = [node for node in _ready(members, now_s, leaving) if not self._blocker(node)]
            if ready:
                found += ready[: self._allowed(ready[0].pool, now, leaving, EMPTY)]
        return RemovalCommand(found, "empty") if found else None

    def underutilized(
        self, now_s: float, now: datetime, leaving: set[str]
    ) -> RemovalCommand | None:
        """Nodes whose pods fit elsewhere, or on one cheaper node."""
        candidates: list[PoolNode] = []
        for members in self._nodes.joined.values():
            ready = _ready(members, now_s, leaving)
            ready = [node for node in ready if node.pods and node.record.price is not None]
            if ready and ready[0].pool.consolidation_policy == WHEN_UNDERUTILIZED:
                allowed = self._allowed(ready[0].pool, now, leaving, UNDERUTILIZED)
                ready.sort(key=_number_of_pods)  # which keeps the order of equal ones
                candidates += _first(ready, allowed, self._blocker)
        candidates.sort(key=_disruption_cost)  # those of several pools
        return self._several(candidates, leaving) or self._single(candidates, leaving)

    def _allowed(self, pool: NodePool, now: datetime, leaving: set[str], reason: str) -> int:
        """How many nodes of the pool may go."""
        total = self._nodes.use.nodes[pool.name]
        going = (self._nodes.live.get(name) for name in leaving)
        gone = sum(node.pool is pool for node in going if node is not None)
        allowed = allowed_disruptions(pool, reason, now, nodes=total, disrupted=gone)
        return max(min(allowed, total - gone - pool.minimum), 0)

    def _blocker(self, node: PoolNode) -> str:
        stored = self._find_node(node.name)
        return "gone" if stored is None else self._blockers.of_node(node, stored)

    def _several(self, candidates: list[PoolNode], leaving: set[str]) -> RemovalCommand | None:
        """The longest beginning of the candidates, of two or more, that can go together.

        Most searches find none, and try two nodes only; others double their number as long as they can go.
        """
        most = pods = 0
        for node in candidates[:MAX_NODES]:
            pods += len(node.pods)
            if pods > MAX_PODS:
                break
            most += 1
        found, size = None, 2
        while size <= most and (command := self._try(candidates[:size], leaving)) is not None:
            found, size = command, 2 * size
        low, high = size // 2 + 1, min(size - 1, most)
        while found is not None and low <= high:
            middle = (low + high) // 2
            command = self._try(candidates[:middle], leaving)
            if command is None:
                high = middle - 1
            else:
                found, low = command, middle + 1
        return found

    def _single(self, candidates: list[PoolNode], leaving: set[str]) -> RemovalCommand | None:
        """The first single candidate that can go, from where the last search ended."""
        names = [node.name for node in candidates]
        start = names.index(self._last) + 1 if self._last in names else 0
        for node in (candidates[start:] + candidates[:start])[:MAX_SINGLE]:
            self._last = node.name
            command = self._try([node], leaving)
            if command is not None:
                return command
        return None

    def _try(self, nodes: list[PoolNode], leaving: set[str]) -> RemovalCommand | None:
        plan = self._relocation.find(nodes, leaving, may_replace=True)
        if plan is None:
            return None
        return RemovalCommand(nodes, "underutilized", [option for option, _ in plan.launches])


def _ready(nodes: Sequence[PoolNode], now_s: float, leaving: set[str]) -> list[PoolNode]:
    """Those of the nodes of a pool that have joined and not changed for long enough."""
    after = nodes[0].pool.consolidate_after_s if nodes else None
    if after is None:
        return []
    return [
        node
        for node in nodes
        if node.changed_s + after <= now_s
        and node.expected_until_s <= now_s
        and node.name not in leaving
    ]


def _number_of_pods(node: PoolNode) -> int:
    return len(node.pods)


def _disruption_cost(node: PoolNode) -> tuple[int, float, str]:
    """Nodes with fewer pods first; of these the dearer ones."""
    return len(node.pods), -(node.record.price or 0.0), node.name


def _first(nodes: list[PoolNode], count: int, blocker: Callable[[PoolNode], str]) -> list[PoolNode]:
    """The first `count` nodes that nothing keeps."""
    found: list[PoolNode] = []
    for node in nodes:
        if len(found) >= count:
            break
        if not blocker(node):
            found.append(node)
    return found
