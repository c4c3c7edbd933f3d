"""Stateful sets: ordinals and claims of their pods, and the order in which they are created and deleted.

Mirrors pkg/controller/statefulset/{stateful_set_utils,stateful_set_control}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.storage import PersistentVolumeClaim
from ...api.volumes import PersistentVolumeClaimVolume, Volume
from ...api.workloads import PodTemplateSpec, StatefulSet
from .deployments import owner_reference

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION_HASH = "controller-revision-hash"
PARALLEL, ON_DELETE = "Parallel", "OnDelete"
DELETE = "Delete"


class StatefulSetPlan(msgspec.Struct):
    """The next step: ordinals to create, pods to delete."""

    create: list[int] = msgspec.field(default_factory=list)
    delete: list[Pod] = msgspec.field(default_factory=list)
    is_waiting: bool = False
    """Whether the next step waits until a pod is ready or was deleted."""


def plan_stateful_set(
    stateful_set: StatefulSet,
    pods: Iterable[Pod],
    is_ready: Callable[[Pod], bool],
    *,
    may_delete: bool,
    revision: str | None,
) -> StatefulSetPlan:
    """The next step towards the wanted pods, one pod at a time unless podManagementPolicy is Parallel.

    `pods` are those of the set that have not finished. Those that are not of `revision` are replaced, the last one
    first, by the update strategy; None if none are.
    """
    plan = StatefulSetPlan()
    is_ordered = stateful_set.spec.pod_management_policy != PARALLEL
    first = stateful_set.first_ordinal
    ordinals = range(first, first + stateful_set.replicas)
    by_ordinal = {n: pod for pod in pods if (n := ordinal_of(stateful_set, pod)) is not None}
    for number in ordinals:
        pod = by_ordinal.get(number)
        if pod is None:
            plan.create.append(number)
        if is_ordered and (pod is None or not is_ready(pod)):
            plan.is_waiting = True
            return plan
    if may_delete:
        condemned = sorted((n for n in by_ordinal if n not in ordinals), reverse=True)
        if _condemn(plan, [by_ordinal[n] for n in condemned], is_ready, is_ordered):
            plan.is_waiting = True
            return plan
    if revision is not None:
        _update(plan, stateful_set, [by_ordinal.get(n) for n in ordinals], is_ready, revision)
    return plan


def ordinal_of(stateful_set: StatefulSet, pod: Pod) -> int | None:
    """The number of the pod in the set; None for a pod with another name."""
    number = pod.name.removeprefix(f"{stateful_set.name}-")
    return int(number) if number.isdecimal() and number != pod.name else None


def _condemn(
    plan: StatefulSetPlan,
    condemned: list[Pod],
    is_ready: Callable[[Pod], bool],
    is_ordered: bool,
) -> bool:
    """Delete pods beyond the wanted number, the last one first; returns whether other steps have to wait for that."""
    first_unready = next((pod for pod in reversed(condemned) if not is_ready(pod)), None)
    for pod in condemned:
        if not is_ordered:
            if not pod.is_terminating:
                plan.delete.append(pod)
            continue
        if not pod.is_terminating and (is_ready(pod) or pod is first_unready):
            plan.delete.append(pod)
        return True
    return False


def _update(
    plan: StatefulSetPlan,
    stateful_set: StatefulSet,
    replicas: list[Pod | None],
    is_ready: Callable[[Pod], bool],
    revision: str,
) -> None:
    """Delete the last pod of an earlier revision, once those after it are ready."""
    strategy = stateful_set.spec.update_strategy
    if strategy is not None and strategy.type == ON_DELETE:
        return
    for pod in reversed(replicas[stateful_set.partition :]):
        is_old = pod is not None and pod.labels.get(REVISION_HASH, revision) != revision
        if pod is None or is_old or not is_ready(pod):
            if pod is not None and is_old and not pod.is_terminating:
                plan.delete.append(pod)
            plan.is_waiting = True
            return


def make_claims(stateful_set: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """The claims of the pod with that ordinal, by the name of the template."""
    selector = stateful_set.spec.selector
    labels = (selector.match_labels if selector else None) or {}
    retention = stateful_set.spec.persistent_volume_claim_retention_policy
    is_owner = retention is not None and retention.when_deleted == DELETE and stateful_set.uid
    owners = (owner_reference(stateful_set),) if is_owner else ()
    claims = {}
    for template in stateful_set.spec.volume_claim_templates or ():
        metadata = replace(
            template.metadata,
            name=f"{template.name}-{stateful_set.name}-{ordinal}",
            namespace=stateful_set.namespace,
            labels={**template.labels, **labels},
            owner_references=(*template.owner_references, *owners),
        )
        claims[template.name] = replace(template, metadata=metadata)
    return claims


def drops_claims(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether the claims of the pod are deleted with it: it has no place in the set any more."""
    retention = stateful_set.spec.persistent_volume_claim_retention_policy
    if retention is None or retention.when_scaled != DELETE:
        return False
    number = ordinal_of(stateful_set, pod)
    return number is not None and number - stateful_set.first_ordinal >= stateful_set.replicas


def owned_by_pod(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod
) -> PersistentVolumeClaim:
    """The claim with the pod as its owner instead of the set."""
    others = [o for o in claim.owner_references if o.uid not in (stateful_set.uid, pod.uid)]
    metadata = replace(claim.metadata, owner_references=(*others, owner_reference(pod)))
    return replace(claim, metadata=metadata)


def make_spec(
    template: PodTemplateSpec, claims: dict[str, PersistentVolumeClaim]
) -> PodSpec | None:
    """The template's spec with the claims as volumes; None without a change."""
    if not claims:
        return None
    volumes = [
        Volume(
            name=name, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=claim.name)
        )
        for name, claim in claims.items()
    ]
    others = (v for v in template.full_spec.volumes or () if v.name not in claims)
    return replace(template.full_spec, volumes=(*volumes, *others), node_name="")
