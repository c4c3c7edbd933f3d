"""Custom workloads: objects of custom resources that own pods, such as an Argo Rollout or a CloneSet of OpenKruise.

Kinds in the table of `workload_kinds` have their templates and counts at known paths. Of others only the shape is
known: `spec.replicas` and `spec.template` stand for that many pods of the template. Others that have replicas, or the
template of a pod somewhere, own pods in a way that is not known, unless the name of the kind shows that they make none
by themselves: an AnalysisTemplate, a ClusterPolicy, a RayCronJob.

Three describe pods by fields of their own: Spark computes requests from cores and memory; a workflow of Argo begins
with some of its steps; operators of Prometheus build pods of the fields that their kinds share with a pod.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import msgspec

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
Tree = Mapping[str, Any]

_POD_FIELDS = (
    *("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName"),
    *("schedulerName", "hostNetwork", "volumes", "serviceAccountName", "runtimeClassName"),
)
_MEMORY = re.compile(r"(?P<number>\d+)(?P<unit>[bkmgtp]?)b?|(?P<binary>\d+)(?P<iec>[KMGTP])i")
_MIB = {"b": 2**-20, "k": 2**-10, "m": 1, "": 1, "g": 2**10, "t": 2**20, "p": 2**30}
_LEAST_OVERHEAD_MIB = 384
_OVERHEAD, _OVERHEAD_OF_SCRIPTS = 0.1, 0.4


class PodShape(NamedTuple):
    """Role of pods, their number, and their template."""

    role: str
    replicas: int
    template: Tree


def pod_of_fields(tree: Tree, name: str) -> dict[str, Any]:
    """The template of a pod that an operator makes of an object with fields of a pod."""
    spec = {field: tree[field] for field in _POD_FIELDS if tree.get(field) is not None}
    own = {
        "name": name,
        "image": tree.get("image") or name,
        "resources": tree.get("resources") or {},
    }
    others = [one for one in tree.get("containers") or () if isinstance(one, Mapping)]
    for other in others:
        if other.get("name") == name:
            own |= other
    spec["containers"] = [own, *(one for one in others if one.get("name") != name)]
    if tree.get("initContainers"):
        spec["initContainers"] = tree["initContainers"]
    return {"metadata": tree.get("podMetadata") or {}, "spec": spec}


# Spark


def spark_shapes(spec: Tree) -> Iterator[PodShape]:
    """The driver and the executors of a SparkApplication; ValueError if a field is not readable."""
    executor = spec.get("executor") or {}
    dynamic = spec.get("dynamicAllocation") or {}
    count = executor.get("instances")
    if dynamic.get("enabled"):
        first = (dynamic.get("initialExecutors"), dynamic.get("minExecutors"), count)
        count = next((number for number in first if number is not None), 0)
    yield PodShape("driver", 1, _spark_pod(spec, "driver"))
    yield PodShape("exec", 1 if count is None else int(count), _spark_pod(spec, "executor"))


def _spark_pod(spec: Tree, role: str) -> dict[str, Any]:
    part = spec.get(role) or {}
    template = part.get("template") or {}
    base = dict(template.get("spec") or {})
    given = [one for one in base.get("containers") or () if isinstance(one, Mapping)]
    memory = f"{_spark_memory_mib(spec, part, role)}Mi"
    cores = str(part.get("coreRequest") or part.get("cores") or 1)
    requests, limits = {"cpu": cores, "memory": memory}, {"memory": memory}
    if part.get("coreLimit"):
        limits["cpu"] = str(part["coreLimit"])
    gpu = part.get("gpu") or {}
    if gpu.get("name"):
        requests[gpu["name"]] = limits[gpu["name"]] = str(gpu.get("quantity") or 0)
    first = dict(given[0]) if given else {"name": f"spark-{role}"}
    first |= {"image": part.get("image") or spec.get("image") or "spark"}
    first["resources"] = {"requests": requests, "limits": limits}
    base["containers"] = [first, *given[1:], *(part.get("sidecars") or ())]
    for field in _POD_FIELDS:
        value = part.get(field) if part.get(field) is not None else spec.get(field)
        if value is not None:
            base[field] = value
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **(part.get("labels") or {})}
    return {"metadata": {"labels": {**labels, "spark-role": role}}, "spec": base}


def _spark_memory_mib(spec: Tree, part: Tree, role: str) -> int:
    memory = _mib(str(part.get("memory") or "1g"), f"spec.{role}.memory")
    given = part.get("memoryOverhead")
    if given:
        return memory + _mib(str(given), f"spec.{role}.memoryOverhead")
    is_script = spec.get("type") in ("Python", "R")
    factor = spec.get("memoryOverheadFactor") or (_OVERHEAD_OF_SCRIPTS if is_script else _OVERHEAD)
    return memory + max(int(float(factor) * memory), _LEAST_OVERHEAD_MIB)


def _mib(text: str, path: str) -> int:
    """Memory in the notation of Java, where m is MiB."""
    match = _MEMORY.fullmatch(text.strip()) or _MEMORY.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"{path}: expected memory such as 512m or 4g; got {text[:40]}")
    number, unit = match["number"] or match["binary"], match["unit"] or (match["iec"] or "").lower()
    return int(int(number) * _MIB[unit])


# Argo Workflows


_CONTAINERS = ("container", "script", "containerSet")
_OF_EXECUTOR = ("resource", "data")
"""Templates whose pod runs Argo's own image."""
_WITHOUT_PODS = ("suspend", "http", "plugin")


