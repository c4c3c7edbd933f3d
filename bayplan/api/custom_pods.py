"""Custom pods: the templates of pods that custom kinds describe by fields of their own.

Spark computes requests from cores and memory; a workflow of Argo begins with some of its steps; operators of Prometheus
build pods of the fields that their kinds share with a pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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
