"""Pod kinds: read the pods of a question from files with pods or workloads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from msgspec import structs

from ..api.affinity import Affinity, NodeAffinity
from ..api.cron_jobs import CronJob
from ..api.custom_workloads import CustomWorkload
from ..api.meta import KubeObject
from ..api.pod import Pod
from ..api.pod_groups import PodGroup, pod_group_of
from ..api.pod_spec import PodSpec
from ..api.selectors import NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement
from ..api.workloads import Job, PodTemplateSpec, pod_template
from ..cluster.memory.absent_owners import successor_of
from ..errors import InputError
from ..manifests.sources import find_files
from ..manifests.timeline import InputObject
from ..sim import read_manifests

_RATIO = re.compile(r"(?P<path>.+):(?P<ratio>[0-9]+)")


@dataclass(frozen=True, slots=True)
class PodKind:
    """A representative pod and its ratio in the mix; or a pod group, whose members are placed together."""

    name: str
    pod: Pod
    ratio: int = 1
    group: PodGroup | None = None
    others: tuple[Pod, ...] = ()
    """The members of the group besides `pod`."""
    remarks: tuple[str, ...] = ()
    """Fields of the file that do not exist."""

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that are placed together."""
        return (self.pod, *self.others)


def read_pod_kinds(texts: Sequence[str]) -> list[PodKind]:
    """The kinds given as `spec.yaml` or `other.yaml:3`: files, folders or standard input (`-`).

    A file with a PodGroup is one kind, any other one for each pod or workload. Raises InputError when there is none.
    """
    kinds: list[PodKind] = []
    for text in texts:
        match = _RATIO.fullmatch(text)
        path, ratio = (match["path"], int(match["ratio"])) if match else (text, 1)
        if ratio < 1:
            raise InputError(f"{path}: expected a ratio of at least 1; got {ratio}")
        found = [kind for file in find_files([path]) for kind in _kinds_of(file, ratio)]
        if not found:
            raise InputError(f"{path}: expected a pod or a workload; got none")
        kinds += found
    return kinds


def _kinds_of(file: str, ratio: int) -> Iterator[PodKind]:
    manifests = read_manifests([file])
    objects, remarks = manifests.objects, tuple(manifests.remarks)
    groups = [obj for obj in objects if isinstance(obj, PodGroup)]
    if groups:
        yield replace(_gang(file, ratio, groups, objects), remarks=remarks)
        return
    found = [(obj, pod, times) for obj in objects for pod, times in _pods_of(obj)]
    for obj, pod, times in found:
        name = file if len(found) == 1 else f"{obj.kind.lower()}/{pod.key}"
        yield PodKind(name, pod, ratio * times, remarks=remarks)
        remarks = ()


def _pods_of(obj: InputObject) -> Iterator[tuple[Pod, int]]:
    """A pod for each template of an object, and its part in the mix: as many as a custom workload has of it."""
    if not isinstance(obj, CustomWorkload):
        pod = pod_of(obj)
        if pod is not None:
            yield pod, 1
    elif len(obj.pods) > 1:
        for each in obj.pods:
            pod = _templated(f"{_name_of(obj)}-{each.role}", obj, each.template)
            if each.replicas:
                yield pod, each.replicas
    elif not obj.missing:
        yield _templated(_name_of(obj), obj, obj.spec.template), 1


def _gang(
    path: str, ratio: int, groups: Sequence[PodGroup], objects: Sequence[InputObject]
) -> PodKind:
    """The kind of a file with a pod group and its members: pods, or a workload whose template names the group."""
    if len(groups) > 1:
        raise InputError(f"{path}: expected one PodGroup; got {len(groups)}")
    group, members = groups[0], list[Pod]()
    for obj in objects:
        pod = pod_of(obj)
        if pod is None:
            continue
        if pod_group_of(pod) != group.name:
            got = pod_group_of(pod) or "none"
            field = f"{obj.kind} {pod.name}: schedulingGroup.podGroupName"
            raise InputError(f"{path}: {field}: expected {group.name}; got {got}")
        count = 1 if isinstance(obj, Pod) else _pod_count(obj)
        members += (pod.replace(name=f"{pod.name}-{i}") if count > 1 else pod for i in range(count))
    if len(members) < max(group.min_count, 1):
        raise InputError(
            f"{path}: expected at least {max(group.min_count, 1)} members of PodGroup {group.name}; "
            f"got {len(members)}"
        )
    return PodKind(path, members[0], ratio, group, tuple(members[1:]))


def _pod_count(workload: InputObject) -> int:
    """The number of pods that a workload has at the same time."""
    if isinstance(workload, Job):
        return workload.parallelism
    replicas = getattr(getattr(workload, "spec", None), "replicas", None)
    return 1 if replicas is None else int(replicas)


def pod_of(obj: InputObject) -> Pod | None:
    """The pod, or a pod of the workload, without a node and status; None for other kinds."""
    if isinstance(obj, Pod):
        return successor_of(obj).replace(name=_name_of(obj))
    template = pod_template(obj.spec.job_template if isinstance(obj, CronJob) else obj)
    if template is None:
        return None
    assert isinstance(obj, KubeObject), "only they have templates"
    return _templated(_name_of(obj), obj, template)


def _templated(name: str, owner: KubeObject, template: PodTemplateSpec) -> Pod:
    return Pod(name, owner.namespace, labels=dict(template.labels), spec=template.spec)


def _name_of(obj: Pod | KubeObject) -> str:
    prefix = obj.generate_name if isinstance(obj, Pod) else obj.metadata.generate_name
    return obj.name or prefix.rstrip("-") or "pod"


def on_nodes(kind: PodKind, wanted: Sequence[str]) -> PodKind:
    """The kind, restricted to some nodes by a node affinity.

    `key=value` is a required label (all of them must match); a bare word is a node name (one of
    them must match).
    """
    labels = dict(text.split("=", 1) for text in wanted if "=" in text)
    names = [text for text in wanted if "=" not in text]

    def restricted(pod: Pod) -> Pod:
        spec = pod.spec
        if labels:
            spec = structs.replace(spec, node_selector={**(spec.node_selector or {}), **labels})
        if names:
            spec = _kept_to(spec, names)
        return pod.with_spec(spec)

    return replace(
        kind, pod=restricted(kind.pod), others=tuple(restricted(pod) for pod in kind.others)
    )


def _kept_to(spec: PodSpec, names: Iterable[str]) -> PodSpec:
    """The spec with a required node affinity for the nodes, in addition to its own."""
    affinity = spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinity()
    required = node_affinity.required
    terms = required.usable_terms if required is not None else (NodeSelectorTerm(),)
    fields = [Requirement(key=NAME_FIELD, operator="In", values=(name,)) for name in names]
    kept = tuple(
        structs.replace(term, match_fields=(*(term.match_fields or ()), field))
        for term, field in product(terms, fields)
    )
    selector = NodeSelector(node_selector_terms=kept)
    node_affinity = structs.replace(
        node_affinity, required_during_scheduling_ignored_during_execution=selector
    )
    return structs.replace(spec, affinity=structs.replace(affinity, node_affinity=node_affinity))
