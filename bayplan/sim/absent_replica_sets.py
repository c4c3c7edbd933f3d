"""Absent replica sets: replica sets for deployments of a dump that has their pods but no replica sets.

`kubectl get nodes,pods,deployments` writes such a dump. Without its replica set a deployment would create its pods
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..api.meta import OwnerReference, controller_of
from ..api.pod import Pod
from ..api.workloads import Deployment, ReplicaSet
from ..cluster.memory.deployments import TEMPLATE_HASH, make_replica_set
from ..cluster.objects.object_index import ClusterObject

Key = tuple[str, str]
"""Namespace and name of a deployment."""


def absent_replica_sets(objects: Sequence[ClusterObject]) -> list[ReplicaSet]:
    """The replica sets that pods of stored deployments name, for deployments without one among the objects.

    During a rollout, the replica set of the newest pod.
    """
    lacking = _without_replica_sets(objects)
    newest: dict[Key, tuple[Pod, OwnerReference]] = {}
    for obj in objects if lacking else ():
        owner = obj.controller if isinstance(obj, Pod) and not obj.is_finished else None
        if owner is None or owner.kind != "ReplicaSet":
            continue
        assert isinstance(obj, Pod)
        key = obj.namespace, owner.name.rpartition("-")[0]
        if key in lacking and _created(obj) >= _created(newest[key][0] if key in newest else None):
            newest[key] = obj, owner
    return [_replica_set(lacking[key], *found) for key, found in newest.items()]


def absence_note(found: Sequence[ReplicaSet]) -> str:
    """The remark on replica sets that were made."""
    first = f"{found[0].key}, from the pods that name it"
    if len(found) > 1:
        first = f"{len(found):,}, such as {found[0].key}, from the pods that name them"
    return f"ReplicaSets of deployments are not in the files: made {first}; add rs to kubectl get"


def _without_replica_sets(objects: Sequence[ClusterObject]) -> dict[Key, Deployment]:
    stored = {
        (obj.namespace, obj.name): obj for obj in objects if isinstance(obj, Deployment) and obj.uid
    }
    for obj in objects if stored else ():
        if isinstance(obj, ReplicaSet):
            owner = controller_of(obj.owner_references)
            stored.pop((obj.namespace, owner.name if owner is not None else ""), None)
    return stored


def _created(pod: Pod | None) -> str:
    return (pod.creation_timestamp or "") if pod is not None else ""


def _replica_set(deployment: Deployment, pod: Pod, owner: OwnerReference) -> ReplicaSet:
    """The replica set of a pod, with the template of its deployment."""
    made = make_replica_set(deployment)
    hashed = {TEMPLATE_HASH: pod.labels.get(TEMPLATE_HASH) or owner.name.rpartition("-")[2]}
    labels = {**deployment.spec.template.labels, **hashed}
    template, selector = made.spec.template, made.spec.selector
    assert selector is not None, "a deployment has a selector, or labels in its template"
    spec = replace(
        made.spec,
        selector=replace(selector, match_labels={**(selector.match_labels or {}), **hashed}),
        template=replace(template, metadata=replace(template.metadata, labels=labels)),
    )
    metadata = replace(made.metadata, name=owner.name, uid=owner.uid, labels=labels)
    return replace(made, metadata=metadata, spec=spec)
