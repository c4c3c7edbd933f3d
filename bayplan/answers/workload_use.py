"""Workload use: the measured use of workloads, also of those that are only manifests.

Pods of a plan are created again: their names are not those that were measured. A measured pod belongs to a workload by
the owner of the pod of that name, or by its name, which controllers form from that of the workload.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..api.node import Node
from ..api.pod import Pod
from ..api.workloads import BARE, PodTemplateSpec, WorkloadKey, pod_template, workload_of
from ..cluster.memory.pod_index import is_there
from ..manifests.measured_use import MeasuredUse, Units
from ..manifests.timeline import InputObject
from .measured import (
    Demand,
    UseAgainstRequests,
    requesting,
    resized_containers,
    shared_by_containers,
    summed,
    used_by_containers,
)

_TAIL = "-[a-z0-9]{5}"
_PATTERNS = {
    "Deployment": re.compile(rf"(.+)-[a-z0-9]{{1,10}}{_TAIL}"),
    "ReplicaSet": re.compile(rf"(.+){_TAIL}"),
    "ReplicationController": re.compile(rf"(.+){_TAIL}"),
    "StatefulSet": re.compile(r"(.+)-[0-9]+"),
    "DaemonSet": re.compile(rf"(.+){_TAIL}"),
    "Job": re.compile(rf"(.+?)(?:-[0-9]+)?{_TAIL}"),
}
"""By kind: names of its pods, with the name of the workload."""
PODS = "pods"


class WorkloadUse:
    """The highest use of any pod of each workload, by container."""

    def __init__(self, objects: Sequence[InputObject], use: MeasuredUse) -> None:
        self._use = use
        self._peaks: dict[WorkloadKey, dict[str, Units]] = {}
        owners = {
            (pod.namespace, pod.name): (pod.namespace, *workload_of(pod))
            for pod in objects
            if isinstance(pod, Pod)
        }
        known = {key for key in owners.values() if key[1] != BARE}
        known |= {workload_key_of(obj) for obj in objects if pod_template(obj) is not None}
        for pod in use.pods():
            key = owners.get(pod) or _key_by_name(pod, known)
            if key is not None:
                self._note(key, use.of_containers(*pod))

    def _note(self, key: WorkloadKey, found: Mapping[str, Units]) -> None:
        peaks = self._peaks.setdefault(key, {})
        for container, amounts in found.items():
            peak = peaks.setdefault(container, {})
            for resource, amount in amounts.items():
                peak[resource] = max(peak.get(resource, 0), amount)

    def of_template(self, obj: Any, template: PodTemplateSpec) -> dict[str, Units] | None:
        """The use of each container of the pods of a workload; None if none was measured."""
        found = self._peaks.get(workload_key_of(obj), {})
        return shared_by_containers(found, template.full_spec.containers)

    def of_pod(self, pod: Pod) -> dict[str, Units] | None:
        """The pod's own use, by container, or the highest of its workload; None if neither was measured."""
        own = used_by_containers(pod, self._use)
        if own is not None:
            return own
        found = self._peaks.get((pod.namespace, *workload_of(pod)), {})
        return shared_by_containers(found, pod.spec.containers)


def workload_key_of(obj: Any) -> WorkloadKey:
    """Key of a workload; a replica set of a deployment has that of the deployment."""
    owner = next((one for one in obj.owner_references or () if one.controller), None)
    if obj.kind == "ReplicaSet" and owner is not None and owner.kind == "Deployment":
        return obj.namespace, owner.kind, owner.name
    return obj.namespace, obj.kind, obj.name


def _key_by_name(pod: tuple[str, str], known: set[WorkloadKey]) -> WorkloadKey | None:
    """The workload whose pods have such names; of several, the workload with the longest name."""
    namespace, name = pod
    found = [
        key
        for kind, pattern in _PATTERNS.items()
        if (match := pattern.fullmatch(name)) and (key := (namespace, kind, match[1])) in known
    ]
    return max(found, key=lambda key: len(key[2]), default=None)


def as_planned(objects: Sequence[InputObject], use: MeasuredUse) -> list[InputObject]:
    """The input as if all its pods, and those that its workloads make, requested what they use."""
    known = WorkloadUse(objects, use)
    made: list[InputObject] = []
    for obj in objects:
        template = pod_template(obj)
        if isinstance(obj, Pod):
            wanted = known.of_pod(obj) if is_there(obj) else None
            made.append(obj if wanted is None else requesting(obj, wanted))
        elif template is not None:
            wanted = known.of_template(obj, template)
            made.append(obj if wanted is None else _resized(obj, template, wanted))
        else:
            made.append(obj)
    return made


def _resized(obj: Any, template: PodTemplateSpec, wanted: Mapping[str, Units]) -> Any:
    """The workload whose pods request these amounts."""
    spec = template.full_spec
    spec = replace(spec, containers=resized_containers(spec.containers, wanted))
    return replace(obj, spec=replace(obj.spec, template=replace(template, full_spec=spec)))


def planned_use(
    objects: Sequence[InputObject], use: MeasuredUse, nodes: Iterable[Node]
) -> UseAgainstRequests:
    """The requests of all planned pods against their use, on the planned nodes. Pods of daemons are left out."""
    known = WorkloadUse(objects, use)
    return UseAgainstRequests(*summed(nodes, _demands(objects, known)), noun=PODS)


def _demands(objects: Sequence[InputObject], known: WorkloadUse) -> Iterable[Demand]:
    """Number, requests and use of the pods of the input, and of those that its workloads lack."""
    there: Counter[WorkloadKey] = Counter()
    for obj in objects:
        if isinstance(obj, Pod) and is_there(obj) and workload_of(obj)[0] != "DaemonSet":
            there[obj.namespace, *workload_of(obj)] += 1
            yield 1, obj.requests, _sum_of(known.of_pod(obj))
    for obj in objects:
        template = pod_template(obj)
        if template is None or isinstance(obj, Pod) or obj.kind == "DaemonSet":
            continue
        key = workload_key_of(obj)
        if obj.kind == "ReplicaSet" and key[1] == "Deployment":
            continue
        missing = int(getattr(obj, "replicas", getattr(obj, "parallelism", 0))) - there[key]
        if missing > 0:
            yield missing, template.spec.requests, _sum_of(known.of_template(obj, template))


def _sum_of(found: Mapping[str, Units] | None) -> Units | None:
    if found is None:
        return None
    sums: Counter[str] = Counter()
    for amounts in found.values():
        sums.update(amounts)
    return sums
