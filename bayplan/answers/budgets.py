"""Budgets: the effect of evictions on PodDisruptionBudgets.

Mirrors the arithmetic of pkg/controller/disruption for budgets without a status.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..api.pod import Pod
from ..api.workloads import PodDisruptionBudget
from ..cluster.memory import MemoryCluster
from .owners import is_there


@dataclass(slots=True)
class BudgetUse:
    """One budget, the disruptions it allows now, and the pods counted against it."""

    budget: str
    """`namespace/name`."""
    allowed: int
    pods: list[str] = field(default_factory=list)

    @property
    def is_violated(self) -> bool:
        """Whether more pods are taken at once than the budget allows."""
        return len(self.pods) > self.allowed

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "budget": self.budget,
            "allowed": self.allowed,
            "disrupted": len(self.pods),
            "violated": self.is_violated,
            "pods": list(self.pods),
        }


class BudgetCounts:
    """The budgets of a cluster; `take` counts a pod against them."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._budgets: list[tuple[PodDisruptionBudget, BudgetUse]] = [
            (budget, BudgetUse(budget.key, allowed_disruptions(budget, cluster)))
            for budget in cluster.list("PodDisruptionBudget")
        ]

    def uses_of(self, pod: Pod) -> list[BudgetUse]:
        """The budgets that select the pod."""
        return [
            use
            for budget, use in self._budgets
            if budget.namespace == pod.namespace
            and budget.spec.selector is not None
            and budget.spec.selector.matches(pod.labels)
        ]

    def allow(self, pod: Pod) -> bool:
        """Whether the budgets allow the eviction of this pod."""
        return all(len(use.pods) < use.allowed for use in self.uses_of(pod))

    def take(self, pod: Pod) -> None:
        """Count the pod against its budgets."""
        for use in self.uses_of(pod):
            use.pods.append(pod.key)

    def give_back(self, pod: Pod) -> None:
        """Undo `take` for the pod."""
        for use in self.uses_of(pod):
            use.pods.remove(pod.key)

    def touched(self) -> list[BudgetUse]:
        """The budgets with at least one pod taken."""
        return [use for _, use in self._budgets if use.pods]


def allowed_disruptions(budget: PodDisruptionBudget, cluster: MemoryCluster) -> int:
    """Allowed disruptions: from the status, or computed from the spec when there is no status."""
    status = budget.status
    if status.observed_generation or status.expected_pods or status.disruptions_allowed:
        return max(status.disruptions_allowed, 0)
    selector = budget.spec.selector
    if selector is None:
        return 0
    pods = [
        pod
        for pod in cluster.list("Pod", budget.namespace)
        if not pod.is_finished and selector.matches(pod.labels)
    ]
    healthy = sum(map(_is_healthy, pods))
    return max(healthy - _desired(budget, pods, cluster), 0)


def _is_healthy(pod: Pod) -> bool:
    """Whether the pod runs and is ready; without a Ready condition it counts as ready."""
    ready = pod.status.condition("Ready")
    return bool(pod.node_name) and is_there(pod) and (ready is None or ready.status == "True")


def _desired(budget: PodDisruptionBudget, pods: list[Pod], cluster: MemoryCluster) -> int:
    """Required number of healthy pods."""
    at_least, at_most = budget.spec.min_available, budget.spec.max_unavailable
    if isinstance(at_least, int):
        return at_least
    expected = _scale(pods, cluster)
    if at_most is not None:
        return max(expected - _share(at_most, expected), 0)
    return _share(1 if at_least is None else at_least, expected)


def _scale(pods: Iterable[Pod], cluster: MemoryCluster) -> int:
    """Sum of the controllers' replicas; for an unknown controller, the number of its pods."""
    wanted: dict[tuple[str, str], int] = {}
    for pod in pods:
        owner = pod.controller
        workload = None if owner is None else cluster.get(owner.kind, pod.namespace, owner.name)
        if owner is None or workload is None or not hasattr(workload, "replicas"):
            wanted["", pod.name] = 1
        else:
            wanted[owner.kind, owner.name] = workload.replicas
    return sum(wanted.values())


def _share(amount: int | str, whole: int) -> int:
    """A number, or a percentage of the whole such as 30%, rounded up."""
    if isinstance(amount, int):
        return amount
    number = amount.removesuffix("%")
    return math.ceil(int(number) * whole / 100) if number.isdecimal() else 0
