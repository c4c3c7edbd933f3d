"""Statuses of PodDisruptionBudgets and ResourceQuotas in `up`."""

from __future__ import annotations

from typing import Any

from ...api.limits import ResourceQuota
from ...api.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus
from ...clock import Clock
from ...cluster.memory.budget_controller import DisruptionController
from ...cluster.memory.pod_index import is_ready
from ..registry.eviction import BUDGETS, SYNC_FAILED
from ..registry.resource_table import BY_STORAGE
from ..store.records import RecordChange
from .embedded_cluster import LiveCluster

Tree = dict[str, Any]


class BudgetController(DisruptionController):
    """The disruption controller of `up`: it writes whole statuses with their condition."""

    is_healthy = staticmethod(is_ready)
    owners_may_be_absent = False

    run_once = DisruptionController.run

    def __init__(self, cluster: LiveCluster, clock: Clock) -> None:
        super().__init__(cluster, clock)
        self._registry = cluster.registry

    @property
    def has_work(self) -> bool:
        """Whether a budget may be stale."""
        return bool(self._stale)

    def write(
        self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus, problem: str
    ) -> None:
        """Write the status, or the problem as the message of its condition."""
        now = self._registry.now()

        def edit(tree: Tree) -> Tree:
            written: Tree = {**(tree.get("status") or {}), "disruptionsAllowed": 0}
            if not problem:
                written = {
                    "disruptionsAllowed": status.disruptions_allowed,
                    "currentHealthy": status.current_healthy,
                    "desiredHealthy": status.desired_healthy,
                    "expectedPods": status.expected_pods,
                    "observedGeneration": tree["metadata"].get("generation", 1),
                }
                if status.disrupted_pods:
                    written["disruptedPods"] = status.disrupted_pods
            allowed = written["disruptionsAllowed"]
            written["conditions"] = [_condition(tree, allowed, problem, now)]
            return {**tree, "status": written}

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

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self._registry = cluster.registry
        self._quotas = cluster.registry.quotas
        self._noted = {quota.namespace: None for quota in cluster.list("ResourceQuota")}
        cluster.registry.store.follow(self._follow)

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
