"""Expanders: Cluster Autoscaler's choice among the groups that could grow.

Facts from cluster-autoscaler 1.36 (expander/): each expander of the chain takes the best of the remaining groups, until
one group is left; between equal ones a group is drawn. The price of pods is that of Google's price model, which only
matters as a ratio.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..api.pod import Pod
from ..api.resources import CPU, MEMORY
from ..choices import LEAST_NODES, LEAST_WASTE, MOST_PODS, PRICE, PRIORITY
from .cluster_autoscaler_flags import PriorityRules
from .launch_options import LaunchOption

CORE_PRICE, GIB_PRICE = 0.033174, 0.004446
"""Price of the pods' requests, per hour."""
STABLE_PRICE = 0.5 * CORE_PRICE + 500 / 1024 * GIB_PRICE
"""Price of a pod that is added to both sides, so that small pods do not count too much."""
PREFERRED_CORES = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16), (math.inf, 32))
"""Upper limits on the size of a cluster, each with the number of cores that is preferred up to it."""
GPU_UNFITNESS = 1000.0
GPUS = ("nvidia.com/gpu", "amd.com/gpu", "microsoft.com/directx")


@dataclass(slots=True)
class GroupEstimate:
    """The nodes to launch in a group, and the pods they are for."""

    launches: list[tuple[LaunchOption, list[Pod]]] = field(default_factory=list)
    _sums: dict[str, float] = field(default_factory=dict)
    """Sums over the pods; groups that are alike share it."""
    tried: int = -1
    """Number of nodes that were tried: some may have stayed empty."""

    def __post_init__(self) -> None:
        if self.tried < 0:
            self.tried = len(self.launches)

    @property
    def pods(self) -> list[Pod]:
        """All pods that get a place."""
        return [pod for _, pods in self.launches for pod in pods]

    @property
    def group(self) -> str:
        """The name of the group, `pool/type`."""
        return self.launches[0][0].label

    def of(self, members: Sequence[LaunchOption], others: Sequence[LaunchOption]) -> GroupEstimate:
        """The option for a similar group: with `others` in place of `members`."""
        numbers = {one.number: i for i, one in enumerate(members)}
        launches = [(others[numbers[one.number]], pods) for one, pods in self.launches]
        return GroupEstimate(launches, self._sums, self.tried)

    def _sum(self, name: str) -> float:
        """Sum of the pods' requests for a resource."""
        if name not in self._sums:
            self._sums[name] = sum(pod.requests.get(name, 0) for pod in self.pods)
        return self._sums[name]

    def waste(self) -> float:
        """The shares of cpu and memory that the pods do not use, added."""
        total = 0.0
        for name in (CPU, MEMORY):
            offered = sum(one.type.capacity.get(name, 0) for one, _ in self.launches)
            total += 1 - self._sum(name) / offered if offered else 0.0
        return round(total, 9)

    def price_score(self, node_count: int) -> float:
        """The price of the nodes for the price of the pods, times how unlike the preferred size they are."""
        price = sum(one.price for one, _ in self.launches)
        cores, gibs = self._sum(CPU) / 1000, self._sum(MEMORY) / (1 << 30)
        pods = cores * CORE_PRICE + gibs * GIB_PRICE
        ratio = (price + STABLE_PRICE) / (pods + STABLE_PRICE)
        option, count = self.launches[0][0], len(self.launches)
        if any(option.type.allocatable.get(name) for name in GPUS):
            return round(ratio * GPU_UNFITNESS, 9)
        preferred = next(cores for most, cores in PREFERRED_CORES if node_count <= most)
        own = max(option.type.capacity.get(CPU, 0) / 1000, 1e-3)
        unfitness = max(preferred / own, own / preferred)
        damped = (unfitness - 1.0) * (1.0 - math.tanh((count - 1) / 15.0)) + 1.0
        return round(ratio * damped, 9)


class ExpanderChain:
    """Chooses by several expanders in turn."""

    def __init__(
        self, names: Sequence[str], priorities: PriorityRules | None, draws: random.Random
    ) -> None:
        self._names, self._priorities, self._random = names, priorities, draws

    def choose(self, estimates: list[GroupEstimate], node_count: int) -> GroupEstimate:
        """The best of the groups, in a cluster of `node_count` nodes."""
        for name in self._names:
            if len(estimates) > 1:
                estimates = self.best(name, estimates, node_count)
        return self._random.choice(estimates)

    def best(
        self, name: str, estimates: list[GroupEstimate], node_count: int
    ) -> list[GroupEstimate]:
        """The groups that remain after one expander."""
        keys: dict[str, Callable[[GroupEstimate], float]] = {
            LEAST_WASTE: lambda one: one.waste(),
            PRICE: lambda one: one.price_score(node_count),
            MOST_PODS: lambda one: -len(one.pods),
            LEAST_NODES: lambda one: len(one.launches),
            PRIORITY: lambda one: -self._priority(one),
        }
        if name not in keys:
            return estimates
        scores = [keys[name](one) for one in estimates]
        best = min(scores)
        return [one for one, score in zip(estimates, scores, strict=True) if score == best]

    def _priority(self, estimate: GroupEstimate) -> float:
        """Priority of a group by the ConfigMap, in which groups without a rule are last; else the weight of its
        pool.
        """
        if self._priorities is None:
            return estimate.launches[0][0].pool.weight
        found = self._priorities.priority_of(estimate.group)
        return -math.inf if found is None else found
