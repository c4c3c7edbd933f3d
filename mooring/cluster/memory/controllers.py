"""Controllers: make the pods that workloads lack.

Mirrors pkg/controller/{deployment,replicaset,replication,statefulset,job,daemon}: how pods are
named, labelled and owned, and how many there should be. Nothing is deleted and no rollout is
played: pods that exist are counted, missing ones are made, all at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from ...api.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from ...api.node import Node
from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.selectors import LabelSelector
from ...api.workloads import (
    DaemonSet,
    Deployment,
    Job,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from . import daemons, jobs, stateful_sets
from .admission import Admission, AdmissionError
from .names import make_hash, make_name
from .pod_index import PodIndex, is_active
from .store import MemoryCluster

TEMPLATE_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HASH = "controller-revision-hash"
MAX_PODS_PER_WORKLOAD = 1_000_000
MAX_NAME = 253

_ENCODER = msgspec.json.Encoder(order="deterministic")


def run_controllers(cluster: MemoryCluster, admission: Admission | None = None) -> list[Pod]:
    """Make the pods that the workloads in `cluster` lack, and return them."""
    controllers = Controllers(cluster, admission or Admission(cluster), cluster.list("Pod"))
    workloads = [obj for kind in WORKLOAD_KINDS for obj in cluster.list(kind)]
    return [pod for workload in workloads for pod in controllers.sync(workload)]


class Controllers:
    """All workload controllers of one cluster. `pods` are those that exist or are yet to be added.

    The pods made are admitted and added to the cluster.
    """

    def __init__(self, cluster: MemoryCluster, admission: Admission, pods: Iterable[Pod]) -> None:
        self._cluster = cluster
        self._admission = admission
        self._pods = PodIndex(pods)
        self._numbers: dict[tuple[str, str, str], Iterator[int]] = {}
        self._replica_sets: dict[tuple[str, str], list[str]] | None = None
        self._sync: dict[str, Callable[[Any], list[Pod]]] = {
            "DaemonSet": self._sync_daemon_set,
            "Deployment": self._sync_deployment,
            "Job": self._sync_job,
            "ReplicaSet": self._sync_replica_set,
            "ReplicationController": self._sync_replication_controller,
            "StatefulSet": self._sync_stateful_set,
        }

    def sync(self, workload: KubeObject) -> list[Pod]:
        """Make the pods that `workload` lacks; none if it is no workload or on its way out.

        Raises AdmissionError, about the workload, when its pods would be refused.
        """
        stored = self._cluster.get(workload.kind, workload.namespace, workload.name)
        if workload.kind not in self._sync or stored is None or stored.is_terminating:
            return []
        try:
            return self._sync[stored.kind](stored)
        except AdmissionError as error:
            path = error.path if error.obj is stored else f"spec.template.{error.path}"
            raise AdmissionError(workload, path, error.problem) from None

    def replace(self, gone: Pod) -> list[Pod]:
        """Make what the owner of a deleted pod lacks without it; the owner may be gone as well."""
        self._pods.remove(gone)
        owner = gone.controller
        workload = self._cluster.get(owner.kind, gone.namespace, owner.name) if owner else None
        return self.sync(workload) if workload is not None else []

    def _sync_deployment(self, deployment: Deployment) -> list[Pod]:
        replica_sets = self._replica_sets_of(deployment)
        if not replica_sets:
            replica_sets = [self._cluster.add(make_replica_set(deployment))]
        missing = deployment.replicas - sum(found.replicas for found in replica_sets)
        if missing > 0:
            newest = pick_replica_set(deployment, replica_sets)
            spec = replace(newest.spec, replicas=newest.replicas + missing)
            grown = self._cluster.update(replace(newest, spec=spec))
            replica_sets = [grown if found is newest else found for found in replica_sets]
        return [pod for found in replica_sets for pod in self._sync_replica_set(found)]

    def _sync_replica_set(self, replica_set: ReplicaSet) -> list[Pod]:
        spec = replica_set.spec
        return self._fill_up(replica_set, replica_set.replicas, spec.template, spec.selector)

    def _sync_replication_controller(self, controller: ReplicationController) -> list[Pod]:
        template = controller.spec.template or PodTemplateSpec()
        selector = LabelSelector.of(controller.spec.selector or template.labels)
        return self._fill_up(controller, controller.replicas, template, selector)

    def _sync_stateful_set(self, stateful_set: StatefulSet) -> list[Pod]:
        template = stateful_set.spec.template
        labels = {REVISION_HASH: f"{stateful_set.name}-{hash_template(template)}"}
        ordinals = range(_checked(stateful_set, stateful_set.replicas))
        made = []
        for ordinal in ordinals:
            number = stateful_set.first_ordinal + ordinal
            name = f"{stateful_set.name}-{number}"
            if not self._make_room(stateful_set, name):
                continue
            claims = stateful_sets.make_claims(stateful_set, number)
            for claim in claims.values():
                if self._cluster.get(claim.kind, claim.namespace, claim.name) is None:
                    self._cluster.add(claim)
            pod = make_pod(
                stateful_set,
                template,
                name,
                labels=labels | stateful_sets.identity_labels(name, number),
                spec=stateful_sets.make_spec(template, claims),
            )
            made.append(self._add(pod))
        return made

    def _sync_job(self, job: Job) -> list[Pod]:
        plan = jobs.plan_job(job, self._pods.owned_by(job))
        labels = jobs.job_labels(job)
        made = []
        for index in plan.missing_indexes:
            name = self._free_name(job, jobs.name_prefix(job.name, index))
            mark = {jobs.COMPLETION_INDEX: str(index)}
            pod = make_pod(job, job.spec.template, name, labels=labels | mark, annotations=mark)
            made.append(self._add(pod))
        for _ in range(_checked(job, plan.missing)):
            name = self._free_name(job, f"{job.name}-")
            made.append(self._add(make_pod(job, job.spec.template, name, labels=labels)))
        return made

    def _sync_daemon_set(self, daemon_set: DaemonSet) -> list[Pod]:
        template, selector = daemon_set.spec.template, daemon_set.spec.selector
        running = filter(is_active, self._pods.owned_by(daemon_set, selector))
        taken = {daemons.target_node(pod) for pod in running}
        base = daemons.make_spec(template.spec)
        labels = {REVISION_HASH: hash_template(template), daemons.GENERATION: "1"}
        nodes: Iterable[Node] = self._cluster.list("Node")
        made = []
        for node in nodes:
            if node.name in taken or not daemons.is_eligible(node, base, template.node_name):
                continue
            name = self._free_name(daemon_set, f"{daemon_set.name}-")
            spec = daemons.tie_to_node(base, node.name)
            made.append(self._add(make_pod(daemon_set, template, name, labels=labels, spec=spec)))
        return made

    def _fill_up(
        self,
        owner: KubeObject,
        replicas: int,
        template: PodTemplateSpec,
        selector: LabelSelector | None,
    ) -> list[Pod]:
        """Make like pods until `owner` has as many as it wants."""
        present = sum(map(is_active, self._pods.owned_by(owner, selector)))
        made = []
        for _ in range(_checked(owner, replicas) - present):
            name = self._free_name(owner, f"{owner.name}-")
            made.append(self._add(make_pod(owner, template, name)))
        return made

    def _add(self, pod: Pod) -> Pod:
        added = self._cluster.add(self._admission.admit(pod))
        self._pods.add(added)
        return added

    def _make_room(self, owner: KubeObject, name: str) -> bool:
        """Whether a pod called `name` can be made; a finished one of the owner's gives way."""
        present = self._pods.get(owner.namespace, name)
        if present is None:
            return True
        controller = present.controller
        if not present.is_finished or controller is None or controller.name != owner.name:
            return False
        self._cluster.delete(present)
        self._pods.remove(present)
        return True

    def _free_name(self, owner: KubeObject, prefix: str) -> str:
        """A name for the next pod of `owner` that no pod has."""
        numbers = self._numbers.setdefault((owner.kind, owner.key, prefix), count())
        seeds = (f"{owner.kind}/{owner.key}/{prefix}/{number}" for number in numbers)
        names = (make_name(prefix, seed) for seed in seeds)
        return next(name for name in names if self._pods.get(owner.namespace, name) is None)

    def _replica_sets_of(self, deployment: Deployment) -> list[ReplicaSet]:
        """The deployment's replica sets: those that name it, and those without owner it picks."""
        if self._replica_sets is None:
            self._replica_sets = _by_owner(self._cluster.list("ReplicaSet"))
        space, selector = deployment.namespace, deployment.spec.selector
        found = [
            self._cluster.get("ReplicaSet", space, name)
            for name in self._replica_sets.get((space, deployment.name), ())
        ]
        for name in self._replica_sets.get((space, ""), ()):
            orphan = self._cluster.get("ReplicaSet", space, name)
            if orphan and selector and not selector.is_empty and selector.matches(orphan.labels):
                found.append(orphan)
        return [replica_set for replica_set in found if replica_set is not None]


