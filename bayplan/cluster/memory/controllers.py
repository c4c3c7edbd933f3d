"""Controllers: keep the pods of workloads at the wanted number.

Mirrors pkg/controller/{deployment,replicaset,replication,statefulset,job,daemon}: names, labels,
owners and number of pods. Existing pods are counted, missing ones are created; a changed template
is rolled out step by step. Pods are deleted only when a workload was changed or removed, or a node
was deleted: pods of the input stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ...api.limits import LimitRange, ResourceQuota
from ...api.meta import KubeObject
from ...api.node import Node
from ...api.pod import Pod
from ...api.selectors import LabelSelector
from ...api.workloads import (
    DaemonSet,
    Deployment,
    Job,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    job_pod_labels,
)
from ...clock import Clock
from ...errors import BayplanError
from ..objects.object_index import ControllerCluster, Later
from . import daemons, deployments, job_groups, jobs, rollouts, stateful_sets
from .admission import Admission, AdmissionError, AdmissionRefusedError
from .availability import Availability
from .created_names import make_hash
from .jobs import JobBackoffs
from .pod_index import (
    COMPLETION_INDEX,
    OwnerKey,
    is_healthy,
    is_ready,
    is_there,
)
from .refusals import RefusedWorkloads
from .stateful_sets import REVISION_HASH
from .workload_pods import WorkloadPods, checked, make_pod, make_stateful_pod

ReadTemplate = Callable[[KubeObject], bytes]
"""The template of a workload as bytes, equal for equal templates."""


class Controllers(WorkloadPods):
    """All workload controllers of one cluster. `pods` are the pods that exist or will be added.

    The new pods are admitted and added to the cluster. As a watcher of the cluster (`cluster.watch(controllers,
    replay=False)`) they record changes of workloads, pods and nodes; `run` does the resulting work.

    In a `live` cluster every change of a template is rolled out, templates are compared as `live` reads them, the
    cluster admits pods itself, others collect garbage. A feature gate not in `gates` is off. Without a clock and timers
    (`time`) `minReadySeconds` is ignored.
    """

    def __init__(
        self,
        cluster: ControllerCluster,
        admission: Admission | None,
        pods: Iterable[Pod],
        live: ReadTemplate | None = None,
        gates: Mapping[str, bool] | None = None,
        time: tuple[Clock, Later] | None = None,
    ) -> None:
        super().__init__(cluster, admission, pods)
        self._job_groups = job_groups.JobGroups(cluster, gates or {}, admits=admission is not None)
        self._is_live = live is not None
        self.failures: list[tuple[KubeObject, BayplanError]] = []
        """Workloads of a live cluster whose pods were rejected; the reader clears it."""
        self._read_template = live or deployments.read_template
        self.refused = RefusedWorkloads()
        """Workloads of a simulation whose pods a limit range or a quota refuses."""
        self._replica_sets = deployments.ReplicaSetIndex(cluster)
        self._noted: dict[OwnerKey, bool] = {}
        self._abandoned: list[OwnerKey] = []
        self._changes = rollouts.WorkloadChanges(takes_all=self._is_live)
        self._is_ready = is_ready if live else is_healthy
        self._available = Availability(
            self._is_ready, lambda key: self._note(key, key in self._changes), time
        )
        self._job_backoffs = JobBackoffs(time, lambda key: self._note(key, False))
        self._changed_nodes: set[str] = set()
        self._new_nodes = set[str]() if live else {node.name for node in cluster.list("Node")}
        self._first_daemons: list[Pod] = []
        self._sync: dict[str, Callable[[Any, bool], list[Pod]]] = {
            "DaemonSet": self._sync_daemon_set,
            "Deployment": self._sync_deployment,
            "Job": self._sync_job,
            "ReplicaSet": self._sync_replica_set,
            "ReplicationController": self._sync_replication_controller,
            "StatefulSet": self._sync_stateful_set,
        }

    def sync(self, workload: KubeObject, may_delete: bool = False) -> list[Pod]:
        """Create the missing pods of `workload`; none if it is no workload or terminating.

        With `may_delete`, surplus pods are deleted. Raises AdmissionError, about the workload, when
        its pods would be rejected.
        """
        stored = self._cluster.get(workload.kind, workload.namespace, workload.name)
        if workload.kind not in self._sync or stored is None or stored.is_terminating:
            return []
        try:
            made = self._sync[stored.kind](stored, may_delete)
            for orphan in self._pods.take_adopted() if self._is_live else ():
                self._adopt(orphan)
            self.refused.clear(_key(stored))
            return made
        except AdmissionRefusedError as error:
            self.refused.note(_key(stored), str(error))
            self._pods.owned_by(stored).vacated = None  # `run` creates the missing daemons
            return []
        except AdmissionError as error:
            if isinstance(error.obj, Pod):
                error = AdmissionError(workload, f"spec.template.{error.path}", error.problem)
            elif isinstance(error.obj, ReplicaSet):
                error = AdmissionError(workload, error.path, error.problem)
            raise error from None

    def take_first_daemons(self) -> list[Pod]:
        """The daemons of new nodes: in a cluster they are placed while other pods still avoid the node."""
        found, self._first_daemons = self._first_daemons, []
        self._new_nodes.clear()
        return found

    def on_add(self, obj: Any) -> None:
        """Record a new workload, or a new node for daemons."""
        match obj:
            case LimitRange() | ResourceQuota():
                self.retry_refused(obj.namespace)
            case Pod():
                self._pods.add(obj)
            case Node():
                self._changed_nodes.add(obj.name)
                self._new_nodes.add(obj.name)
            case _ if obj.kind in self._sync:
                if isinstance(obj, ReplicaSet):
                    self._replica_sets.add(obj)
                self._changes.add(_key(obj))
                self._note(_key(obj), False)
            case _:
                self._job_groups.add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Record a changed workload, or a finished pod."""
        match new:
            case Pod():
                owner = self._pods.add(new)
                if is_there(old) and not is_there(new):
                    if owner is not None and owner[0] == "Job" and new.is_finished:
                        self._job_backoffs.finished(owner, new)
                    self._note(owner, False)
                    self.retry_refused(new.namespace)
                elif owner and self._is_ready(new) and not self._is_ready(old):
                    self._note_progress(owner)
            case LimitRange() | ResourceQuota():
                self.retry_refused(new.namespace)
            case Node():
                if old.labels != new.labels or old.taints != new.taints:
                    self._changed_nodes.add(new.name)
            case _ if new.kind in self._sync:
                self._changes.update(_key(new), old, new)
                self._note(_key(new), True)

    def on_delete(self, obj: Any) -> None:
        """Record a deleted workload with its dependents, or a deleted pod."""
        match obj:
            case Pod():
                owner = self._pods.remove(obj)
                self._note(owner, False)
                self._note_progress(owner)
                self.retry_refused(obj.namespace)
            case LimitRange() | ResourceQuota():
                self.retry_refused(obj.namespace)
            case Node():
                self._changed_nodes.add(obj.name)
            case _ if obj.kind in self._sync:
                self._abandoned.append(_key(obj))
                self._changes.forget(_key(obj))
                self._job_backoffs.forget(_key(obj))
            case _:
                self._job_groups.remove(obj)

    def run(self) -> list[Pod]:
        """Do the recorded work until nothing is left; return the new pods."""
        made: list[Pod] = []
        while self.has_work:
            made += self.run_once()
        return made

    @property
    def has_work(self) -> bool:
        """Whether work is recorded."""
        return bool(self._noted or self._abandoned or self._changed_nodes)

    def run_once(self) -> list[Pod]:
        """Do the recorded work; consequences are recorded in turn."""
        changed, self._changed_nodes = self._changed_nodes, set()
        for daemon_set in self._cluster.list("DaemonSet") if changed else ():
            owned = self._pods.owned_by(daemon_set, daemon_set.spec.selector)
            there = (pod for name in sorted(changed) for pod in self._pods.on_node(name))
            pods = [pod for pod in there if owned.active.get(pod.name) is pod]
            if pods:
                self._delete_misplaced(daemon_set, pods)
            if owned.vacated is not None:
                owned.vacated |= changed
            self._note(_key(daemon_set), False)
        abandoned, self._abandoned = self._abandoned, []
        for key in abandoned:
            self._clean_up(key)
        made = []
        noted, self._noted = self._noted, {}
        for key, has_changed in noted.items():
            workload = self._cluster.get(*key)
            if workload is None:
                continue
            made += self._try_sync(workload, has_changed)
        return made

    def _try_sync(self, workload: KubeObject, may_delete: bool) -> list[Pod]:
        """Do `sync`; in a live cluster errors are recorded."""
        try:
            return self.sync(workload, may_delete)
        except BayplanError as error:
            if not self._is_live:
                raise
            self.failures.append((workload, error))
            return []

    def retry(self, workload: KubeObject) -> None:
        """Retry failed work."""
        self._note(_key(workload), True)

    def remove_done_job(self, pod: Pod) -> None:
        """Delete the job of a finished pod, if it was the last one, and keep no record of it.

        A job with an owner stays: a CronJob counts its jobs.
        """
        key = self._pods.owner_of(pod)
        job = self._cluster.get(*key) if key is not None and key[0] == "Job" else None
        if key is None or job is None or job.owner_references:
            return
        if jobs.is_done(job, self._pods.owned_by(job)):
            self._cluster.delete(job)
            self._pods.forget_names(key)

    def _note(self, key: OwnerKey | None, has_changed: bool) -> None:
        if key is not None:
            self._noted[key] = has_changed or self._noted.get(key, False)

    def retry_refused(self, namespace: str) -> None:
        """Try refused pods again: there may be room in a quota."""
        for key in self.refused.within(namespace):
            self._note(key, False)

    def _note_progress(self, owner: OwnerKey | None) -> None:
        """Record that a pod of the controller is ready or gone, for the workload that waits for it."""
        if owner is not None and owner[0] == "ReplicaSet" and self._changes:
            replica_set = self._cluster.get(*owner)
            name = replica_set and deployments.deployment_of(replica_set)
            owner = ("Deployment", owner[1], name) if name else None
        if owner is not None and (owner[0] == "StatefulSet" or owner in self._changes):
            self._note(owner, owner in self._changes)

    def _clean_up(self, key: OwnerKey) -> None:
        """Delete the dependents of a deleted workload."""
        if self._is_live:
            self._pods.forget_owner(key)
            return
        kind, namespace, name = key
        if kind == "Deployment":
            for replica_set in self._replica_sets.named(namespace, name):
                self._cluster.delete(replica_set)
        if kind == "Job":
            self._job_groups.delete_of(namespace, name)
        for pod in self._pods.forget_owner(key):
            self._delete(pod)

    def _own(self, replica_set: ReplicaSet, deployment: Deployment) -> ReplicaSet:
        """The replica set with the deployment as its owner, written if it had none."""
        if deployments.deployment_of(replica_set) != "":
            return replica_set
        owned = self._cluster.update(deployments.with_owner(replica_set, deployment))
        self._replica_sets.add(owned)
        return owned

    def _sync_deployment(self, deployment: Deployment, may_delete: bool) -> list[Pod]:
        key = _key(deployment)
        replica_sets = self._replica_sets.of(deployment)
        if self._is_live:
            replica_sets = [self._own(found, deployment) for found in replica_sets]
        template = self._read_template(deployment)
        same = [found for found in replica_sets if self._read_template(found) == template]
        newest = same[0] if same else None
        is_rollout = (self._is_live or key in self._changes) and not deployment.spec.paused
        last = max(map(deployments.revision_of, replica_sets), default=0)
        former, scaled = self._changes.take_unscaled(key), list[Pod]()
        if former is not None and is_rollout and replica_sets:
            replica_sets, scaled = self._scale_first(deployment, former, replica_sets, newest)
            newest = next((rs for rs in replica_sets if newest and rs.name == newest.name), None)
        if not replica_sets or (is_rollout and newest is None):
            made_set = deployments.make_replica_set(deployment, last + 1, template)
            if replica_sets:
                made_set = replace(made_set, spec=replace(made_set.spec, replicas=0))
            newest = self._cluster.add(made_set)
            self._replica_sets.add(newest)
            self._on_scaled(deployment, newest, 0)
            replica_sets.append(newest)
        elif self._is_live and newest is not None:
            wanted = deployments.up_to_date(newest, deployment, last)
            newest = newest if wanted is newest else self._cluster.update(wanted)
            replica_sets = [newest if rs.name == newest.name else rs for rs in replica_sets]
        if is_rollout and newest is not None:
            return scaled + self._roll_out(deployment, replica_sets, newest.name)
        plan = deployments.plan_replicas(deployment, replica_sets, newest, may_delete)
        return [
            pod for found, size in plan for pod in self._resize(deployment, found, size, may_delete)
        ]

    def _scale_first(
        self,
        deployment: Deployment,
        former: Deployment,
        replica_sets: list[ReplicaSet],
        newest: ReplicaSet | None,
    ) -> tuple[list[ReplicaSet], list[Pod]]:
        """Distribute a new number of replicas among the replica sets; returns these, and the pods made."""
        order = sorted(replica_sets, key=deployments.revision_of, reverse=True)
        name = newest.name if newest is not None else ""
        sizes = {found.name: found.replicas for found in order}
        sizes = rollouts.scale_replica_sets(former, deployment, sizes, name)
        made: list[Pod] = []
        for found in replica_sets:
            made += self._resize(deployment, found, sizes[found.name], True)
        stored = (self._cluster.get(rs.kind, rs.namespace, rs.name) for rs in replica_sets)
        return [found for found in stored if isinstance(found, ReplicaSet)], made

    def _roll_out(
        self, deployment: Deployment, replica_sets: list[ReplicaSet], newest: str
    ) -> list[Pod]:
        """Make the next step of a rollout; the one after it follows when pods become available or are deleted."""
        is_available, counts = self._available.of(deployment), dict[str, rollouts.ReplicaCount]()
        for found in sorted(replica_sets, key=deployments.revision_of):
            pods = self._pods.owned_by(found, found.spec.selector)
            counts[found.name] = rollouts.ReplicaCount.of(found.replicas, pods, is_available)
        sizes = rollouts.plan_rollout(deployment, counts, newest)
        if sizes == {name: deployment.replicas if name == newest else 0 for name in sizes}:
            self._changes.complete(_key(deployment))
        return [
            pod
            for found in replica_sets
            for pod in self._resize(deployment, found, sizes[found.name], True)
        ]

    def _resize(
        self, deployment: Deployment, replica_set: ReplicaSet, replicas: int, may_delete: bool
    ) -> list[Pod]:
        """Scale a replica set of the deployment."""
        before = replica_set.replicas
        if replicas != before:
            spec = replace(replica_set.spec, replicas=replicas)
            replica_set = self._cluster.update(replace(replica_set, spec=spec))
            self._on_scaled(deployment, replica_set, before)
        # A roll-out continues without pods that are refused.
        return self._try_sync(replica_set, may_delete)

    def _on_scaled(self, deployment: Deployment, replica_set: ReplicaSet, before: int) -> None:
        """Handle a replica set that was created or has another size, for events."""

    def _sync_replica_set(self, found: ReplicaSet, may_delete: bool) -> list[Pod]:
        return self._keep(found, found.spec.selector, found.spec.template, may_delete)

    def _related(self, owner: ReplicaSet | ReplicationController) -> Iterable[Pod] | None:
        name = deployments.deployment_of(owner) if isinstance(owner, ReplicaSet) else None
        sets = self._replica_sets.named(owner.namespace, name) if name else ()
        return [pod for one in sets for pod in self._pods.owned_by(one).active.values()] or None

    def _sync_replication_controller(
        self, found: ReplicationController, may_delete: bool
    ) -> list[Pod]:
        template = found.spec.template or PodTemplateSpec()
        selector = LabelSelector.of(found.spec.selector or template.labels)
        return self._keep(found, selector, template, may_delete)

    def _sync_stateful_set(self, stateful_set: StatefulSet, may_delete: bool) -> list[Pod]:
        key = _key(stateful_set)
        checked(stateful_set, stateful_set.replicas)
        revision = self.revision_of(stateful_set)
        rolls = self._is_live or self._changes.has_new_template(key)
        plan = stateful_sets.plan_stateful_set(
            stateful_set,
            self._pods.owned_by(stateful_set),
            self._available.of(stateful_set),
            may_delete=may_delete or key in self._changes,
            revision=revision if rolls else None,
        )
        for pod in plan.delete:
            self._delete(pod)
        made = [
            self._add_stateful(stateful_set, number)
            for number in plan.create
            if self._make_room(stateful_set, f"{stateful_set.name}-{number}")
        ]
        if plan.is_waiting and made and all(map(self._is_ready, made)):
            made += self._sync_stateful_set(stateful_set, may_delete)
        elif not plan.is_waiting and not plan.delete:
            self._changes.complete(key)
        return made

    def _add_stateful(self, stateful_set: StatefulSet, number: int) -> Pod:
        """Create the pod with that ordinal, and its claims; below the partition from the former template."""
        is_kept = number - stateful_set.first_ordinal < stateful_set.partition
        former = self._former(stateful_set) if is_kept else None
        source, revision = former or (stateful_set, self.revision_of(stateful_set))
        claims = stateful_sets.make_claims(stateful_set, number)
        for claim in claims.values():
            if self._cluster.get(claim.kind, claim.namespace, claim.name) is None:
                self._add_claim(stateful_set, claim, f"{stateful_set.name}-{number}")
        return self._add(make_stateful_pod(source, number, revision, claims))

    def _former(self, stateful_set: StatefulSet) -> tuple[StatefulSet, str] | None:
        """The set before its template changed, and its revision."""
        former = self._changes.former(_key(stateful_set))
        return None if former is None else (former, self.revision_of(former))

    def _sync_job(self, job: Job, may_delete: bool) -> list[Pod]:
        owned = self._pods.owned_by(job)
        plan = jobs.plan_job(job, owned)
        labels = {} if job.spec.manual_selector else job_pod_labels(job.uid, job.name)
        group = self._job_groups.group_of(job, owned.has_any)
        if may_delete:
            self._delete_some(owned.active.values(), plan.excess)
        if (plan.missing or plan.missing_indexes) and self._job_backoffs.must_wait(_key(job)):
            return []
        made = []
        for index in plan.missing_indexes:
            name = next(self._pods.free_names(job, jobs.name_prefix(job.name, index)))
            mark = {COMPLETION_INDEX: str(index)}
            pod = make_pod(job, job.spec.template, name, labels=labels | mark, annotations=mark)
            made.append(self._add(pod if group is None else job_groups.with_group(pod, group)))
        return made + self._fill_up(job, checked(job, plan.missing), job.spec.template, labels)

    def _sync_daemon_set(self, daemon_set: DaemonSet, may_delete: bool) -> list[Pod]:
        template, selector = daemon_set.spec.template, daemon_set.spec.selector
        owned = self._pods.owned_by(daemon_set, selector)
        if may_delete:
            self._delete_misplaced(daemon_set, owned.active.values())
        free = daemons.without_daemon(owned, self._cluster, may_delete)
        if not free and not may_delete:
            return []
        base = daemons.make_spec(template.spec)
        labels = {REVISION_HASH: self.revision_of(daemon_set), daemons.GENERATION: "1"}
        names = [n.name for n in free if daemons.is_eligible(n, base, template.node_name)]
        if may_delete:
            names += self._delete_outdated(daemon_set, labels[REVISION_HASH], len(names))
        made = []
        for node_name in names:
            name = next(self._pods.free_names(daemon_set, f"{daemon_set.name}-"))
            spec = daemons.tie_to_node(base, node_name)
            made.append(self._add(make_pod(daemon_set, template, name, labels=labels, spec=spec)))
            if node_name in self._new_nodes:
                self._first_daemons.append(made[-1])
        return made

    def _delete_misplaced(self, daemon_set: DaemonSet, pods: Iterable[Pod]) -> None:
        """Delete the daemons that may not stay on their nodes."""
        for pod in daemons.misplaced(pods, daemon_set.spec.template, self._cluster.get):
            self._delete(pod)

    def revision_of(self, workload: StatefulSet | DaemonSet) -> str:
        """The template hash that the pods of the workload should have."""
        hashed = make_hash(self._read_template(workload))
        return f"{workload.name}-{hashed}" if isinstance(workload, StatefulSet) else hashed

    def _delete_outdated(self, daemon_set: DaemonSet, revision: str, missing: int) -> list[str]:
        """Delete pods of an earlier template, as far as allowed; returns nodes for an additional new pod."""
        key = _key(daemon_set)
        if not self._is_live and key not in self._changes:
            return []
        pods, is_available = self._pods.owned_by(daemon_set), self._available.of(daemon_set)
        outdated = daemons.outdated(daemon_set, pods, missing, revision, is_available)
        for pod in outdated.now:
            self._delete(pod)
        if not outdated.now and not outdated.later:
            self._changes.complete(key)
        return outdated.surge


def _key(workload: KubeObject) -> OwnerKey:
    return workload.kind, workload.namespace, workload.name
