"""Quota statuses: the statuses of ResourceQuotas: their limits, and what is used.

Mirrors pkg/controller/resourcequota.
"""

from __future__ import annotations

from typing import Any

from ...api.limits import ResourceQuota
from ..registry.object_counts import ObjectQuotas
from ..registry.object_registry import ObjectRegistry
from ..registry.resource_table import BY_STORAGE
from ..store import RecordChange, Store
from .embedded_cluster import LiveCluster

Tree = dict[str, Any]
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
