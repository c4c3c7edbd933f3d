"""Budget statuses: the allowed disruptions of each PodDisruptionBudget.

Mirrors pkg/controller/disruption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ...api.limits import ResourceQuota
from ...api.pod import Pod
from ...api.workloads import PodDisruptionBudget
from ...cluster.memory.budgets import BudgetSyncError, ProtectedPods, budget_status, owner_of
from ...cluster.memory.pod_index import is_ready
from ..registry.eviction import BUDGETS, SYNC_FAILED
from ..registry.object_counts import ObjectQuotas
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE
from ..store import RecordChange, Store
from .embedded_cluster import LiveCluster

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
        here: Iterable[Pod] = self._cluster.list("Pod", budget.namespace)
        pods = [pod for pod in here if budget.selects(pod.namespace, pod.labels)]
        # A granted eviction is complete once the pod is terminating.
        waiting = {
            name: since
            for name, since in budget.disrupted_pods.items()
            if any(pod.name == name and not pod.is_terminating for pod in pods)
        }
        healthy = sum(1 for pod in pods if is_ready(pod) and pod.name not in waiting)
        owners = Counter(owner for pod in pods if (owner := owner_of(pod)) is not None)
        protected = ProtectedPods(len(pods), healthy, owners, pods[0].name if pods else "")
        find, now = self._cluster.get, self._registry.now()
        try:
            found, problem = budget_status(budget, protected, find, owners_may_be_absent=False), ""
        except BudgetSyncError as error:
            found, problem = None, str(error)

        def edit(tree: Tree) -> Tree:
            before = tree.get("status") or {}
            status: Tree = {**before, "disruptionsAllowed": 0}
            if found is not None:
                status = {
                    "disruptionsAllowed": found.disruptions_allowed,
                    "currentHealthy": found.current_healthy,
                    "desiredHealthy": found.desired_healthy,
                    "expectedPods": found.expected_pods,
                    "observedGeneration": tree["metadata"].get("generation", 1),
                }
            if waiting and found is not None:
                status["disruptedPods"] = waiting
            allowed = status["disruptionsAllowed"]
            status["conditions"] = [_condition(tree, allowed, problem, now)]
            return {**tree, "status": status}

        self._registry.update(BUDGETS, budget.namespace, budget.name, edit, "status")


def _condition(tree: Tree, allowed: int, problem: str, now: str) -> Tree:
    reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
    state = "True" if allowed > 0 else "False"
    old = ((tree.get("status") or {}).get("conditions") or [{}])[0]
    since = old.get("lastTransitionTime") if old.get("status") == state else now
    return {
        "type": "DisruptionAllowed",
        "status": state,
        "reason": SYNC_FAILED if problem else reason,
        "message": problem,
        "observedGeneration": tree["metadata"].get("generation", 1),
        "lastTransitionTime": since,
    }


QUOTAS = BY_STORAGE["resourcequotas"]


class QuotaController:
    """Follows the store; `run_once` writes the statuses of quotas whose namespace changed."""

    def __init__(
        self, store: Store, cluster: LiveCluster, registry: ObjectRegistry, quotas: ObjectQuotas
    ) -> None:
        self._cluster = cluster
        self._registry = registry
        self._quotas = quotas
        self._noted = {quota.namespace: None for quota in cluster.list("ResourceQuota")}
        store.follow(self._follow)

    def _follow(self, change: RecordChange) -> None:
        if self._quotas.ledger.has_quotas:
            self._noted[change.record.key[0]] = None

    @property
    def has_work(self) -> bool:
        """Whether a status may be stale."""
        return bool(self._noted)

    def run_once(self) -> None:
        """Write the stale statuses."""
        noted, self._noted = self._noted, {}
        for namespace in noted:
            for quota in self._cluster.list("ResourceQuota", namespace):
                self._sync(quota)

    def _sync(self, quota: ResourceQuota) -> None:
        used = {name: str(amount) for name, amount in self._quotas.used(quota).items()}

        def edit(tree: Tree) -> Tree:
            return {
                **tree,
                "status": {"hard": (tree.get("spec") or {}).get("hard") or {}, "used": used},
            }

        self._registry.update(QUOTAS, quota.namespace, quota.name, edit, "status")