WORKLOAD_KINDS = (
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Job",
)


def make_pod(
    owner: KubeObject,
    template: PodTemplateSpec,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod of `owner`, made from `template`; what is given beside it is laid on top."""
    pod = Pod(
        name,
        owner.namespace,
        labels={**template.labels, **(labels or {})},
        annotations={**template.annotations, **(annotations or {})},
        owner_references=(owner_reference(owner),),
        generate_name="" if isinstance(owner, StatefulSet) else f"{owner.name}-",
        node_name=template.node_name,
        spec=template.spec,
    )
    return pod if spec is None else pod.with_spec(spec)


def owner_reference(owner: KubeObject) -> OwnerReference:
    """The reference of an object to the controller that made it."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
    )


def make_replica_set(deployment: Deployment) -> ReplicaSet:
    """The replica set that the deployment would roll out, with all of its replicas."""
    spec = deployment.spec
    hashed = hash_template(spec.template)
    labels = {**spec.template.labels, TEMPLATE_HASH: hashed}
    selector = spec.selector or LabelSelector.of(spec.template.labels)
    match_labels = {**(selector.match_labels or {}), TEMPLATE_HASH: hashed}
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name[: MAX_NAME - 1 - len(hashed)]}-{hashed}",
            namespace=deployment.namespace,
            labels=labels,
            annotations={REVISION: "1"},
            owner_references=(owner_reference(deployment),),
        ),
        spec=replace(
            ReplicaSet().spec,
            replicas=deployment.replicas,
            selector=replace(selector, match_labels=match_labels),
            template=replace(
                spec.template, metadata=replace(spec.template.metadata, labels=labels)
            ),
        ),
    )


