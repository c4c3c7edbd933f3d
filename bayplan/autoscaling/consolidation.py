"""Consolidation: the nodes that Karpenter removes to save cost.

Facts from Karpenter v1.14 (pkg/controllers/disruption): nodes without pods go first; then several nodes whose pods fit
elsewhere, or beside them on one new node that is cheaper than all of them; then single ones. Nodes whose price is high
for the disruption of their pods are tried first, single ones of each pool in turn. Budgets of the pool, annotations and
disruption budgets of pods keep nodes. A spot node is not replaced by a spot node. Pods do not go to nodes that changed
within `consolidateAfter`. With the policy Balanced, the share of the pool's cost that is saved must be at least half of
the share of its disruption cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice, zip_longest

from ..api.node import Node
from ..api.pod import Pod
from ..planning.pools import BALANCED, WHEN_EMPTY, NodePool
from .blockers import Blockers
from .launch_options import LaunchPlan
from .pool_nodes import EMPTY, UNDERUTILIZED, PoolNode, PoolNodes, allowed_disruptions
from .relocation import Relocation

MAX_NODES = 100
"""Limit on a group of nodes that are tried together."""
BALANCED_SHARE = 0.5
"""Least ratio of saving to disruption for the policy Balanced, both as shares of the pool."""


@dataclass(slots=True)
class RemovalCommand:
    """Nodes to remove, and those to launch before."""

    nodes: list[PoolNode]
    why: str
    plan: LaunchPlan = field(default_factory=LaunchPlan)


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

    def empty(self, now_s: float, now: datetime, leaving: set[str]) -> RemovalCommand | None:
        """The nodes without pods that may go now."""
        empty = [node for node in self._nodes.empty() if _is_ready(node, now_s, leaving)]
        empty.sort(key=PoolNode.turn)
        found = list(self._within_budgets(empty, now, leaving, EMPTY))
        return RemovalCommand(found, EMPTY) if found else None

    def underutilized(
        self, now_s: float, now: datetime, leaving: set[str], waiting: list[Pod]
    ) -> RemovalCommand | None:
        """Nodes whose pods fit elsewhere, or on one cheaper node, beside the pods that are `waiting`."""
        with self._relocation.beside(waiting) as taken:
            if taken is None:
                return None
            ready = [
                node
                for node in self._nodes.by_savings(now_s)
                if node.name not in leaving
                and node.record.price is not None
                and node.pool.consolidation_policy != WHEN_EMPTY
                and node.name not in taken
            ]
            several = self._within_budgets(ready, now, leaving, UNDERUTILIZED)
            closed = leaving | self._nodes.recent(now_s)
            found = self._several(list(islice(several, MAX_NODES + 1)), closed)
            return found or self._single(ready, now, leaving, closed)

    def confirmed(
        self,
        command: RemovalCommand,
        now_s: float,
        now: datetime,
        leaving: set[str],
        waiting: list[Pod],
    ) -> RemovalCommand | None:
        """Conditions of a command when it is validated: the nodes that are still empty, others only all together."""
        ready = [
            node
            for node in command.nodes
            if node.name in self._nodes.live
            and _is_ready(node, now_s, leaving)
            and bool(node.pods) == (command.why == UNDERUTILIZED)
        ]
        found = list(self._within_budgets(ready, now, leaving, command.why))
        if command.why == EMPTY:
            return RemovalCommand(found, EMPTY) if found else None
        if found != command.nodes:
            return None
        with self._relocation.beside(waiting) as taken:
            if taken is None or any(node.name in taken for node in found):
                return None
            again = self._try(found, leaving | self._nodes.recent(now_s))
        return again if again is not None and again.plan.price <= command.plan.price else None

    def _within_budgets(
        self, nodes: Iterable[PoolNode], now: datetime, leaving: set[str], reason: str
    ) -> Iterator[PoolNode]:
        """The first removable nodes, up to the disruption budget of each pool."""
        left: dict[str, int] = {}
        for node in nodes:
            name = node.pool.name
            if name not in left:
                left[name] = self._allowed(node.pool, now, leaving, reason)
            if left[name] > 0 and not self._blocker(node):
                left[name] -= 1
                yield node

    def _allowed(self, pool: NodePool, now: datetime, leaving: set[str], reason: str) -> int:
        """Number of nodes of the pool that may go."""
        total = self._nodes.use.nodes[pool.name]
        going = (self._nodes.live.get(name) for name in leaving)
        gone = sum(node.pool is pool for node in going if node is not None)
        allowed = allowed_disruptions(pool, reason, now, nodes=total, disrupted=gone)
        return max(min(allowed, total - gone - pool.minimum), 0)

    def _blocker(self, node: PoolNode) -> str:
        stored = self._find_node(node.name)
        return "gone" if stored is None else self._blockers.of_node(node, stored)

    def _several(self, candidates: list[PoolNode], closed: set[str]) -> RemovalCommand | None:
        """Nodes at the beginning of the candidates, two or more, that can go together: found by bisection."""
        found, low, high = None, 2, min(len(candidates), MAX_NODES + 1)
        while low <= high:
            middle = (low + high) // 2
            command = self._try(candidates[:middle], closed)
            if command is None:
                high = middle - 1
            else:
                found, low = command, middle + 1
        return found

    def _single(
        self, ready: list[PoolNode], now: datetime, leaving: set[str], closed: set[str]
    ) -> RemovalCommand | None:
        """The first node that can go alone, of each pool in turn."""
        pools: dict[str, list[PoolNode]] = {}
        for node in ready:
            pools.setdefault(node.pool.name, []).append(node)
        open_pools = [
            nodes
            for nodes in pools.values()
            if self._allowed(nodes[0].pool, now, leaving, UNDERUTILIZED) > 0
        ]
        for node in chain.from_iterable(zip_longest(*open_pools)):
            if node is not None and not self._blocker(node):
                command = self._try([node], closed)
                if command is not None:
                    return command
        return None

    def _try(self, nodes: list[PoolNode], closed: set[str]) -> RemovalCommand | None:
        plan = self._relocation.find(nodes, closed, may_replace=True)
        if plan is None:
            return None
        kinds = {node.type.name for node in nodes} if len(nodes) > 1 else set()
        if any(option.type.name in kinds for option, _ in plan.launches):
            return None  # one of the nodes could stay instead
        if not self._is_worthwhile(nodes, plan):
            return None
        return RemovalCommand(nodes, UNDERUTILIZED, plan)

    def _is_worthwhile(self, nodes: list[PoolNode], plan: LaunchPlan) -> bool:
        """Whether every pool with the policy Balanced saves enough for its disruption."""
        balanced = {one.pool.name for one in nodes if one.pool.consolidation_policy == BALANCED}
        if not balanced:
            return True
        price = sum(node.record.price or 0.0 for node in nodes)
        for name in balanced:
            own = [node for node in nodes if node.pool.name == name]
            all_own = [node for node in self._nodes if node.pool.name == name]
            share = sum(node.record.price or 0.0 for node in own) / price if price else 1.0
            saved = (price - plan.price) * share / (_cost(all_own) or math.inf)
            if saved < BALANCED_SHARE * _disruption(own) / _disruption(all_own):
                return False
        return True


def _cost(nodes: Iterable[PoolNode]) -> float:
    return sum(node.record.price or 0.0 for node in nodes)


def _disruption(nodes: Iterable[PoolNode]) -> float:
    """The disruption cost of nodes."""
    return sum(node.disruption() for node in nodes)


def _is_ready(node: PoolNode, now_s: float, leaving: set[str]) -> bool:
    """Whether a node has not changed for long enough, and is not about to go or to get pods."""
    return node.eligible_s <= now_s and node.name not in leaving
