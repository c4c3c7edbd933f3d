"""Deployments: the replica sets of deployments.

Mirrors pkg/controller/deployment/{sync,util/deployment_util}.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ...api.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from ...api.pod import Pod
from ...api.selectors import LabelSelector
from ...api.wire.sourced import set_template_source, template_source
from ...api.workloads import DaemonSet, Deployment, PodTemplateSpec, ReplicaSet, StatefulSet
from ..objects.object_index import ControllerCluster
from .created_names import make_hash

TEMPLATE_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
OWN_NOTES = frozenset(
    (
        *(REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS),
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    )
)
"""Annotations of a deployment that its replica sets do not get."""
MAX_NAME = 253

_ENCODER = msgspec.json.Encoder(order="deterministic")


def owner_reference(owner: KubeObject | Pod) -> OwnerReference:
    """The reference of an object to the controller that made it."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
    )


def make_replica_set(
    deployment: Deployment, revision: int = 1, template: bytes | None = None
) -> ReplicaSet:
    """The replica set that the deployment would create, with all of its replicas; named after its
    `template`."""
    spec = deployment.spec
    hashed = make_hash(encode_template(spec.template) if template is None else template)
    labels = {**spec.template.labels, TEMPLATE_HASH: hashed}
    selector = spec.selector or LabelSelector.of(spec.template.labels)
    match_labels = {**(selector.match_labels or {}), TEMPLATE_HASH: hashed}
    made = replace(spec.template, metadata=replace(spec.template.metadata, labels=labels))
    set_template_source(made, template_source(spec.template))
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name[: MAX_NAME - 1 - len(hashed)]}-{hashed}",
            namespace=deployment.namespace,
            labels=labels,
            annotations={REVISION: str(revision)},
            owner_references=(owner_reference(deployment),),
        ),
        spec=replace(
            ReplicaSet().spec,
            replicas=deployment.replicas,
            selector=replace(selector, match_labels=match_labels),
            template=made,
            min_ready_seconds=spec.min_ready_seconds,
        ),
    )


def adopted(pod: Pod, owner: KubeObject) -> Pod:
    """The pod with one more owner, which controls it."""
    return pod.replace(owner_references=(*pod.owner_references, owner_reference(owner)))


def with_owner(replica_set: ReplicaSet, deployment: Deployment) -> ReplicaSet:
    """The replica set with the deployment as one of its owners."""
    owners = (*replica_set.owner_references, owner_reference(deployment))
    return replace(replica_set, metadata=replace(replica_set.metadata, owner_references=owners))


def up_to_date(newest: ReplicaSet, deployment: Deployment, last: int) -> ReplicaSet:
    """The newest replica set with the highest revision, where another has that (`last`), and `minReadySeconds`."""
    seconds = deployment.spec.min_ready_seconds
    if newest.spec.min_ready_seconds != seconds:
        newest = replace(newest, spec=replace(newest.spec, min_ready_seconds=seconds))
    if revision_of(newest) < last:
        former = newest.annotations.get(REVISION, "")
        history = filter(None, (newest.annotations.get(REVISION_HISTORY, ""), former))
        notes = {**newest.annotations, REVISION: str(last + 1)}
        if former:
            notes[REVISION_HISTORY] = ",".join(history)
        newest = replace(newest, metadata=replace(newest.metadata, annotations=notes))
    return newest


def revision_of(replica_set: ReplicaSet) -> int:
    """The revision of the replica set; 0 without one."""
    text = replica_set.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def plan_replicas(
    deployment: Deployment,
    replica_sets: Sequence[ReplicaSet],
    newest: ReplicaSet | None,
    may_shrink: bool,
) -> list[tuple[ReplicaSet, int]]:
    """The number of replicas of each replica set: the newest grows, the others shrink first.

    When none has the deployment's template, the latest revision counts as the newest.
    """
    newest = newest or max(replica_sets, key=revision_of)
    missing = deployment.replicas - sum(found.replicas for found in replica_sets)
    wanted = {found.name: found.replicas for found in replica_sets}
    if missing > 0:
        wanted[newest.name] += missing
    elif may_shrink:
        for found in sorted(replica_sets, key=lambda found: found is newest):
            dropped = min(-missing, found.replicas)
            wanted[found.name] -= dropped
            missing += dropped
    return [(found, wanted[found.name]) for found in replica_sets]


def has_new_template(
    old: Deployment | StatefulSet | DaemonSet, new: Deployment | StatefulSet | DaemonSet
) -> bool:
    """Whether the change requires new pods."""
    one, other = old.spec.template, new.spec.template
    return one is not other and encode_template(one) != encode_template(other)


def read_template(workload: KubeObject) -> bytes:
    """The template of a workload as bytes, equal for equal templates."""
    assert isinstance(workload, Deployment | ReplicaSet | StatefulSet | DaemonSet)
    return encode_template(workload.spec.template)


def encode_template(template: PodTemplateSpec) -> bytes:
    """The template as bytes, equal for equal templates."""
    labels = {key: value for key, value in template.labels.items() if key != TEMPLATE_HASH}
    return _ENCODER.encode((labels, template.annotations, template.full_spec))


def deployment_of(replica_set: ReplicaSet) -> str | None:
    """The name of its deployment, "" without an owner; None if it has another owner."""
    owner = controller_of(replica_set.owner_references)
    if owner is None:
        return ""
    return owner.name if owner.kind == "Deployment" else None


class ReplicaSetIndex:
    """The replica sets of a cluster by deployment; filled on first use."""

    def __init__(self, cluster: ControllerCluster) -> None:
        self._cluster = cluster
        self._names: dict[tuple[str, str], dict[str, None]] | None = None

    def add(self, replica_set: ReplicaSet) -> None:
        """Add a replica set."""
        owner = deployment_of(replica_set)
        if owner is not None and self._names is not None:
            key = replica_set.namespace, owner
            self._names.setdefault(key, {})[replica_set.name] = None

    def of(self, deployment: Deployment) -> list[ReplicaSet]:
        """The deployment's replica sets: those it owns, and orphans its selector matches."""
        selector = deployment.spec.selector
        found = self.named(deployment.namespace, deployment.name)
        if selector is not None and not selector.is_empty:
            orphans = self.named(deployment.namespace, "")
            found += (orphan for orphan in orphans if selector.matches(orphan.labels))
        return found

    def named(self, namespace: str, deployment: str) -> list[ReplicaSet]:
        """The replica sets owned by the deployment; orphans for ""."""
        if self._names is None:
            self._names = {}
            for replica_set in self._cluster.list("ReplicaSet"):
                self.add(replica_set)
        names = self._names.get((namespace, deployment), ())
        found = (self._cluster.get("ReplicaSet", namespace, name) for name in names)
        return [replica_set for replica_set in found if replica_set is not None]
