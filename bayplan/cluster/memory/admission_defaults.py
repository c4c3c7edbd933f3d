"""Admission defaults: the API server's defaults and checks of pod groups, workloads, claims and classes of devices.

Mirrors pkg/registry/scheduling/{workload,podgroup}/strategy.go and the admission plugin priority (a group that has a
priority keeps it, as pods do), and the defaults and validation of pkg/apis/resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from ...api.dra import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    WantedDevices,
)
from ...api.pod_groups import PodGroup, PodGroupSpec, Workload
from ...api.rules.device_faults import expression_problems
from ...api.rules.group_rules import PREEMPTION, TOPOLOGY, group_causes, workload_causes
from ...api.wire.encode import to_dict
from ...api.workloads import BUILT_IN_CLASSES
from ...framework.lister import Lister
from ..objects.object_index import ControllerCluster
from .admission import AdmissionError, AnyObject, default_priority_class

Objects = Lister | ControllerCluster
CLAIMS = "DRAWorkloadResourceClaims"
Wanted = TypeVar("Wanted", bound=WantedDevices)


def admit_groups(obj: AnyObject, lister: Objects, gates: Mapping[str, bool]) -> AnyObject:
    """A Workload or PodGroup as the API server would store it; other objects unchanged.

    Fields behind gates that are off are dropped. Raises AdmissionError, with the API server's message, if it would be
    rejected.
    """
    changed: Any = obj
    match obj:
        case PodGroup():
            spec = replace(obj.spec, **_dropped(gates))
            if gates.get(PREEMPTION):
                spec = replace(spec, **_priority(obj, spec, lister))
                if PREEMPTION in frozenset(gates):  # later releases write the mode as an object
                    spec = replace(spec, disruption_mode=spec.disruption_mode or "Pod")
            causes = group_causes(_tree(replace(obj, spec=spec)), None, gates)
            changed = obj if spec == obj.spec else replace(obj, spec=spec)
        case Workload():
            dropped = _dropped(gates)
            templates = tuple(replace(template, **dropped) for template in obj.templates)
            changed = replace(obj, spec=replace(obj.spec, pod_group_templates=templates or None))
            causes = workload_causes(_tree(changed), None, gates)
        case _:
            return obj
    for cause in causes:
        raise AdmissionError(obj, cause.field, cause.message)
    return cast(AnyObject, changed)


def _dropped(gates: Mapping[str, bool]) -> dict[str, Any]:
    """The values of the fields that a group or a template loses."""
    changes: dict[str, Any] = {}
    if not gates.get(TOPOLOGY):
        changes["scheduling_constraints"] = None
    if not gates.get(CLAIMS):
        changes["resource_claims"] = None
    if not gates.get(PREEMPTION):
        changes |= {"disruption_mode": None, "priority": None, "priority_class_name": ""}
    return changes


def _priority(group: PodGroup, spec: PodGroupSpec, lister: Objects) -> dict[str, Any]:
    """The priority of the group's class."""
    if spec.priority is not None:
        return {}
    name = spec.priority_class_name
    found = lister.get("PriorityClass", "", name) if name else default_priority_class(lister)
    if found is not None:
        return {"priority": found.value, "priority_class_name": found.name}
    if name and name not in BUILT_IN_CLASSES:
        problem = f"no PriorityClass with name {name} was found"
        raise AdmissionError(group, "spec.priorityClassName", problem)
    return {"priority": BUILT_IN_CLASSES.get(name, 0)}


def _tree(obj: PodGroup | Workload) -> dict[str, Any]:
    spec: dict[str, Any] = to_dict(obj).get("spec") or {}
    return spec


def admit_devices(obj: AnyObject) -> AnyObject:
    """A claim, template or class with the API server's defaults; other objects unchanged.

    Raises AdmissionError when an expression does not compile.
    """
    if not isinstance(obj, ResourceClaim | ResourceClaimTemplate | DeviceClass):
        return obj
    for path, problem in expression_problems(obj):
        raise AdmissionError(obj, path, problem)
    changed: Any = obj
    match obj:
        case ResourceClaim():
            spec = replace(obj.spec, devices=_devices(obj.spec.devices))
            changed = replace(obj, spec=spec)
        case ResourceClaimTemplate():
            spec = replace(obj.spec.spec, devices=_devices(obj.spec.spec.devices))
            changed = replace(obj, spec=replace(obj.spec, spec=spec))
    return cast(AnyObject, changed)


def _devices(devices: DeviceClaim) -> DeviceClaim:
    requests = tuple(_request(request) for request in devices.requests or ())
    return replace(devices, requests=requests or None)


def _request(request: DeviceRequest) -> DeviceRequest:
    exactly, options = request.exactly, request.first_available
    return replace(
        request,
        exactly=None if exactly is None else _wanted(exactly),
        first_available=None if options is None else tuple(_wanted(option) for option in options),
    )


def _wanted(wanted: Wanted) -> Wanted:
    mode = wanted.allocation_mode or EXACT_COUNT
    count = 0 if mode == ALL_DEVICES else wanted.count or 1
    tolerations = wanted.tolerations
    if tolerations is not None:
        tolerations = tuple(replace(t, operator=t.operator or "Equal") for t in tolerations)
    return replace(wanted, allocation_mode=mode, count=count, tolerations=tolerations)
