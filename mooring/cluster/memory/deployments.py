"""Deployments: the replica sets they roll out.

Mirrors pkg/controller/deployment/{sync,util/deployment_util}.go. A rollout takes no time: the new replica set has all
replicas at once, and the old ones have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from ...api.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from ...api.selectors import LabelSelector
from ...api.workloads import Deployment, PodTemplateSpec, ReplicaSet
from .names import make_hash

TEMPLATE_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
MAX_NAME = 253

_ENCODER = msgspec.json.Encoder(order="deterministic")


def owner_reference(owner: KubeObject) -> OwnerReference:
    """The reference of an object to the controller that made it."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
    )


def make_replica_set(deployment: Deployment, revision: int = 1) -> ReplicaSet:
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
            annotations={REVISION: str(revision)},
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


def find_replica_set(
    deployment: Deployment, replica_sets: Iterable[ReplicaSet]
) -> ReplicaSet | None:
    """The one with the deployment's template, if there is one."""
    wanted = encode_template(deployment.spec.template)
    for replica_set in replica_sets:
        if encode_template(replica_set.spec.template) == wanted:
            return replica_set
    return None


def pick_replica_set(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> ReplicaSet:
    """The one that grows: the one with the deployment's template, else the latest revision."""
    found = find_replica_set(deployment, replica_sets)
    return max(replica_sets, key=revision_of) if found is None else found


def revision_of(replica_set: ReplicaSet) -> int:
    """How many rollouts it took to get to this replica set; 0 when it does not say."""
    text = replica_set.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def plan_replicas(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], may_shrink: bool
) -> list[tuple[ReplicaSet, int]]:
    """How many replicas each replica set should have: the newest grows, the others shrink first."""
    newest = pick_replica_set(deployment, replica_sets)
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


def plan_rollout(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], newest: ReplicaSet
) -> list[tuple[ReplicaSet, int]]:
    """All replicas for the newest replica set."""
    return [(found, deployment.replicas if found is newest else 0) for found in replica_sets]


def is_rollout(old: Deployment, new: Deployment) -> bool:
    """Whether the change calls for other pods."""
    return encode_template(old.spec.template) != encode_template(new.spec.template)


def hash_template(template: PodTemplateSpec) -> str:
    """A short hash of what the template says, the hash it may carry left aside."""
    return make_hash(encode_template(template))


def encode_template(template: PodTemplateSpec) -> bytes:
    """What the template says, in bytes that are equal for equal ones."""
    labels = {key: value for key, value in template.labels.items() if key != TEMPLATE_HASH}
    return _ENCODER.encode((labels, template.annotations, template.full_spec))


def deployment_of(replica_set: ReplicaSet) -> str | None:
    """The name of the deployment it belongs to, "" if it has no owner; None: it is somebody else's."""
    owner = controller_of(replica_set.owner_references)
    if owner is None:
        return ""
    return owner.name if owner.kind == "Deployment" else None
