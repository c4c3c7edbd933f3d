"""Pod group rules: the API server's rules for Workloads, PodGroups and their members, by feature gates.

Mirrors pkg/registry/scheduling/{workload,podgroup}/strategy.go, dropDisabledSchedulingGroup of
pkg/api/pod/util.go, and of plugin/pkg/admission: priority, podgroup (PodGroupWorkloadExists) and job
(JobValidation). PodGroupProtection is `server_fields.PROTECTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ...api.pod_groups import PodGroup, Workload
from ...api.rules.field_causes import Cause
from ...api.rules.group_rules import (
    PREEMPTION,
    TOPOLOGY,
    group_causes,
    group_status_causes,
    workload_causes,
)
from ...api.workloads import PriorityClass
from ...cluster.memory.admission import default_priority_class
from ...framework.lister import Lister
from .resource_table import ApiResource
from .status_errors import forbidden

Tree = dict[str, Any]

GENERIC = "GenericWorkload"
PODGROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
GATED = frozenset({PODGROUPS, WORKLOADS})
"""Kinds that are served only with GenericWorkload."""
TEMPLATE = "podGroupTemplateRef"
GATED_FIELDS = {
    "schedulingConstraints": TOPOLOGY,
    "resourceClaims": "DRAWorkloadResourceClaims",
    "disruptionMode": PREEMPTION,
    "priorityClassName": PREEMPTION,
    "priority": PREEMPTION,
    "preemptionPolicy": "PodGroupPreemptionPolicy",
}


class PodGroupRules:
    """The rules with the gates of one cluster; `lister` has its other objects."""

    def __init__(self, gates: Mapping[str, bool], lister: Lister) -> None:
        self._gates = gates
        self._lister = lister
        self.are_served = bool(gates.get(GENERIC))
        """Whether there are groups."""

    def serves(self, resource: ApiResource) -> bool:
        """Whether the resource is part of the API."""
        return self.are_served or resource.storage not in GATED

    def prepare(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> None:
        """Set the fields that the server sets, and drop those it does not support; raises StatusError."""
        if resource.storage in GATED:
            before = (old or {}).get("spec") or {}
            spec = _spec_of(tree)
            if resource.storage == WORKLOADS:
                known = before.get("podGroupTemplates") or []
                for i, template in enumerate(spec.get("podGroupTemplates") or ()):
                    self._drop_fields(template, known[i] if i < len(known) else {})
                return
            if spec.get("disruptionMode") is None:
                spec["disruptionMode"] = _default_mode(resource)
            if old is None:
                self._set_priority(resource, tree, spec)
            self._drop_fields(spec, before)
        elif not self.are_served:
            is_pod = resource.storage == "pods"
            _drop_group(tree, old, partial(_below, name="spec") if is_pod else _pod_spec)

    def causes(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> Iterator[Cause]:
        """Yield the faults of an object, or of its change."""
        if resource.storage not in GATED:
            return
        spec, before = tree.get("spec") or {}, None if old is None else old.get("spec") or {}
        if resource.storage == WORKLOADS:
            yield from workload_causes(spec, before, self._gates)
        else:
            yield from group_causes(spec, before, self._gates)

    def status_causes(self, resource: ApiResource, tree: Tree) -> Iterator[Cause]:
        """Yield the faults of a status that a client wrote."""
        if resource.storage == PODGROUPS:
            yield from group_status_causes(tree.get("status") or {}, tree.get("spec") or {})

    def check(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> None:
        """Reject a reference to a missing template, and a change of the size of a gang's job; raises StatusError."""
        if resource.storage == PODGROUPS and old is None:
            self._check_template(resource, tree)
            # kube-apiserver sets defaults whenever it reads an object, also without the gate.
            tree["spec"].setdefault("disruptionMode", _default_mode(resource))
        elif resource.storage == "jobs.batch" and old is not None and self.are_served:
            self._check_parallelism(resource, tree, old)

    # Fields behind gates

    def _drop_fields(self, spec: Tree, old: Mapping[str, Any]) -> None:
        for name, gate in GATED_FIELDS.items():
            if name in spec and not self._gates.get(gate) and not _in_use(old, name):
                del spec[name]

    # Admission

    def _set_priority(self, resource: ApiResource, tree: Tree, spec: Tree) -> None:
        """Resolve the priority class of a new group."""
        if not self._gates.get(PREEMPTION):
            return
        name, given = str(spec.get("priorityClassName") or ""), spec.get("priority")
        found: PriorityClass | None
        if name:
            found = self._lister.get("PriorityClass", "", name)
            if found is None:
                problem = f"no PriorityClass with name {name} was found"
                raise forbidden(resource, tree["metadata"]["name"], problem)
        else:
            found = default_priority_class(self._lister)
        priority = found.value if found is not None else 0
        if given is not None and given != priority:
            problem = (
                f"priority set in the pod group ({given}) must match the priority computed"
                f" ({priority}) based on the priority class set in the spec"
            )
            raise forbidden(resource, tree["metadata"]["name"], problem)
        spec["priority"] = priority
        if found is not None:
            spec["priorityClassName"] = found.name

    def _check_template(self, resource: ApiResource, tree: Tree) -> None:
        spec, metadata = tree.get("spec") or {}, tree["metadata"]
        reference = (spec.get(TEMPLATE) or {}).get("workload")
        reference = reference or spec.get("workloadRef")
        if not reference:
            return
        name = reference["workloadName"]
        template = reference.get("podGroupTemplateName") or reference.get("templateName")
        workload: Workload | None = self._lister.get("Workload", metadata["namespace"], name)
        if workload is None:
            problem = f'Workload "{name}" not found'
        elif workload.is_terminating:
            problem = f'Workload "{name}" is being deleted'
        elif all(found.name != template for found in workload.templates):
            problem = f'PodGroupTemplate "{template}" not found in Workload "{name}"'
        else:
            return
        raise forbidden(resource, metadata["name"], f"PodGroup rejected: {problem}")

    def _check_parallelism(self, resource: ApiResource, tree: Tree, old: Tree) -> None:
        new_spec, old_spec = tree.get("spec") or {}, old.get("spec") or {}
        if new_spec.get("parallelism") == old_spec.get("parallelism"):
            return
        metadata = old["metadata"]
        template = (old_spec.get("template") or {}).get("spec") or {}
        name = (template.get("schedulingGroup") or {}).get("podGroupName")
        for group in self._groups_of(metadata, name):
            if group.spec.scheduling_policy.gang is not None:
                problem = (
                    "cannot change parallelism for a Job referencing gang-scheduled"
                    f' PodGroup "{group.name}"'
                )
                raise forbidden(resource, metadata["name"], problem)

    def _groups_of(self, job: Mapping[str, Any], named: str | None) -> Iterator[PodGroup]:
        """The group that the template of a job names, else those that the job controls."""
        if named:
            found: PodGroup | None = self._lister.get("PodGroup", job["namespace"], named)
            if found is not None:
                yield found
            return
        for group in self._lister.list("PodGroup", job["namespace"]):
            if any(o.controller and o.uid == job["uid"] for o in group.owner_references):
                yield group


