"""Stand-ins: replica sets that make the pods of custom workloads, whose controllers are not simulated.

A custom workload with replicas and a template gets a ReplicaSet of its name. Pods that it has in the input stay, and
the ReplicaSet makes those that are missing; if it has replica sets of its own, they make its pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..api.custom_workloads import CustomWorkload, is_custom_group
from ..api.kinds import group_of
from ..api.meta import ObjectMeta, OwnerReference
from ..api.pod import Pod
from ..api.workloads import ReplicaSet, ReplicaSetSpec
from ..cluster.objects import ClusterObject

OwnerName = tuple[str, str, str]
"""Kind with group, namespace and name."""


class StandIn(NamedTuple):
    """What takes the place of a custom workload, and the remark on it."""

    obj: ReplicaSet | None
    remark: str


class StandIns:
    """Makes stand-ins; `objects` are the others of the input, among which may be pods of custom workloads."""

    def __init__(self, objects: Iterable[ClusterObject]) -> None:
        self._pods: Counter[OwnerName] = Counter()
        self._replica_sets: Counter[OwnerName] = Counter()
        for obj in objects:
            if isinstance(obj, Pod | ReplicaSet):
                counts = self._pods if isinstance(obj, Pod) else self._replica_sets
                for owner in obj.owner_references:
                    group = group_of(owner.api_version)
                    if owner.controller and is_custom_group(group):
                        is_there = not (isinstance(obj, Pod) and obj.is_finished)
                        counts[f"{owner.kind}.{group}", obj.namespace, owner.name] += is_there

    def make(self, workload: CustomWorkload) -> StandIn:
        """The stand-in of a workload; none if it is not simulated, or other objects make its pods."""
        if workload.missing:
            return StandIn(None, f"not simulated: {workload}, {workload.missing}")
        key = workload.kind, workload.namespace, workload.name
        if self._replica_sets[key]:
            return StandIn(None, f"{workload}: its pods are those of its replica sets in the input")
        there, wanted = self._pods[key], workload.spec.replicas
        missing = max(wanted - there, 0)
        which = f", of which {there} in the input; the others are" if there else ","
        remark = f"{workload}: {_pods(wanted)}{which} made by a ReplicaSet in its place"
        return StandIn(_replica_set(workload, missing), remark)


def has_custom_workloads(objects: Sequence[object]) -> bool:
    """Whether there are any."""
    return any(isinstance(obj, CustomWorkload) for obj in objects)


def _replica_set(workload: CustomWorkload, replicas: int) -> ReplicaSet:
    owner = OwnerReference(
        api_version=workload.api_version,
        kind=workload.manifest_kind,
        name=workload.name,
        uid=workload.uid,
        controller=True,
    )
    meta = workload.metadata
    return ReplicaSet(
        metadata=ObjectMeta(
            name=meta.name,
            generate_name=meta.generate_name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            owner_references=(owner,),
        ),
        spec=ReplicaSetSpec(replicas=replicas, template=workload.spec.template),
    )


def _pods(number: int) -> str:
    return f"{number} pod{'' if number == 1 else 's'}"
