"""Budgets: the allowed disruptions of each PodDisruptionBudget.

Mirrors pkg/controller/disruption.
"""

from __future__ import annotations

import math
from typing import Any

from ....api.pod import Pod
from ....api.workloads import PodDisruptionBudget
from ..registry.evicting import BUDGETS
from ..registry.registry import ObjectRegistry
from .cluster import LiveCluster

Tree = dict[str, Any]


class BudgetController:
    """Watches the cluster; `run_once` updates the statuses of budgets."""

    def __init__(self, cluster: LiveCluster, registry: ObjectRegistry) -> None:
        self._cluster = cluster
        self._registry = registry
        self._noted: dict[str, None] = {}

    def on_add(self, obj: Any) -> None:
        """Mark the budgets of the namespace as stale."""
        if isinstance(obj, Pod | PodDisruptionBudget):
            self._noted[obj.namespace] = None

    def on_update(self, old: Any, new: Any) -> None:
        """Handle an update like an addition."""
        self.on_add(new)

    def on_delete(self, obj: Any) -> None:
        """Handle a deletion like an addition."""
        self.on_add(obj)

    @property
    def has_work(self) -> bool:
        """Whether a budget may be stale."""
        return bool(self._noted)

    def run_once(self) -> None:
        """Recompute the stale budgets."""
        noted, self._noted = self._noted, {}
        for namespace in noted:
            for budget in self._cluster.list("PodDisruptionBudget", namespace):
                self._sync(budget)

    def _sync(self, budget: PodDisruptionBudget) -> None:
        selector = budget.spec.selector
        pods: list[Pod] = []
        if selector is not None:
            pods = [
                pod
                for pod in self._cluster.list("Pod", budget.namespace)
                if selector.matches(pod.labels) and not pod.is_finished
            ]
        # A granted eviction is complete once the pod is terminating.
        waiting = {
            name: since
            for name, since in budget.disrupted_pods.items()
            if any(pod.name == name and not pod.is_terminating for pod in pods)
        }
        healthy = sum(1 for pod in pods if is_healthy(pod) and pod.name not in waiting)
        expected, desired = self._wanted(budget, pods)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        now = self._registry.now()

        def edit(tree: Tree) -> Tree:
            status: Tree = {
                "disruptionsAllowed": allowed,
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "expectedPods": expected,
                "observedGeneration": tree["metadata"].get("generation", 1),
                "conditions": [_condition(tree, allowed, now)],
            }
            if waiting:
                status["disruptedPods"] = waiting
            return {**tree, "status": status}

        self._registry.update(BUDGETS, budget.namespace, budget.name, edit, "status")

    def _wanted(self, budget: PodDisruptionBudget, pods: list[Pod]) -> tuple[int, int]:
        """The expected number of pods, and the desired number of healthy ones."""
        at_least, at_most = budget.spec.min_available, budget.spec.max_unavailable
        if isinstance(at_least, int):
            return len(pods), at_least
        expected = self._scale(pods)
        if at_most is not None:
            return expected, max(expected - _share(at_most, expected), 0)
        return expected, _share(1 if at_least is None else at_least, expected)

    def _scale(self, pods: list[Pod]) -> int:
        """Sum of the controllers' replicas; a pod without a controller counts as one."""
        wanted: dict[tuple[str, str], int] = {}
        for pod in pods:
            owner = pod.controller
            workload = owner and self._cluster.get(owner.kind, pod.namespace, owner.name)
            if owner is None or workload is None or not hasattr(workload, "replicas"):
                wanted["", pod.name] = 1
            else:
                wanted[owner.kind, owner.name] = workload.replicas
        return sum(wanted.values())


def is_healthy(pod: Pod) -> bool:
    """Whether the pod is ready and not terminating."""
    ready = pod.status.condition("Ready")
    return not pod.is_terminating and ready is not None and ready.status == "True"


def _share(amount: int | str, whole: int) -> int:
    """A number, or a percentage of the whole such as 30%, rounded up."""
    if isinstance(amount, int):
        return amount
    number = amount.removesuffix("%")
    return math.ceil(int(number) * whole / 100) if number.isdecimal() else 0


def _condition(tree: Tree, allowed: int, now: str) -> Tree:
    state = "True" if allowed > 0 else "False"
    old = ((tree.get("status") or {}).get("conditions") or [{}])[0]
    since = old.get("lastTransitionTime") if old.get("status") == state else now
    return {
        "type": "DisruptionAllowed",
        "status": state,
        "reason": "SufficientPods" if allowed > 0 else "InsufficientPods",
        "message": "",
        "observedGeneration": tree["metadata"].get("generation", 1),
        "lastTransitionTime": since,
    }
