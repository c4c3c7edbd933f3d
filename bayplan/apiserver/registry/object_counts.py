"""Object counts: the number of objects of each kind in a namespace, as far as a ResourceQuota limits it.

Mirrors pkg/quota/v1/evaluator/core/services.go and the object count evaluator of k8s.io/apiserver/pkg/quota/v1/generic.
Pods and claims are counted by `cluster.memory.quotas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...api.limits import ResourceQuota
from ...api.text.quantity import NANO, ExactAmount
from ...cluster.memory.quotas import QuotaLedger, Use, quota_excess
from ...framework.lister import Lister
from ..store.store import Store
from .resource_table import ApiResource, ResourceCatalog

Tree = Mapping[str, Any]

PLAIN = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets", "services"})
"""Kinds that quotas may name without `count/`."""
ELSEWHERE = frozenset({"events", "persistentvolumeclaims", "pods"})
"""Kinds that are not counted here: no quota limits events."""


class ObjectQuotas:
    """The quotas of a store."""

    def __init__(self, store: Store, lister: Lister, catalog: ResourceCatalog) -> None:
        self._store = store
        self._catalog = catalog
        self._lister = lister
        self.ledger = QuotaLedger(lister)

    def refusal(
        self, resource: ApiResource, namespace: str, tree: Tree, old: Tree | None = None
    ) -> str:
        """Reason why a new object, or its growth over the `old` one, is refused; empty if it is not."""
        if not self.ledger.has_quotas or resource.storage in ELSEWHERE:
            return ""
        wanted, before = object_use(resource, tree), object_use(resource, old) if old else {}
        grown = {name: a.minus(before[name]) if name in before else a for name, a in wanted.items()}
        wanted = {name: amount for name, amount in grown.items() if amount.nano > 0 or not old}
        for quota in self._lister.list("ResourceQuota", namespace):
            named = {name: amount for name, amount in wanted.items() if name in quota.hard}
            if named and not quota.scopes:
                excess = quota_excess(quota, named, self._counted(quota, resource))
                if excess:
                    return excess
        return ""

    def used(self, quota: ResourceQuota) -> Use:
        """Use of each limit that can be counted."""
        used = dict(self.ledger.used(quota))
        for resource in self._catalog.resources:
            if (
                resource.is_namespaced
                and not resource.stored_as
                and resource.storage not in ELSEWHERE
            ):
                used |= self._counted(quota, resource)
        return used

    def _counted(self, quota: ResourceQuota, resource: ApiResource) -> Use:
        """Use of the quota by the objects of one kind."""
        named = [name for name in names_of(resource) if name in quota.hard]
        used: Use = dict.fromkeys(named, ExactAmount(0))
        if named:
            for record in self._store.list(resource.storage, quota.namespace):
                for name, amount in object_use(resource, record.decode()).items():
                    if name in used:
                        used[name] = used[name].plus(amount)
        return used


def names_of(resource: ApiResource) -> tuple[str, ...]:
    """Names that quotas have for the number of objects of a kind."""
    plain = (resource.plural,) if resource.storage in PLAIN else ()
    if resource.storage == "services":
        plain = (*plain, "services.nodeports", "services.loadbalancers")
    return (f"count/{resource.name}", *plain)


def object_use(resource: ApiResource, tree: Tree) -> Use:
    """Use by one object."""
    counts = dict.fromkeys(names_of(resource), 1)
    if resource.storage == "services":
        spec = tree.get("spec") or {}
        kind, ports = spec.get("type"), len(spec.get("ports") or ())
        has_ports = kind == "NodePort" or (
            kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)
        )
        counts["services.nodeports"] = ports if has_ports else 0
        counts["services.loadbalancers"] = int(kind == "LoadBalancer")
    return {name: ExactAmount(count * NANO) for name, count in counts.items()}
