"""Stand-ins: replica sets that make the pods of custom workloads, whose controllers are not simulated.

A custom workload gets a ReplicaSet of its name, or one for each of its templates. Its pods in the input stay, and the
replica sets create missing ones; if it has other objects in the input, such as replica sets or jobs, these create its
pods. The pods of a gang are in a PodGroup, if the feature gates that this needs are on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ..api.custom_workloads import CustomGang, CustomPods, CustomWorkload, is_custom_group
from ..api.meta import KubeObject, ObjectMeta, OwnerReference
from ..api.pod import Pod
from ..api.pod_groups import GangPolicy, PodGroup, PodGroupPolicy, PodGroupSpec
from ..api.pod_spec import PodSchedulingGroup
from ..api.wire.kinds import group_of
from ..api.workloads import PodTemplateSpec, ReplicaSet, ReplicasSpec
from ..cluster.memory.created_names import make_free_name
from ..cluster.objects.object_index import ClusterObject
from ..errors import counted

OwnerName = tuple[str, str, str]
"""Kind with group, namespace and name."""

GROUP_GATES = ("GenericWorkload", "GangScheduling")
"""The feature gates without which there are no gangs."""


class StandIn(NamedTuple):
    """The pods in place of a custom workload, and the remark on it."""

    objects: Sequence[ReplicaSet | PodGroup]
    remark: str


class StandIns:
    """Makes stand-ins; `objects` are the other objects of the input, including those of custom workloads."""

    def __init__(self, objects: Iterable[ClusterObject], gates: Mapping[str, bool]) -> None:
        self._has_gangs = all(gates.get(gate, False) for gate in GROUP_GATES)
        self._pods: Counter[OwnerName] = Counter()
        self._others: dict[OwnerName, str] = {}
        """By owner: the kind of an object that is no pod."""
        self._generated: set[OwnerName] = set()
        for obj in objects:
            if not isinstance(obj, Pod | KubeObject):
                continue
            for owner in obj.owner_references:
                group = group_of(owner.api_version)
                if owner.controller and is_custom_group(group):
                    key = f"{owner.kind}.{group}", obj.namespace, owner.name
                    if isinstance(obj, Pod):
                        self._pods[key] += not obj.is_finished
                    else:
                        self._others.setdefault(key, obj.kind)

    def make(self, workload: CustomWorkload) -> StandIn:
        """The stand-in of a workload; empty if it is not simulated, or other objects make its pods."""
        if not workload.name:
            workload = self._with_name(workload)
        if workload.missing:
            return StandIn((), f"not simulated: {workload}, {workload.missing}")
        key = workload.kind, workload.namespace, workload.name
        other = self._others.get(key)
        if other is not None:
            kinds = "replica sets" if other == "ReplicaSet" else f"objects of kind {other}"
            return StandIn((), f"{workload}: its pods are those of its {kinds} in the input")
        there, wanted = self._pods[key], workload.replicas
        which = f", of which {there} in the input; the others are" if there else ","
        in_groups = workload.gang is not None and self._has_gangs and not there
        made = _grouped(workload) if in_groups else _replica_sets(workload, there)
        several = len(workload.pods) > 1
        by = f"{len(workload.pods)} ReplicaSets" if several else "a ReplicaSet"
        notes = [f"{workload}: {counted(wanted, 'pod')}{which} made by {by} in its place"]
        if workload.note:
            notes.append(workload.note)
        if workload.gang is not None and not there:
            notes.append(_gang_note(workload.gang, self._has_gangs))
        return StandIn(list(made), "; ".join(notes))

    def _with_name(self, workload: CustomWorkload) -> CustomWorkload:
        """The workload with a name that begins with its generateName."""
        prefix, place = workload.metadata.generate_name, (workload.kind, workload.namespace)
        name = make_free_name(*place, prefix, lambda name: (*place, name) in self._generated)
        self._generated.add((*place, name))
        return replace(workload, metadata=replace(workload.metadata, name=name))


def _gang_note(gang: CustomGang, has_gangs: bool) -> str:
    gates = ",".join(f"{gate}=true" for gate in GROUP_GATES)
    groups = "a gang" if gang.gangs == 1 else f"{gang.gangs} gangs"
    if has_gangs:
        return f"{groups} of which {counted(gang.min_count, 'pod')} must be placed together"
    return f"{groups} that is placed pod by pod without --feature-gates={gates}".replace(
        "gangs that is", "gangs that are"
    )


def _replica_sets(workload: CustomWorkload, there: int) -> Iterator[ReplicaSet]:
    """A ReplicaSet for each template; existing pods count for the first templates."""
    if not workload.pods:
        replicas = max(workload.spec.replicas - there, 0)
        yield _replica_set(workload, workload.name, replicas, workload.spec.template)
        return
    for name, pods in _named(workload):
        missing = max(pods.replicas - there, 0)
        there -= pods.replicas - missing
        yield _replica_set(workload, name, missing, pods.template)


def _grouped(workload: CustomWorkload) -> Iterator[ReplicaSet | PodGroup]:
    """A PodGroup for each gang, and replica sets whose pods are its members."""
    gang = workload.gang
    assert gang is not None, "only gangs are grouped"
    for i in range(gang.gangs):
        suffix = f"-{i}" if gang.gangs > 1 else ""
        group = f"{workload.name}{suffix}"
        policy = PodGroupPolicy(gang=GangPolicy(min_count=gang.min_count))
        metadata = ObjectMeta(name=group, namespace=workload.namespace)
        yield PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy))
        for name, pods in _named(workload):
            spec = replace(
                pods.template.full_spec, scheduling_group=PodSchedulingGroup(pod_group_name=group)
            )
            template = PodTemplateSpec(metadata=pods.template.metadata, full_spec=spec)
            share = pods.replicas // gang.gangs
            yield _replica_set(workload, f"{name}{suffix}", share, template)


def _named(workload: CustomWorkload) -> Iterator[tuple[str, CustomPods]]:
    """The pods of each template, with the name of their ReplicaSet."""
    used: Counter[str] = Counter()
    for pods in workload.pods:
        name = f"{workload.name}-{pods.role}" if len(workload.pods) > 1 else workload.name
        used[name] += 1
        yield (f"{name}-{used[name]}" if used[name] > 1 else name), pods


def _replica_set(
    workload: CustomWorkload, name: str, replicas: int, template: PodTemplateSpec
) -> ReplicaSet:
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
            name=name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            owner_references=(owner,),
        ),
        spec=ReplicasSpec(replicas=replicas, template=template),
    )
