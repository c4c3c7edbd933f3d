"""Workload kinds: custom kinds that create pods, and the paths of templates and counts in their objects.

A path names fields, separated by dots; `[]` stands for each item of a list, `{}` for each entry of a map, and a name in
quotes within brackets may have dots. Paths of a count follow the same items as the path of the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import msgspec

_STEP = re.compile(r"\.?(?:(?P<name>[^.\[\]{}\"]+)|\[\"(?P<quoted>[^\"]+)\"\]|(?P<each>\[\]|\{\}))")
_COUNT = re.compile(r"(?P<path>.+?)(?:\s*-\s*(?P<less>\d+))?")
Factor = int | str | list[str]
Found = tuple[tuple[str, ...], Any]
"""The items along a path, and the value at its end."""


class PodSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pods of one template."""

    template: str | list[str] = ""
    """Path of the template; of several, the first that exists."""
    count: int | str | list[Factor] = 1
    """A number, or the path of one, less a number at its end (`spec.size - 1`); several are multiplied.

    A list of paths stands for the number at the first path, limited by the numbers at the others that exist.
    """
    default: int = 1
    """Value of an absent count."""
    fields: str = ""
    """In place of a template: path of an object with fields of a pod, and `resources` of its container."""


class WorkloadKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A custom kind that makes pods."""

    kind: str
    group: str
    pods: list[PodSet] = []
    gang: bool = False
    """Whether its pods are of use together only."""
    min_count: str = ""
    """Path of the number of pods that a gang needs; without a path it needs all."""
    gangs: str = ""
    """Path of the number of gangs, each with an equal share of the pods; one without."""
    suspended: str = ""
    """Path of a flag; if it is true, the workload has no pods."""
    note: str = ""
    """Remark on the pods: how they may differ from those in a cluster."""
    reference: str = ""
    """Path of a reference: with an object there, that object makes the pods."""
    refused: str = ""
    """Reason why its pods cannot be made."""


class WorkloadKinds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A document of kinds."""

    api_version: str
    kind: str
    kinds: list[WorkloadKind] = []


def _training(kind: str, field: str) -> WorkloadKind:
    path = f"spec.{field}{{}}"
    pods = PodSet(f"{path}.template", f"{path}.replicas")
    least, flag = "spec.runPolicy.schedulingPolicy.minAvailable", "spec.runPolicy.suspend"
    return WorkloadKind(kind, "kubeflow.org", [pods], True, least, suspended=flag)


def _ray(kind: str, cluster: str, **more: Any) -> WorkloadKind:
    path = f"{cluster}.workerGroupSpecs[]"
    counts: list[Factor] = [f"{path}.replicas", f"{path}.numOfHosts"]
    head = PodSet(f"{cluster}.headGroupSpec.template")
    return WorkloadKind(kind, "ray.io", [head, PodSet(f"{path}.template", counts)], **more)


def _knative(kind: str) -> WorkloadKind:
    least = 'spec.template.metadata.annotations["autoscaling.knative.dev/min-scale"]'
    note = "as many as its lowest scale, or 1; its sidecar queue-proxy is left out"
    return WorkloadKind(kind, "serving.knative.dev", [PodSet("spec.template", least)], note=note)


def _monitoring(kind: str, *counts: int | str) -> WorkloadKind:
    note = "made of its fields; sidecars and volumes that its operator adds are left out"
    pods = PodSet(fields="spec", count=list(counts))
    return WorkloadKind(kind, "monitoring.coreos.com", [pods], note=note)


