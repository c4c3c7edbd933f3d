"""Budgets: the effect of evictions on PodDisruptionBudgets, whose statuses the cluster keeps up to date."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..api.pod import Pod
from ..api.workloads import PodDisruptionBudget
from ..cluster.memory import MemoryCluster


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
            (budget, BudgetUse(budget.key, budget.status.disruptions_allowed))
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
