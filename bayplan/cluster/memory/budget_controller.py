"""Budget controller: keeps the statuses of PodDisruptionBudgets up to date, in simulations and in `up`.

Mirrors pkg/controller/disruption. The pods of each budget are counted as they change, so that a
status costs as much as the budget has controllers, not pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from ...api.pod import Pod, PodClass
from ...api.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus
from ...clock import Clock
from ..objects.object_index import ControllerCluster
from .budgets import BudgetSyncError, PodOwner, ask_budget, budget_status, owner_of
from .pod_index import is_healthy

SCALED_KINDS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
EVICTION_TIMEOUT = timedelta(minutes=2)
"""Seconds that a granted eviction counts whose pod is not deleted."""
TOO_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class _Followed(msgspec.Struct, eq=False):
    """A budget and its pods by name."""

    budget: PodDisruptionBudget
    pods: dict[str, Pod] = msgspec.field(default_factory=dict)
    healthy: int = 0
    owners: Counter[PodOwner] = msgspec.field(default_factory=Counter)

    is_healthy: Callable[[Pod], bool] = is_healthy

    def put(self, pod: Pod) -> None:
        self.drop(pod)
        self.pods[pod.name] = pod
        self.healthy += self.is_healthy(pod)
        owner = owner_of(pod)
        if owner is not None:
            self.owners[owner] += 1

    def drop(self, pod: Pod) -> None:
        old = self.pods.pop(pod.name, None)
        if old is None:
            return
        self.healthy -= self.is_healthy(old)
        owner = owner_of(old)
        if owner is not None:
            self.owners[owner] -= 1
            if not self.owners[owner]:
                del self.owners[owner]


class DisruptionController:
    """Watches the cluster; `run` writes the statuses that changed, with `write`."""

    is_healthy: Callable[[Pod], bool] = staticmethod(is_healthy)
    owners_may_be_absent = True
    """Whether pods may name a controller that is not in the cluster, as those of snapshots do."""

    def __init__(self, cluster: ControllerCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._in: dict[str, dict[str, _Followed]] = {}
        self._selecting: dict[PodClass, list[_Followed]] = {}
        """The budgets of each class of pods; cleared when a budget comes, goes or changes."""
        self._stale: dict[_Followed, None] = {}
        self.is_urgent = False
        """Whether pods of a budget became unavailable: the next eviction must be counted against that.

        That more pods are available may be written later, which is cheaper while many are placed.
        """

    def begin(self) -> None:
        """Count the pods of the cluster, and watch it from now on."""
        for budget in self._cluster.list("PodDisruptionBudget"):
            self._put(_Followed(budget, is_healthy=self.is_healthy))
        for pod in self._cluster.list("Pod") if self._in else ():
            for one in self._of(pod):
                one.put(pod)
        self._cluster.watch(self, replay=False)
        self.run()

    def eviction_refusal(self, pod: Pod) -> str:
        """Reason why the eviction of the pod is refused; empty when its budget allows it."""
        if not self._in or pod.is_finished or pod.is_terminating or not pod.node_name:
            return ""
        found = self._of(pod)
        if len(found) > 1:
            return TOO_MANY
        self.run()
        return ask_budget(found[0].budget, self.is_healthy(pod)).refusal if found else ""

    def allowances(self, pod: Pod) -> dict[str, int]:
        """The evictions that each budget of the pod allows now, by `namespace/name`."""
        found = self._of(pod) if self._in else ()
        if found:
            self.run()
        return {
            f"{one.budget.namespace}/{one.budget.name}": one.budget.status.disruptions_allowed
            for one in found
        }

    # Changes

    def on_add(self, obj: Any) -> None:
        """Count a pod, or follow a budget."""
        match obj:
            case Pod():
                for one in self._of(obj):
                    one.put(obj)
                    self._stale[one] = None
            case PodDisruptionBudget():
                self._follow(obj)
            case _ if obj.kind in SCALED_KINDS:
                self._note(obj.namespace)

    def on_update(self, old: Any, new: Any) -> None:
        """Count a pod that changed."""
        match new:
            case Pod():
                if old.labels is not new.labels and old.labels != new.labels:
                    self.on_delete(old)
                    self.on_add(new)
                    return
                for one in self._of(new):
                    was = one.healthy
                    one.put(new)
                    if one.healthy != was or old.is_terminating != new.is_terminating:
                        self._stale[one] = None
                        self.is_urgent |= one.healthy < was
            case PodDisruptionBudget():
                known = self._in[new.namespace][new.name]
                if known.budget.spec != new.spec:
                    self._follow(new)
                else:
                    known.budget = new
                    if new.disrupted_pods:
                        self._stale[known] = None  # an eviction was granted
            case _ if new.kind in SCALED_KINDS and old.spec.replicas != new.spec.replicas:
                self._note(new.namespace)

    def on_delete(self, obj: Any) -> None:
        """Count a deleted pod no longer."""
        match obj:
            case Pod():
                for one in self._of(obj):
                    was = one.healthy
                    one.drop(obj)
                    self._stale[one] = None
                    self.is_urgent |= one.healthy < was
            case PodDisruptionBudget():
                self._stale.pop(self._in[obj.namespace].pop(obj.name), None)
                self._selecting.clear()
            case _ if obj.kind in SCALED_KINDS:
                self._note(obj.namespace)

    def run(self) -> None:
        """Write the statuses that changed."""
        self.is_urgent = False
        stale, self._stale = self._stale, {}
        for one in stale:
            under_way = self._under_way(one)
            healthy = one.healthy - sum(self.is_healthy(one.pods[name]) for name in under_way)
            find, may_be_absent = self._cluster.get, self.owners_may_be_absent
            try:
                found = budget_status(
                    one.budget, one.pods, healthy, one.owners, find, may_be_absent
                )
            except BudgetSyncError as error:
                none_allowed = replace(one.budget.status, disruptions_allowed=0)
                self.write(one.budget, none_allowed, str(error))
            else:
                self.write(one.budget, replace(found, disrupted_pods=under_way or None), "")

    def write(
        self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus, problem: str
    ) -> None:
        """Store a status; `problem` is the reason for which it could not be computed, or empty."""
        if status != budget.status:
            self._cluster.update(replace(budget, status=status))

    def _under_way(self, one: _Followed) -> dict[str, str | None]:
        """The granted evictions whose pods are not terminating yet."""
        found: dict[str, str | None] = {}
        for name, since in one.budget.disrupted_pods.items():
            pod = one.pods.get(name)
            if pod is None or pod.is_terminating or not since:
                continue
            if datetime.fromisoformat(since) + EVICTION_TIMEOUT > self._clock.now():
                found[name] = since
        return found

    def _follow(self, budget: PodDisruptionBudget) -> None:
        one = _Followed(budget, is_healthy=self.is_healthy)
        here: Iterable[Pod] = self._cluster.list("Pod", budget.namespace)
        for pod in here:
            if one.budget.selects(pod.namespace, pod.labels):
                one.put(pod)
        self._put(one)

    def _put(self, one: _Followed) -> None:
        here = self._in.setdefault(one.budget.namespace, {})
        before = here.get(one.budget.name)
        if before is not None:
            self._stale.pop(before, None)
        here[one.budget.name] = one
        self._stale[one] = None
        self._selecting.clear()

    def _of(self, pod: Pod) -> list[_Followed]:
        """The budgets that select the pod."""
        followed = self._in.get(pod.namespace)
        if not followed:
            return []
        key = pod.pod_class
        found = self._selecting.get(key)
        if found is None:
            found = self._selecting[key] = [
                one for one in followed.values() if one.budget.selects(pod.namespace, pod.labels)
            ]
        return found

    def _note(self, namespace: str) -> None:
        for one in self._in.get(namespace, {}).values():
            self._stale[one] = None
