"""Job groups: the Workload and the PodGroup that an indexed job gets for its pods.

Mirrors pkg/controller/job/job_scheduling_manager.go. A job whose template names a group, that has fewer than two pods
at a time, or whose pods do not all run at once, is left alone; so is one that has started without a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ...api.meta import KubeObject, ObjectMeta
from ...api.pod import Pod
from ...api.pod_groups import (
    GangPolicy,
    PodGroup,
    PodGroupPolicy,
    PodGroupSpec,
    PodGroupTemplate,
    PodGroupTemplateReference,
    Workload,
    WorkloadSpec,
    WorkloadTemplateReference,
)
from ...api.pod_spec import PodSchedulingGroup, intern_spec
from ...api.volumes import TypedLocalObjectReference
from ...api.workloads import Job
from ..objects.object_index import ControllerCluster
from .admission_defaults import admit_groups
from .created_names import encode_number
from .deployments import owner_reference

GATE = "WorkloadWithJob"
MAX_NAME = 253
_PRIME, _BASIS, _MASK = 0x01000193, 0x811C9DC5, 0xFFFFFFFF


class JobGroups:
    """The groups of all jobs; none, unless the gate is on.

    The cluster's Workloads and PodGroups are indexed once, then followed by `add` and `remove`. New ones are admitted
    here if this `admits`, else by the cluster.
    """

    def __init__(
        self, cluster: ControllerCluster, gates: Mapping[str, bool], admits: bool = True
    ) -> None:
        self._cluster = cluster
        self._gates = gates
        self._admits = admits
        self._is_on = bool(gates.get(GATE))
        self._names: dict[tuple[str, str, str], dict[str, None]] | None = None
        """Names of objects by their kind, namespace, and the name that they refer to."""

    def group_of(self, job: Job, has_pods: bool) -> PodGroup | None:
        """The group of a job's pods, made if the job is new; None if its pods are scheduled one by one."""
        if not self._is_on or not is_candidate(job):
            return None
        workload = self._workload_of(job, has_pods)
        if workload is None or len(workload.templates) != 1:
            return None
        found: list[PodGroup] = self._find("PodGroup", job.namespace, workload.name)
        if not found:
            made: PodGroup = self._make(make_group(job, workload))
            return made
        return found[0] if len(found) == 1 and _is_controlled(found[0], job) else None

    def delete_of(self, namespace: str, job_name: str) -> None:
        """Delete the pods of a deleted job."""
        if not self._is_on:
            return
        for workload in self._find("Workload", namespace, job_name):
            for obj in (*self._find("PodGroup", namespace, workload.name), workload):
                if any(o.kind == "Job" and o.name == job_name for o in obj.owner_references):
                    self._cluster.delete(obj)
                    self.remove(obj)

    def add(self, obj: KubeObject) -> None:
        """Follow a new object of any kind."""
        if self._names is None:
            return
        target = _target(obj)
        if target:
            self._names.setdefault((obj.kind, obj.namespace, target), {})[obj.name] = None

    def remove(self, obj: KubeObject) -> None:
        """Follow a deleted object of any kind."""
        if self._names is not None:
            self._names.get((obj.kind, obj.namespace, _target(obj)), {}).pop(obj.name, None)

    def _workload_of(self, job: Job, has_pods: bool) -> Workload | None:
        found: list[Workload] = self._find("Workload", job.namespace, job.name)
        if found:
            return found[0] if len(found) == 1 and _is_controlled(found[0], job) else None
        return None if has_pods or job.has_started else self._make(make_workload(job))

    def _make(self, obj: Any) -> Any:
        admitted = admit_groups(obj, self._cluster, self._gates) if self._admits else obj
        made = self._cluster.add(admitted)
        self.add(made)
        return made

    def _find(self, kind: str, namespace: str, target: str) -> list[Any]:
        """The objects that refer to `target`."""
        if self._names is None:
            self._names = {}
            for listed in ("Workload", "PodGroup"):
                for obj in self._cluster.list(listed):
                    self.add(obj)
        names: Iterable[str] = self._names.get((kind, namespace, target), ())
        found = (self._cluster.get(kind, namespace, name) for name in names)
        return [obj for obj in found if obj is not None]


def is_candidate(job: Job) -> bool:
    """Whether the pods of a job are a gang: several, indexed, all at once, and not of another group."""
    parallelism = job.parallelism
    is_whole = parallelism > 1 and job.spec.completions == parallelism
    return is_whole and job.is_indexed and job.spec.template.spec.scheduling_group is None


def with_group(pod: Pod, group: PodGroup) -> Pod:
    """The pod as a member of the group, which does not own it."""
    member = PodSchedulingGroup(pod_group_name=group.name)
    return pod.with_spec(intern_spec(replace(pod.spec, scheduling_group=member)))


def make_workload(job: Job) -> Workload:
    """The Workload of a job, with one template."""
    gang = GangPolicy(min_count=job.parallelism)
    template = PodGroupTemplate(
        name=f"{job.name}-pgt-0", scheduling_policy=PodGroupPolicy(gang=gang)
    )
    controller = TypedLocalObjectReference(api_group="batch", kind="Job", name=job.name)
    return Workload(
        metadata=ObjectMeta(
            name=workload_name(job.name, job.uid),
            namespace=job.namespace,
            owner_references=(owner_reference(job),),
        ),
        spec=WorkloadSpec(controller_ref=controller, pod_group_templates=(template,)),
    )


def make_group(job: Job, workload: Workload) -> PodGroup:
    """The PodGroup of a job, from the only template of its Workload."""
    (template,) = workload.templates
    reference = WorkloadTemplateReference(
        workload_name=workload.name, pod_group_template_name=template.name
    )
    beside = replace(owner_reference(workload), controller=None)
    return PodGroup(
        metadata=ObjectMeta(
            name=group_name(workload.name, template.name),
            namespace=job.namespace,
            owner_references=(owner_reference(job), beside),
        ),
        spec=PodGroupSpec(
            pod_group_template_ref=PodGroupTemplateReference(workload=reference),
            scheduling_policy=template.scheduling_policy,
        ),
    )


def workload_name(job_name: str, job_uid: str) -> str:
    """The name of a job's Workload; the hash is over the uid as Go prints it."""
    ending = f"-{_hash(f'(types.UID){job_uid}')}"
    return job_name[: MAX_NAME - len(ending)] + ending


def group_name(workload: str, template: str) -> str:
    """The name of a group; each part has half of the space at least."""
    ending = f"-{_hash(workload + template)}"
    room = MAX_NAME - len(ending) - 1
    if len(workload) + len(template) > room:
        half = room // 2
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}{ending}"


def _hash(text: str) -> str:
    """FNV-1a with 32 bits, in safe letters."""
    value = _BASIS
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return encode_number(value)


def _target(obj: KubeObject) -> str:
    """The job that a Workload refers to, or the Workload of a PodGroup; else empty."""
    match obj:
        case Workload():
            ref = obj.spec.controller_ref
            is_job = ref is not None and (ref.api_group, ref.kind) == ("batch", "Job")
            return ref.name if ref is not None and is_job else ""
        case PodGroup():
            template = obj.spec.pod_group_template_ref
            workload = template.workload if template is not None else obj.spec.workload_ref
            return workload.workload_name if workload is not None else ""
    return ""


def _is_controlled(obj: KubeObject, job: Job) -> bool:
    return any(owner.controller and owner.uid == job.uid for owner in obj.owner_references)
