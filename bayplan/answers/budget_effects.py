"""Budget effects: the effect of evictions on PodDisruptionBudgets, whose statuses the cluster keeps up to date."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ..api.pod import Pod
from ..api.workloads import PodDisruptionBudget
from ..cluster.memory.object_store import MemoryCluster
from ..sim.plain_part import PlainPart

LabelsKey: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""A namespace, and the labels of pods in it."""


@dataclass(slots=True)
class BudgetUse(PlainPart):
    """One budget, the most disruptions it allowed at a time, and the pods counted against it."""

    PLAIN = "budget allowed disrupted atOnce violated=is_violated pods"

    budget: str
    """`namespace/name`."""
    allowed: int
    pods: list[str] = field(default_factory=list)
    down: int = 0
    """Number of them without a ready successor."""
    at_once: int = 0
    """The largest number of pods that were down at the same time."""

    @property
    def is_violated(self) -> bool:
        """Whether more pods were down at a time than the budget allows."""
        return self.at_once > self.allowed

    @property
    def disrupted(self) -> int:
        """Number of the pods that were counted."""
        return len(self.pods)


class BudgetCounts:
    """The budgets of a cluster; `take` counts a pod against them until it comes back (`put_back`)."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._budgets: list[tuple[PodDisruptionBudget, BudgetUse]] = [
            (budget, BudgetUse(budget.key, budget.status.disruptions_allowed))
            for budget in cluster.list("PodDisruptionBudget")
        ]
        self._uses: dict[LabelsKey, list[BudgetUse]] = {}
        self._cluster = cluster

    def uses_of(self, pod: Pod) -> list[BudgetUse]:
        """The budgets that select the pod."""
        if not self._budgets:
            return []
        key = pod.namespace, frozenset(pod.labels.items())
        uses = self._uses.get(key)
        if uses is None:
            uses = self._uses[key] = [
                use for budget, use in self._budgets if budget.selects(pod.namespace, pod.labels)
            ]
        return uses

    def allow(self, pod: Pod) -> bool:
        """Whether the budgets allow that this pod is taken, too."""
        return all(use.down < use.allowed for use in self.uses_of(pod))

    def follow(self, pod: Pod) -> None:
        """Read the disruptions that the budgets of a pod that was not evicted yet allow now: more than before if
        waiting pods that they select were placed.
        """
        for use in self.uses_of(pod):
            budget = self._cluster.get("PodDisruptionBudget", *use.budget.split("/", 1))
            if budget is not None:
                use.allowed = max(use.allowed, budget.status.disruptions_allowed + use.down)

    def take(self, pod: Pod) -> None:
        """Count the pod against its budgets."""
        for use in self.uses_of(pod):
            use.pods.append(pod.key)
            use.down += 1
            use.at_once = max(use.at_once, use.down)

    def put_back(self, pod: Pod) -> None:
        """Count a pod that was taken as running again."""
        for use in self.uses_of(pod):
            use.down -= 1

    def give_back(self, pod: Pod) -> None:
        """Undo `take` for the pod."""
        for use in self.uses_of(pod):
            use.pods.remove(pod.key)
            use.down -= 1
            use.at_once = use.down

    def touched(self) -> list[BudgetUse]:
        """The budgets with at least one evicted pod."""
        return [use for _, use in self._budgets if use.pods]