def workflow_shapes(spec: Tree) -> Iterator[PodShape]:
    """The pods that a Workflow begins with; ValueError if they depend on results or other objects."""
    if spec.get("workflowTemplateRef"):
        raise ValueError("the pods depend on workflowTemplateRef")
    templates = {
        one.get("name"): one for one in spec.get("templates") or () if isinstance(one, Mapping)
    }
    for name, count in _first_pods(spec.get("entrypoint"), templates, 1, 0):
        yield PodShape(str(name), count, _workflow_pod(spec, templates[name]))


def _workflow_pod(spec: Tree, template: Tree) -> dict[str, Any]:
    for field, part in (
        ("podSpecPatch", template),
        ("podSpecPatch", spec),
        ("templateDefaults", spec),
    ):
        if part.get(field):
            raise ValueError(f"template {template.get('name')}: the pods depend on {field}")
    body = template.get("container") or template.get("script") or {"image": "argoexec"}
    containers = (template.get("containerSet") or {}).get("containers") or [
        {**body, "name": body.get("name") or "main"}
    ]
    pod = {
        field: value
        for field in _POD_FIELDS
        if (value := template.get(field) or spec.get(field)) is not None
    }
    pod["containers"] = [*containers, *(template.get("sidecars") or ())]
    if template.get("initContainers"):
        pod["initContainers"] = template["initContainers"]
    return {"metadata": template.get("metadata") or {}, "spec": pod}


def _first_pods(
    name: Any, templates: Mapping[Any, Tree], times: int, depth: int
) -> Iterator[tuple[Any, int]]:
    template = templates.get(name)
    if template is None or depth > 20:
        raise ValueError(f"expected a template {name!s:.40}; got none")
    if any(template.get(field) for field in (*_CONTAINERS, *_OF_EXECUTOR)):
        yield name, times
        return
    steps: list[Tree] = []
    for group in (template.get("steps") or ())[:1]:
        steps += [group] if isinstance(group, Mapping) else list(group)
    tasks = (template.get("dag") or {}).get("tasks") or ()
    steps += [task for task in tasks if not task.get("dependencies") and not task.get("depends")]
    if not steps and all(template.get(field) is None for field in _WITHOUT_PODS):
        raise ValueError(f"template {name}: expected container, script, steps or dag; got none")
    for step in steps:
        if step.get("withParam") or step.get("templateRef"):
            field = "withParam" if step.get("withParam") else "templateRef"
            raise ValueError(f"template {name}: the pods depend on {field}")
        items = step.get("withItems")
        sequence = step.get("withSequence") or {}
        count = len(items) if isinstance(items, list) else 1
        if sequence:
            text = str(sequence.get("count") or "")
            if not text.isdecimal():
                raise ValueError(f"template {name}: the pods depend on withSequence")
            count = int(text)
        yield from _first_pods(step.get("template"), templates, times * count, depth + 1)


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
    name = _role_at(paths[0])
    for path in paths:
        found = list(find_values(tree, path))
        for keys, template in found:
            role = "-".join(keys).lower() or name
            yield PodShape(role, count_at(tree, factors, keys, pods.default), template)
        if found:
            return


def _role_at(path: str) -> str:
    """The role of the pods whose template is at a path: `head` for `spec.headGroupSpec.template`."""
    *above, last = path.split(".")
    named = last.removesuffix("Template")
    if named == "template" and above:
        named = above[-1].removesuffix("Spec").removesuffix("Group") or named
    return named.lower()


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