_LWS = "spec.leaderWorkerTemplate"
BUILT_IN = (
    _ray("RayCluster", "spec", suspended="spec.suspend"),
    _ray(
        "RayJob",
        "spec.rayClusterSpec",
        suspended="spec.suspend",
        note="the pod that submits the job is left out",
    ),
    _ray("RayService", "spec.rayClusterConfig"),
    WorkloadKind(
        "JobSet",
        "jobset.x-k8s.io",
        [
            PodSet(
                "spec.replicatedJobs[].template.spec.template",
                [
                    "spec.replicatedJobs[].replicas",
                    [
                        "spec.replicatedJobs[].template.spec.parallelism",
                        "spec.replicatedJobs[].template.spec.completions",
                    ],
                ],
            )
        ],
        suspended="spec.suspend",
    ),
    WorkloadKind(
        "Job",
        "batch.volcano.sh",
        [PodSet("spec.tasks[].template", "spec.tasks[].replicas")],
        gang=True,
        min_count="spec.minAvailable",
    ),
    _training("PyTorchJob", "pytorchReplicaSpecs"),
    _training("MPIJob", "mpiReplicaSpecs"),
    _training("TFJob", "tfReplicaSpecs"),
    _training("XGBoostJob", "xgbReplicaSpecs"),
    _training("PaddleJob", "paddleReplicaSpecs"),
    _training("JAXJob", "jaxReplicaSpecs"),
    _training("MXJob", "mxReplicaSpecs"),
    WorkloadKind(
        "TrainJob",
        "trainer.kubeflow.org",
        refused="its pods are those of the runtime that spec.runtimeRef names",
    ),
    WorkloadKind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        [
            PodSet([f"{_LWS}.leaderTemplate", f"{_LWS}.workerTemplate"], "spec.replicas"),
            PodSet(f"{_LWS}.workerTemplate", ["spec.replicas", f"{_LWS}.size - 1"]),
        ],
        gang=True,
        gangs="spec.replicas",
    ),
    _knative("Service"),
    _knative("Configuration"),
    _monitoring("Prometheus", "spec.replicas", "spec.shards"),
    _monitoring("PrometheusAgent", "spec.replicas", "spec.shards"),
    _monitoring("Alertmanager", "spec.replicas"),
    _monitoring("ThanosRuler", "spec.replicas"),
    WorkloadKind(
        "SparkApplication",
        "sparkoperator.k8s.io",
        note="requests as Spark computes them from cores, memory and memoryOverhead",
    ),
    WorkloadKind(
        "ScheduledSparkApplication",
        "sparkoperator.k8s.io",
        refused="it runs by its schedule; a SparkApplication of its template can be simulated",
    ),
    WorkloadKind(
        "Rollout",
        "argoproj.io",
        [PodSet("spec.template", "spec.replicas")],
        reference="spec.workloadRef",
    ),
    WorkloadKind(
        "Experiment",
        "argoproj.io",
        [PodSet("spec.templates[].template", "spec.templates[].replicas")],
    ),
    WorkloadKind("Notebook", "kubeflow.org", [PodSet("spec.template")]),
    WorkloadKind("Sandbox", "agents.x-k8s.io", [PodSet("spec.podTemplate", "spec.replicas")]),
    WorkloadKind("StrimziPodSet", "core.strimzi.io", [PodSet("spec.pods[]")]),
    WorkloadKind(
        "Workflow", "argoproj.io", note="those that it begins with; later steps are not simulated"
    ),
)
_GIVEN: ContextVar[Mapping[tuple[str, str], WorkloadKind]] = ContextVar(
    "kinds", default=MappingProxyType({})
)
_KNOWN = {(kind.group, kind.kind): kind for kind in BUILT_IN}


@contextmanager
def reading_workloads(kinds: Sequence[WorkloadKind]) -> Iterator[None]:
    """Inside the block, objects of these kinds are workloads, too; a built-in kind is replaced."""
    token = _GIVEN.set({**_GIVEN.get(), **{(kind.group, kind.kind): kind for kind in kinds}})
    try:
        yield
    finally:
        _GIVEN.reset(token)


def find_workload_kind(group: str, kind: str) -> WorkloadKind | None:
    """The kind of that name, if it is known to make pods."""
    return _GIVEN.get().get((group, kind)) or _KNOWN.get((group, kind))


def known_workload_kinds() -> list[tuple[str, str]]:
    """Group and kind of all that are known to make pods."""
    return list({**_KNOWN, **_GIVEN.get()})


def path_fault(path: str) -> str:
    """Reason why a text is no path; empty if it is one."""
    return "" if "".join(step[0] for step in _STEP.finditer(path)) == path and path else "a path"


def count_paths(count: int | str | list[Factor]) -> list[Factor]:
    """The factors of a count."""
    return count if isinstance(count, list) else [count]


def find_values(tree: Any, path: str) -> Iterator[Found]:
    """The values at a path, each with the keys of the items on the way."""
    yield from _walk(tree, list(_STEP.finditer(path)), ())


def _walk(value: Any, steps: Sequence[re.Match[str]], keys: tuple[str, ...]) -> Iterator[Found]:
    if not steps:
        if value is not None:
            yield keys, value
        return
    step, rest = steps[0], steps[1:]
    if step["each"] == "[]" and isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, rest, (*keys, str(i)))
    elif step["each"] == "{}" and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, rest, (*keys, str(key)))
    elif not step["each"] and isinstance(value, Mapping):
        yield from _walk(value.get(step["name"] or step["quoted"]), rest, keys)


def count_at(tree: Any, factors: Sequence[Factor], keys: tuple[str, ...], default: int) -> int:
    """The product of the counts for the template behind `keys`; ValueError if one is no number."""
    product = 1
    for factor in factors:
        if isinstance(factor, int):
            product *= factor
            continue
        first, *limits = [factor] if isinstance(factor, str) else factor
        number = _number(tree, first, keys, default)
        product *= min([number, *(_number(tree, limit, keys, number) for limit in limits)])
    return max(product, 0)


def _number(tree: Any, factor: str, keys: tuple[str, ...], default: int) -> int:
    match = _COUNT.fullmatch(factor)
    assert match is not None, "the pattern matches any text"
    path, less = match["path"], int(match["less"] or 0)
    for found, value in find_values(tree, path):
        if found == keys[: len(found)]:
            text = str(value)
            if isinstance(value, bool) or not re.fullmatch(r"-?\d+", text):
                raise ValueError(f"{path}: expected a number; got {text[:40]}")
            return int(text) - less
    return default - less
