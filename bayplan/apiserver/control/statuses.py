"""Statuses: keep the statuses of workloads in sync with their pods."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...api.limits import ResourceQuota
from ...api.meta import KubeObject, controller_of
from ...api.node import Node
from ...api.pod import Pod
from ...api.workloads import (
    DaemonSet,
    Job,
    PodDisruptionBudget,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from ...clock import Clock
from ...cluster.memory import daemons, deployments
from ...cluster.memory.availability import Availability
from ...cluster.memory.budget_controller import DisruptionController
from ...cluster.memory.jobs import DEFAULT_BACKOFF_LIMIT
from ...cluster.memory.pod_index import is_ready
from ...cluster.memory.workload_pods import WORKLOAD_KINDS
from ...cluster.objects.object_index import Later
from ..registry.eviction import BUDGETS, SYNC_FAILED
from ..registry.resource_table import BY_STORAGE
from ..store.records import Record, RecordChange
from . import workload_status
from .embedded_cluster import LiveCluster
from .new_objects import resource_named
from .recorder import Reporter
from .workload_controllers import WorkloadControllers

Tree = dict[str, Any]
OwnerKey = tuple[str, str, str]
BATCH = 200


class StatusController:
    """Watches the cluster; `run_once` writes the statuses of workloads whose pods changed."""

    def __init__(
        self,
        cluster: LiveCluster,
        controllers: WorkloadControllers,
        time: tuple[Clock, Later],
    ) -> None:
        self._cluster = cluster
        self._controllers = controllers
        self._registry = cluster.registry
        self._noted: dict[OwnerKey, None] = {}
        self._time = time
        self._expected: set[tuple[OwnerKey, datetime]] = set()
        """Workloads and moments for which a timer is set."""
        self._available = Availability(is_ready, lambda key: self._noted.update({key: None}), time)

    def on_add(self, obj: Any) -> None:
        """Mark its status, or that of its owner, as stale."""
        if isinstance(obj, Node):
            for daemon_set in self._cluster.list("DaemonSet"):
                self._note(daemon_set)
        elif isinstance(obj, Pod):
            owner = obj.controller
            if owner is not None and owner.kind in WORKLOAD_KINDS:
                self._noted[owner.kind, obj.namespace, owner.name] = None
        elif obj.kind in WORKLOAD_KINDS:
            self._note(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Handle an update like an addition, except for status updates of nodes."""
        if isinstance(new, Node) and (old.labels, old.taints) == (new.labels, new.taints):
            return
        self.on_add(new)

    def on_delete(self, obj: Any) -> None:
        """Handle a deletion like an addition."""
        self.on_add(obj)

    def _note(self, workload: KubeObject) -> None:
        self._noted[workload.kind, workload.namespace, workload.name] = None
        if workload.kind == "ReplicaSet":
            owner = controller_of(workload.owner_references)
            if owner is not None and owner.kind == "Deployment":
                self._noted["Deployment", workload.namespace, owner.name] = None

    @property
    def has_work(self) -> bool:
        """Whether a status may be stale."""
        return bool(self._noted or self._controllers.stale_failures)

    def run_once(self) -> None:
        """Write some of the stale statuses."""
        self._noted |= self._controllers.stale_failures
        self._controllers.stale_failures.clear()
        for key in list(self._noted)[:BATCH]:
            del self._noted[key]
            workload = self._cluster.get(*key)
            if workload is not None:
                self._sync(workload)

    def _sync(self, workload: KubeObject) -> None:
        resource = resource_named(workload.kind)
        record = self._registry.get(resource, workload.namespace, workload.name)
        tree = record.decode()
        status = self._status(workload, tree)
        revision = ""
        if workload.kind == "Deployment":
            revision = self._mark_revision(workload, tree)
            self._look_again(workload, workload_status.fails_at(tree, status), margin_s=1)
        elif isinstance(workload, Job):
            self._look_again(workload, workload_status.job_deadline(tree, status))
        if status != (tree.get("status") or {}) or revision:
            self._registry.write(resource, record, {**tree, "status": status})
        if isinstance(workload, Job):
            for type_, reason, message in workload_status.job_events(
                tree.get("status") or {}, status
            ):
                what, reporter = (type_, reason), Reporter("job-controller")
                self._cluster.tell(workload, reporter, what, message)
            self._remove_in_time(workload, workload_status.job_removal(tree, status))

    def _look_again(
        self, workload: KubeObject, moment: datetime | None, margin_s: float = 0
    ) -> None:
        """Compute the status again at a moment: a deadline may be over then."""
        key = workload.kind, workload.namespace, workload.name
        if moment is None or (key, moment) in self._expected:
            return
        self._expected.add((key, moment))

        def look() -> None:
            self._expected.discard((key, moment))
            self._noted[key] = None

        clock, timers = self._time
        timers.after(max((moment - clock.now()).total_seconds(), 0) + margin_s, look)

    def _remove_in_time(self, job: Job, moment: datetime | None) -> None:
        """Delete a finished job when its time to live is over."""
        if moment is None:
            return
        if moment > self._time[0].now():
            self._look_again(job, moment)
        else:
            self._cluster.delete(job)

    def _status(self, workload: KubeObject, tree: Tree) -> Tree:
        now, owned = self._registry.now(), self._controllers.owned(workload)
        active = list(owned.active.values())
        match workload:
            case StatefulSet():
                revision = self._controllers.revision_of(workload)
                is_available = self._available.of(workload)
                return workload_status.stateful_set_status(tree, active, revision, is_available)
            case DaemonSet():
                revision = self._controllers.revision_of(workload)
                wanted = daemons.count_wanted(workload, self._cluster.list("Node"))
                is_available = self._available.of(workload)
                return workload_status.daemon_set_status(
                    tree, active, wanted, revision, is_available
                )
            case Job():
                limit = workload.spec.backoff_limit
                limit = DEFAULT_BACKOFF_LIMIT if limit is None else limit
                return workload_status.job_status(tree, owned, limit, now)
            case _ if workload.kind == "Deployment":
                found = self._replica_sets(workload)
                newest = max(found, key=_revision, default=None)
                return workload_status.deployment_status(tree, found, newest, now)
            case ReplicaSet() | ReplicationController():
                is_available = self._available.of(workload)
                leaving = len(owned.leaving) if isinstance(workload, ReplicaSet) else None
                status = workload_status.replica_set_status(tree, active, leaving, is_available)
                key = workload.kind, workload.namespace, workload.name
                failure = self._controllers.create_failures.get(key, "")
                return workload_status.with_failure(tree, status, failure, now)
            case _:
                raise AssertionError(f"{workload.kind} is no workload with pods")

    def _replica_sets(self, deployment: KubeObject) -> list[Tree]:
        store = self._registry.store
        owned = store.owned_by(deployment.uid)
        records = [store.get(*place) for place in owned if place[0] == "replicasets.apps"]
        return [record.decode() for record in records if isinstance(record, Record)]

    def _mark_revision(self, deployment: KubeObject, tree: Tree) -> str:
        """The annotation with the deployment's revision; empty when it is already set."""
        found = max(map(_revision, self._replica_sets(deployment)), default=0)
        notes = tree["metadata"].get("annotations") or {}
        if not found or notes.get(deployments.REVISION) == str(found):
            return ""
        tree["metadata"]["annotations"] = {**notes, deployments.REVISION: str(found)}
        return str(found)


def _revision(replica_set: Tree) -> int:
    notes = replica_set["metadata"].get("annotations") or {}
    text = str(notes.get(deployments.REVISION) or "0")
    return int(text) if text.isdecimal() else 0


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