def pick_replica_set(deployment: Deployment, replica_sets: list[ReplicaSet]) -> ReplicaSet:
    """The one that grows: the one with the deployment's template, else the latest revision."""
    wanted = _encode_template(deployment.spec.template)
    for replica_set in replica_sets:
        if _encode_template(replica_set.spec.template) == wanted:
            return replica_set

    def revision(replica_set: ReplicaSet) -> int:
        text = replica_set.annotations.get(REVISION, "")
        return int(text) if text.isdecimal() else 0

    return max(replica_sets, key=revision)


def hash_template(template: PodTemplateSpec) -> str:
    """A short hash of what the template says, the hash it may carry left aside."""
    return make_hash(_encode_template(template))


def _encode_template(template: PodTemplateSpec) -> bytes:
    labels = {key: value for key, value in template.labels.items() if key != TEMPLATE_HASH}
    return _ENCODER.encode((labels, template.annotations, template.full_spec))


def _by_owner(replica_sets: Iterable[ReplicaSet]) -> dict[tuple[str, str], list[str]]:
    """Names of replica sets by namespace and deployment; without a deployment under ""."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for replica_set in replica_sets:
        owner = controller_of(replica_set.owner_references)
        if owner is None or owner.kind == "Deployment":
            found[replica_set.namespace, owner.name if owner else ""].append(replica_set.name)
    return dict(found)


def _checked(owner: KubeObject, replicas: int) -> int:
    """`replicas`, unless they are too many to be meant."""
    if replicas > MAX_PODS_PER_WORKLOAD:
        field = "parallelism" if owner.kind == "Job" else "replicas"
        fault = f"expected at most {MAX_PODS_PER_WORKLOAD}; got {replicas}"
        raise AdmissionError(owner, f"spec.{field}", fault)
    return replicas