def _default_mode(resource: ApiResource) -> str | Tree:
    """The disruptionMode of a group that names none: its pods are preempted one by one."""
    return "Pod" if resource.api_version == PodGroup.api_version else {"single": {}}


def _spec_of(tree: Tree) -> Tree:
    spec = tree.get("spec")
    if spec is None:
        spec = tree["spec"] = {}
    found: Tree = spec
    return found


def _in_use(spec: Mapping[str, Any], name: str) -> bool:
    value = spec.get(name)
    is_pointer = name not in ("resourceClaims", "priorityClassName")
    return value is not None if is_pointer else bool(value)


def _drop_group(tree: Tree, old: Tree | None, spec_of: Callable[[Tree], Tree]) -> None:
    """Drop the reference to a group from a pod or a template, unless it had one before."""
    spec = spec_of(tree)
    if "schedulingGroup" in spec and not (old and spec_of(old).get("schedulingGroup")):
        del spec["schedulingGroup"]


def _pod_spec(tree: Tree) -> Tree:
    """The spec of the pods of a workload; the spec of the object if it has another form."""
    spec = _below(tree, "spec")
    job = _below(_below(spec, "jobTemplate"), "spec")
    for holder in (job, spec, tree):
        if isinstance(holder.get("template"), dict):
            return _below(holder["template"], "spec")
    return spec


def _below(tree: Tree, name: str) -> Tree:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}
