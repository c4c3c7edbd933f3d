"""Workload controllers: the workload controllers of the embedded cluster.

They are the same as in a simulation. Here they also store revisions, write events about their actions, and retry failed
ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.selectors import LabelSelector
from ...api.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from ...api.workloads import (
    DaemonSet,
    Deployment,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from ...clock import Clock, Timers
from ...cluster.memory import rollouts, stateful_sets
from ...cluster.memory.controllers import Controllers
from ...cluster.memory.pod_index import OwnerKey
from ...cluster.memory.provisioners import PROVISIONED_BY
from ...cluster.memory.volume_controller import BOUND, VolumeController
from ...errors import BayplanError
from .embedded_cluster import LiveCluster
from .recorder import Reporter

RETRY_S = 10.0


class WorkloadControllers(Controllers):
    """The workload controllers, whose work and failures are reported as events."""

    def __init__(
        self,
        cluster: LiveCluster,
        pods: Iterable[Pod],
        clock: Clock,
        timers: Timers,
        gates: Mapping[str, bool] | None = None,
    ) -> None:
        making, time = cluster.making, (clock, timers)
        super().__init__(cluster, None, pods, live=making.read_template, gates=gates, time=time)
        self._live_cluster = cluster
        self._timers = timers
        self.create_failures: dict[OwnerKey, str] = {}
        """By replica set or replication controller: why its last pod could not be created."""
        self.stale_failures: dict[OwnerKey, None] = {}
        """Owners whose status is stale; the reader clears it."""

    def _keep(
        self,
        owner: ReplicaSet | ReplicationController,
        selector: LabelSelector | None,
        template: PodTemplateSpec,
        may_delete: bool,
    ) -> list[Pod]:
        key = owner.kind, owner.namespace, owner.name
        try:
            made = super()._keep(owner, selector, template, may_delete)
        except BayplanError as error:
            if key not in self.create_failures:  # the first one stays, as in a cluster
                self.create_failures[key], self.stale_failures[key] = str(error), None
            raise
        if self.create_failures.pop(key, None) is not None:
            self.stale_failures[key] = None
        return made

    def run_once(self) -> list[Pod]:
        made = super().run_once()
        failures, self.failures[:] = list(self.failures), []
        for workload, error in failures:
            self._live_cluster.warn(workload, "FailedCreate", f"Error creating: {error}")
            self._timers.after(RETRY_S, partial(self.retry, workload))
        return made

    # Revisions

    def _sync_stateful_set(self, stateful_set: StatefulSet, may_delete: bool) -> list[Pod]:
        self._live_cluster.revisions.keep(stateful_set, self.revision_of(stateful_set))
        return super()._sync_stateful_set(stateful_set, may_delete)

    def _sync_daemon_set(self, daemon_set: DaemonSet, may_delete: bool) -> list[Pod]:
        name = f"{daemon_set.name}-{self.revision_of(daemon_set)}"
        self._live_cluster.revisions.keep(daemon_set, name)
        return super()._sync_daemon_set(daemon_set, may_delete)

    def _former(self, stateful_set: StatefulSet) -> tuple[StatefulSet, str] | None:
        newest = self.revision_of(stateful_set)
        return self._live_cluster.revisions.former(stateful_set, newest)

    # Owners and annotations

    def _resize(
        self, deployment: Deployment, replica_set: ReplicaSet, replicas: int, may_delete: bool
    ) -> list[Pod]:
        if replicas or replica_set.replicas:
            noted = rollouts.annotated(replica_set, deployment)
            if noted is not replica_set:
                replica_set = self._cluster.update(noted)
        return super()._resize(deployment, replica_set, replicas, may_delete)

    def _release_claims(self, pod: Pod) -> None:
        """Let the claims of a surplus pod of a StatefulSet be deleted with it, if that is the policy."""
        key = self._pods.owner_of(pod)
        owner: KubeObject | None = self._cluster.get(*key) if key is not None else None
        if not isinstance(owner, StatefulSet) or not stateful_sets.drops_claims(owner, pod):
            return
        number = stateful_sets.ordinal_of(owner, pod) or 0
        for wanted in stateful_sets.make_claims(owner, number).values():
            claim = self._cluster.get(wanted.kind, wanted.namespace, wanted.name)
            if claim is not None:
                self._cluster.update(stateful_sets.owned_by_pod(claim, owner, pod))

    # Events

    def _add(self, pod: Pod) -> Pod:
        added = super()._add(pod)
        self._tell_owner(added, "Create", "Created")
        return added

    def _delete(self, pod: Pod) -> None:
        self._release_claims(pod)
        super()._delete(pod)
        self._tell_owner(pod, "Delete", "Deleted")

    def _tell_owner(self, pod: Pod, verb: str, past: str) -> None:
        key = self._pods.owner_of(pod)
        owner: KubeObject | None = self._cluster.get(*key) if key is not None else None
        if owner is None:
            return
        text = f"{past} pod: {pod.name}"
        if isinstance(owner, StatefulSet):
            text = f"{verb} Pod {pod.name} in StatefulSet {owner.name} successful"
        self._live_cluster.note(owner, f"Successful{verb}", text)

    def _add_claim(self, owner: StatefulSet, claim: PersistentVolumeClaim, pod_name: str) -> None:
        super()._add_claim(owner, claim, pod_name)
        text = f"Create Claim {claim.name} Pod {pod_name} in StatefulSet {owner.name} success"
        self._live_cluster.note(owner, "SuccessfulCreate", text)

    def _on_scaled(self, deployment: Deployment, replica_set: ReplicaSet, before: int) -> None:
        size = replica_set.replicas
        if size == before:
            return  # it was created empty
        way = "up" if size > before else "down"
        text = f"Scaled {way} replica set {replica_set.name} from {before} to {size}"
        self._live_cluster.note(deployment, "ScalingReplicaSet", text)


BINDER = Reporter("persistentvolume-controller")
NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
WAITS = "waiting for first consumer to be created before binding"


class PersistentVolumes(VolumeController):
    """The volume controller, with events."""

    def __init__(self, cluster: LiveCluster, timers: Timers) -> None:
        super().__init__(cluster, timers=timers)
        self._live_cluster = cluster

    def _find_volume(self, claim: PersistentVolumeClaim) -> None:
        super()._find_volume(claim)
        found = self._cluster.get(claim.kind, claim.namespace, claim.name)
        if found is None or found.spec.volume_name or SELECTED_NODE in found.annotations:
            return
        storage_class = self._cluster.get("StorageClass", "", found.storage_class_name)
        if not found.storage_class_name:
            self._live_cluster.tell(found, BINDER, ("Normal", "FailedBinding"), NO_CLASS)
        elif storage_class is not None and storage_class.waits_for_consumer:
            self._live_cluster.tell(found, BINDER, ("Normal", "WaitForFirstConsumer"), WAITS)

    def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        super()._bind(volume, claim)
        driver = volume.annotations.get(PROVISIONED_BY)
        if driver and claim.status.phase != BOUND:
            text = f"Successfully provisioned volume {volume.name}"
            what = "Normal", "ProvisioningSucceeded"
            self._live_cluster.tell(claim, Reporter(driver), what, text)
