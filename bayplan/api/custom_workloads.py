"""Custom workloads: objects of custom resources that own pods, such as an Argo Rollout or a CloneSet of OpenKruise.

Kinds in the table of `workload_kinds` have their templates and counts at known paths. Of others only the shape is
known: `spec.replicas` and `spec.template` stand for that many pods of the template. Others that have replicas, or the
template of a pod somewhere, own pods in a way that is not known, unless the name of the kind shows that they make none
by themselves: an AnalysisTemplate, a ClusterPolicy, a RayCronJob.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from .custom_pods import PodShape, pod_of_fields, spark_shapes, workflow_shapes
from .meta import KubeObject, ObjectMeta, Wire
from .rules.object_faults import spec_problems
from .selectors import LabelSelector
from .wire.kinds import group_of
from .wire.nulls import without_nulls
from .wire.served_versions import BUILT_IN_GROUPS
from .workload_kinds import (
    PodSet,
    WorkloadKind,
    count_at,
    count_paths,
    find_values,
    find_workload_kind,
)
from .workloads import PodTemplateSpec

MAX_DEPTH = 8
_EXCLUSIVE = re.compile(r"/(?:subgroup-)?exclusive-topology$")
"""Annotations of LeaderWorkerSet and JobSet for which their controllers add affinity to pods."""
_FOR_LATER = re.compile(r"(?:Template|Policy|Runtime|Class|CronJob)$|^(?:Cron|Scheduled)")
"""Names of kinds whose template is used by other objects, or on a schedule, and not to make pods at once."""


class CustomWorkloadSpec(Wire, frozen=True):
    """Replicas, selector and template."""

    replicas: int = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class CustomPods(Wire, frozen=True):
    """Pods of one template; `role` distinguishes them from other pods of the workload."""

    role: str
    replicas: int
    template: PodTemplateSpec


class CustomGang(Wire, frozen=True):
    """Gangs of a workload: how many there are, and how many pods of one must be placed together."""

    gangs: int
    min_count: int


class CustomWorkload(KubeObject, frozen=True):
    """An object of a custom resource that owns pods. With `missing` its pods cannot be made."""

    manifest_kind: ClassVar[str] = ""
    """The kind in manifests; `kind` has the group, too: `Rollout.argoproj.io`."""

    spec: CustomWorkloadSpec = CustomWorkloadSpec()
    missing: str = ""
    is_certain: bool = False
    """Whether it is known that it makes pods."""
    pods: tuple[CustomPods, ...] = ()
    """All pods, if they have several templates."""
    gang: CustomGang | None = None
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name or self.metadata.generate_name}"

    @property
    def replicas(self) -> int:
        """The number of all its pods."""
        return sum(each.replicas for each in self.pods) if self.pods else self.spec.replicas


def is_custom_group(group: str) -> bool:
    """Whether an API group is not one of Kubernetes itself."""
    return "." in group and group not in BUILT_IN_GROUPS


def read_custom_workload(tree: Mapping[str, Any]) -> CustomWorkload | None:
    """The object, if its kind is a custom one and it owns pods; None otherwise."""
    api_version, kind, spec = tree.get("apiVersion"), tree.get("kind"), tree.get("spec")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    if not is_custom_group(group_of(api_version)) or not isinstance(spec, Mapping):
        return None
    try:
        metadata = msgspec.convert({"metadata": tree.get("metadata") or {}}, KubeObject).metadata
    except msgspec.ValidationError:
        return None
    if not metadata.name and not metadata.generate_name:
        return None
    made = _made(api_version, kind)
    if (
        tree.get("isCertain") is True
    ):  # from a snapshot, with its pods and without the fields of these
        with suppress(msgspec.ValidationError):
            return msgspec.convert(tree, made)
        return None
    known = find_workload_kind(group_of(api_version), kind)
    if known is not None:
        return _of_known(made, metadata, known, tree)
    return _by_shape(made, metadata, spec)


def _of_known(
    made: type[CustomWorkload], metadata: ObjectMeta, known: WorkloadKind, tree: Mapping[str, Any]
) -> CustomWorkload:
    """The workload of a kind in the table."""
    if known.refused:
        return made(metadata=metadata, missing=known.refused, is_certain=True)
    if known.reference and any(value for _, value in find_values(tree, known.reference)):
        return made(metadata=metadata, missing=f"pods of the object that {known.reference} names")
    try:
        found = _pods_of(known, tree)
        if any(value is True for _, value in find_values(tree, known.suspended)):
            found = [msgspec.structs.replace(each, replicas=0) for each in found]
        gang = _gang_of(known, tree, sum(each.replicas for each in found))
    except (msgspec.ValidationError, ValueError, TypeError, AttributeError) as error:
        fault = _null_fault(tree["spec"]) or error
        return made(metadata=metadata, missing=f"its pods: {fault}", is_certain=True)
    spec = CustomWorkloadSpec()
    if found:
        spec = CustomWorkloadSpec(replicas=found[0].replicas, template=found[0].template)
    several = tuple(found) if len(found) > 1 or gang is not None else ()
    exclusive = [
        f"{key} is not simulated" for key in metadata.annotations or () if _EXCLUSIVE.search(key)
    ]
    note = "; ".join(filter(None, (known.note, *exclusive)))
    return made(metadata=metadata, spec=spec, pods=several, gang=gang, note=note, is_certain=True)


def _pods_of(known: WorkloadKind, tree: Mapping[str, Any]) -> list[CustomPods]:
    if known.kind == "SparkApplication" and not known.pods:
        shapes = list(spark_shapes(tree["spec"]))
    elif known.kind == "Workflow" and not known.pods:
        shapes = list(workflow_shapes(tree["spec"]))
    else:
        shapes = [shape for pods in known.pods for shape in _shapes(pods, tree, known.kind)]
        if not shapes:
            raise ValueError("expected a template; got none")
    return [CustomPods(each.role, each.replicas, _template(each)) for each in shapes]


def _shapes(pods: PodSet, tree: Mapping[str, Any], kind: str) -> Iterator[PodShape]:
    factors = count_paths(pods.count)
    if pods.fields:
        for keys, value in find_values(tree, pods.fields):
            template = pod_of_fields(value, kind.lower())
            count = count_at(tree, factors, keys, pods.default)
            yield PodShape("-".join(keys), count, template)
        return
    paths = [pods.template] if isinstance(pods.template, str) else pods.template
    for path in paths:
        found = list(find_values(tree, path))
        for keys, template in found:
            role = (
                "-".join(keys).lower() or path.rpartition(".")[2].removesuffix("Template").lower()
            )
            yield PodShape(role, count_at(tree, factors, keys, pods.default), template)
        if found:
            return


def _template(shape: PodShape) -> PodTemplateSpec:
    if not _is_template(shape.template):
        raise ValueError(f"{shape.role}: expected a template of a pod with containers; got none")
    return _read_template(shape.template, f"{shape.role}: ")


def _read_template(tree: Any, about: str = "") -> PodTemplateSpec:
    """The template of a pod; ValueError or ValidationError if it cannot be read."""
    template = msgspec.convert(without_nulls(tree), PodTemplateSpec)
    for path, fault in spec_problems(template.full_spec, "spec"):
        raise ValueError(f"{about}{path}: {fault}")
    return template


def _gang_of(known: WorkloadKind, tree: Mapping[str, Any], pods: int) -> CustomGang | None:
    if not known.gang or not pods:
        return None
    gangs = count_at(tree, [known.gangs], (), 1) if known.gangs else 1
    least = pods // max(gangs, 1)
    if known.min_count:
        least = min(count_at(tree, [known.min_count], (), least), least)
    return CustomGang(gangs=max(gangs, 1), min_count=max(least, 1))


def _by_shape(
    made: type[CustomWorkload], metadata: ObjectMeta, spec: Mapping[str, Any]
) -> CustomWorkload | None:
    """The workload of another kind, by its replicas and its template."""
    replicas, template = spec.get("replicas"), spec.get("template")
    has_replicas = isinstance(replicas, int) and not isinstance(replicas, bool)
    count = f"{replicas} replica{'' if replicas == 1 else 's'}"
    if has_replicas and _is_template(template):
        try:
            return made(metadata=metadata, spec=_spec(spec), is_certain=True)
        except (msgspec.ValidationError, ValueError) as error:
            fault = f"{count} ({_null_fault(spec) or f'spec.template: {error}'})"
            return made(metadata=metadata, missing=fault, is_certain=True)
    if has_replicas and template is None:
        return made(metadata=metadata, missing=f"{count} (no spec.template)")
    path = next(_paths(spec, "spec", _is_template), "")
    if not path:
        return None
    if _FOR_LATER.search(made.manifest_kind):
        return made(metadata=metadata, missing=f"pods that are made of {path} later")
    return made(metadata=metadata, missing=f"pods of {path}", is_certain=True)


@lru_cache(maxsize=256)
def _made(manifest_api_version: str, manifest: str) -> type[CustomWorkload]:
    """The type of the objects of one kind."""

    class Made(CustomWorkload, frozen=True):
        kind = f"{manifest}.{group_of(manifest_api_version)}"
        api_version = manifest_api_version
        manifest_kind = manifest

    Made.__name__ = Made.__qualname__ = manifest
    return Made


def _spec(spec: Mapping[str, Any]) -> CustomWorkloadSpec:
    """The parts that pods are made of; ValueError or ValidationError if they cannot be read."""
    template = _read_template(spec["template"])
    try:
        selector = msgspec.convert(without_nulls(spec.get("selector")), LabelSelector | None)
    except msgspec.ValidationError:
        selector = None  # another kind of selector: the pods are found by their owner
    return CustomWorkloadSpec(
        replicas=max(spec["replicas"], 0), selector=selector, template=template
    )


def _is_template(value: Any) -> bool:
    """Whether it is the template of a pod."""
    spec = value.get("spec") if isinstance(value, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    return isinstance(containers, list) and any(isinstance(each, Mapping) for each in containers)


def _null_fault(spec: Mapping[str, Any]) -> str:
    """The first null in a list, if there is one: the reason why pods cannot be made of it."""
    nulls = _paths(spec, "spec", lambda value: value is None, 2 * MAX_DEPTH)
    found = next((path for path in nulls if path.endswith("]")), "")
    return f"{found}: expected a value; got null" if found else ""


def _paths(
    value: Any, path: str, is_wanted: Callable[[Any], bool], depth: int = MAX_DEPTH
) -> Iterator[str]:
    """The paths of the outermost values that are wanted."""
    if is_wanted(value):
        yield path
    elif depth and isinstance(value, Mapping):
        for name, part in value.items():
            yield from _paths(part, f"{path}.{name}", is_wanted, depth - 1)
    elif depth and isinstance(value, list):
        for i, part in enumerate(value):
            yield from _paths(part, f"{path}[{i}]", is_wanted, depth - 1)
