"""Group rules: the API server's validation of Workloads, PodGroups and their members.

Mirrors pkg/apis/scheduling/v1alpha2/zz_generated.validations.go, pkg/apis/scheduling/validation and
ValidateConditions of k8s.io/apimachinery/pkg/apis/meta/v1/validation. Objects are trees, as they come
over the wire; a field behind a gate that is off may only stay as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ..text import name_faults
from ..text.name_faults import key_faults, path_segment_faults
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    too_many,
    unsupported_value,
)

Tree = Mapping[str, Any]
Gates = Mapping[str, bool]
Faults = Callable[[str], tuple[str, ...]]

TOPOLOGY, PREEMPTION = "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
DISRUPTION_MODES = ("Pod", "PodGroup")
CONDITION_STATUSES = ("False", "True", "Unknown")
MAX_TEMPLATES, MAX_CLAIMS, MAX_TOPOLOGY = 8, 4, 1
MAX_PRIORITY = 1_000_000_000
MAX_REASON, MAX_MESSAGE = 1024, 32 * 1024
_REASON_FORM = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON_FORM}')"
)
_REASON = re.compile(_REASON_FORM)
dns_label_faults = partial(name_faults.dns_label_faults, unit="bytes")
subdomain_faults = partial(name_faults.subdomain_faults, unit="bytes")
_CLAIM_ORDER = ("name", "resourceClaimName", "resourceClaimTemplateName")
_TEMPLATE_ORDER = (
    "name",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


def group_causes(spec: Tree, old: Tree | None, gates: Gates) -> Iterator[Cause]:
    """Yield the faults of a PodGroup's spec, or of its change from `old`."""
    yield from _reference_causes(spec, old)
    if _changed(spec, old, "schedulingPolicy"):
        if old is not None:
            yield _immutable("spec.schedulingPolicy")
        else:
            yield from _policy_causes(spec.get("schedulingPolicy") or {}, "spec.schedulingPolicy")
    yield from _gated_causes(spec, old, gates, "schedulingConstraints")
    yield from _claims_causes(spec, old, "spec")
    for name in ("disruptionMode", "priorityClassName", "priority"):
        yield from _gated_causes(spec, old, gates, name)


def workload_causes(spec: Tree, old: Tree | None, gates: Gates) -> Iterator[Cause]:
    """Yield the faults of a Workload's spec, or of its change from `old`."""
    if _changed(spec, old, "controllerRef"):
        if old is not None:
            yield _immutable("spec.controllerRef")
        elif spec.get("controllerRef") is not None:
            yield from _controller_causes(spec["controllerRef"], "spec.controllerRef")
    if not _changed(spec, old, "podGroupTemplates"):
        return
    path, templates = "spec.podGroupTemplates", spec.get("podGroupTemplates") or []
    if old is not None:
        yield _immutable(path)
    if len(templates) > MAX_TEMPLATES:
        yield too_many(path, len(templates), MAX_TEMPLATES)
    if not templates:
        yield required(path)
    if old is None and len(templates) <= MAX_TEMPLATES:
        yield from _unique_causes(templates, path, _template_value)
        for i, template in enumerate(templates):
            yield from _template_causes(template, f"{path}[{i}]", gates)


def group_status_causes(status: Tree, spec: Tree) -> Iterator[Cause]:
    """Yield the faults of a PodGroup's status that a client wrote."""
    types: set[str] = set()
    for i, condition in enumerate(status.get("conditions") or ()):
        path, type_ = f"status.conditions[{i}]", str(condition.get("type") or "")
        if type_ in types:
            yield duplicate(f"{path}.type", type_)
        types.add(type_)
        yield from _condition_causes(condition, path)
    path, entries = "status.resourceClaimStatuses", status.get("resourceClaimStatuses") or []
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    for i, entry in enumerate(entries):
        if entry.get("name") not in claims:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid_value(f"{path}[{i}].name", str(entry.get("name") or ""), problem)
    if len(entries) > MAX_CLAIMS:
        yield too_many(path, len(entries), MAX_CLAIMS)
        return
    yield from _unique_causes(entries, path, _claim_value)
    for i, entry in enumerate(entries):
        yield from _optional_name(entry, f"{path}[{i}]", "resourceClaimName", subdomain_faults)


def member_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the reference to a group in the spec of a pod."""
    group = spec.get("schedulingGroup")
    if group is None:
        return
    field, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName")
    if name is None:
        yield invalid_value(field, None, "must specify one of: `podGroupName`")
        return
    for fault in subdomain_faults(name):
        yield invalid_value(field, name, fault)


# Parts of both kinds


def _gated_causes(spec: Tree, old: Tree | None, gates: Gates, name: str) -> Iterator[Cause]:
    """Yield the faults of a field of a PodGroup that a gate guards."""
    if not _changed(spec, old, name):
        return
    if not gates.get(TOPOLOGY if name == "schedulingConstraints" else PREEMPTION):
        if _is_set(spec, name):
            yield forbidden_field(f"spec.{name}")
    elif old is not None:
        yield _immutable(f"spec.{name}")
    elif _is_set(spec, name):
        yield from _FIELDS[name](spec[name], f"spec.{name}")


def _template_causes(template: Tree, path: str, gates: Gates) -> Iterator[Cause]:
    yield from _required_name(template, path, "name", dns_label_faults)
    yield from _policy_causes(template.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy")
    for name in ("schedulingConstraints", "", "disruptionMode", "priorityClassName", "priority"):
        if not name:
            yield from _claims_causes(template, None, path)
        elif _is_set(template, name):
            if gates.get(TOPOLOGY if name == "schedulingConstraints" else PREEMPTION):
                yield from _FIELDS[name](template[name], f"{path}.{name}")
            else:
                yield forbidden_field(f"{path}.{name}")


def _reference_causes(spec: Tree, old: Tree | None) -> Iterator[Cause]:
    path = "spec.podGroupTemplateRef"
    if not _changed(spec, old, "podGroupTemplateRef"):
        return
    if old is not None:
        yield _immutable(path)
    elif spec.get("podGroupTemplateRef") is not None:
        reference = spec["podGroupTemplateRef"]
        yield from _union_causes(reference, path, ("workload",))
        workload = reference.get("workload")
        if workload is not None:
            path = f"{path}.workload"
            yield from _required_name(workload, path, "workloadName", subdomain_faults)
            yield from _required_name(workload, path, "podGroupTemplateName", dns_label_faults)


def _controller_causes(reference: Tree, path: str) -> Iterator[Cause]:
    if reference.get("apiGroup"):
        yield from _optional_name(reference, path, "apiGroup", subdomain_faults)
    yield from _required_name(reference, path, "kind", path_segment_faults)
    yield from _required_name(reference, path, "name", path_segment_faults)


def _policy_causes(policy: Tree, path: str) -> Iterator[Cause]:
    yield from _union_causes(policy, path, ("basic", "gang"))
    gang = policy.get("gang")
    if gang is None:
        return
    count = gang.get("minCount") or 0
    if not count:
        yield required(f"{path}.gang.minCount")
    elif count < 1:
        problem = "must be greater than or equal to 1"
        yield invalid_value(f"{path}.gang.minCount", count, problem)


def _claims_causes(spec: Tree, old: Tree | None, path: str) -> Iterator[Cause]:
    if not _changed(spec, old, "resourceClaims"):
        return
    path, claims = f"{path}.resourceClaims", spec.get("resourceClaims") or []
    if old is not None:
        yield _immutable(path)
    if len(claims) > MAX_CLAIMS:
        yield too_many(path, len(claims), MAX_CLAIMS)
    elif old is None:
        yield from _unique_causes(claims, path, _claim_value)
        for i, claim in enumerate(claims):
            place = f"{path}[{i}]"
            yield from _union_causes(claim, place, _CLAIM_ORDER[1:])
            yield from _required_name(claim, place, "name", dns_label_faults)
            for name in _CLAIM_ORDER[1:]:
                yield from _optional_name(claim, place, name, subdomain_faults)


def _constraint_causes(constraints: Tree, path: str) -> Iterator[Cause]:
    topology = constraints.get("topology") or []
    if len(topology) > MAX_TOPOLOGY:
        yield too_many(f"{path}.topology", len(topology), MAX_TOPOLOGY)
        return
    for i, constraint in enumerate(topology):
        yield from _required_name(constraint, f"{path}.topology[{i}]", "key", key_faults)


def _mode_causes(mode: Any, path: str) -> Iterator[Cause]:
    if isinstance(mode, Mapping):  # v1beta1
        yield from _union_causes(mode, path, ("single", "all"))
    elif mode not in DISRUPTION_MODES:
        yield unsupported_value(path, mode, DISRUPTION_MODES)


def _class_causes(name: str, path: str) -> Iterator[Cause]:
    for fault in subdomain_faults(name):
        yield invalid_value(path, name, fault)


def _priority_causes(priority: int, path: str) -> Iterator[Cause]:
    if priority > MAX_PRIORITY:
        yield invalid_value(path, priority, f"must be less than or equal to {MAX_PRIORITY}")


_FIELDS: Mapping[str, Callable[[Any, str], Iterator[Cause]]] = {
    "schedulingConstraints": _constraint_causes,
    "disruptionMode": _mode_causes,
    "priorityClassName": _class_causes,
    "priority": _priority_causes,
}


def _condition_causes(condition: Tree, path: str) -> Iterator[Cause]:
    type_, reason = str(condition.get("type") or ""), str(condition.get("reason") or "")
    for fault in key_faults(type_):
        yield invalid_value(f"{path}.type", type_, fault)
    status = str(condition.get("status") or "")
    if status not in CONDITION_STATUSES:
        yield unsupported_value(f"{path}.status", status, CONDITION_STATUSES)
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        problem = "must be greater than or equal to zero"
        yield invalid_value(f"{path}.observedGeneration", generation, problem)
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    if not reason:
        yield required(f"{path}.reason")
    elif not _REASON.fullmatch(reason):
        yield invalid_value(f"{path}.reason", reason, _REASON_RULE)
    if len(reason) > MAX_REASON:
        yield too_long(f"{path}.reason", MAX_REASON)
    if len(str(condition.get("message") or "").encode()) > MAX_MESSAGE:
        yield too_long(f"{path}.message", MAX_MESSAGE)


# Single fields


def _union_causes(value: Tree, path: str, members: tuple[str, ...]) -> Iterator[Cause]:
    """Yield a fault unless exactly one member of a union is set."""
    found = [name for name in members if value.get(name) is not None]
    choices = ", ".join(f"`{name}`" for name in members)
    if not found:
        yield invalid_value(path, "", f"must specify one of: {choices}")
    elif len(found) > 1:
        problem = f"must specify exactly one of: {choices}"
        yield invalid_value(path, f"{{{', '.join(found)}}}", problem)


def _unique_causes(
    items: list[Tree], path: str, shown: Callable[[Tree], dict[str, Any]]
) -> Iterator[Cause]:
    """Yield the items whose name another before them has."""
    names: set[str] = set()
    for i, item in enumerate(items):
        name = str(item.get("name") or "")
        if name in names:
            yield duplicate(f"{path}[{i}]", shown(item))
        names.add(name)


def _required_name(value: Tree, path: str, name: str, faults: Faults) -> Iterator[Cause]:
    if not value.get(name):
        yield required(f"{path}.{name}")
    else:
        yield from _optional_name(value, path, name, faults)


def _optional_name(value: Tree, path: str, name: str, faults: Faults) -> Iterator[Cause]:
    text = value.get(name)
    for fault in faults(text) if text is not None else ():
        yield invalid_value(f"{path}.{name}", text, fault)


def _claim_value(claim: Tree) -> dict[str, Any]:
    """A claim as messages show it."""
    return {key: claim[key] for key in _CLAIM_ORDER if claim.get(key) is not None}


def _template_value(template: Tree) -> dict[str, Any]:
    """A template as messages show it."""
    found = {key: template.get(key) for key in _TEMPLATE_ORDER}
    always = ("name", "schedulingPolicy", "schedulingConstraints")
    return {key: value for key, value in found.items() if key in always or value}


def _immutable(path: str) -> Cause:
    return invalid_value(path, None, "field is immutable")


def _is_set(spec: Tree, name: str) -> bool:
    """Whether a field has a value; an empty class name does not count."""
    value = spec.get(name)
    return bool(value) if name == "priorityClassName" else value is not None


def _changed(spec: Tree, old: Tree | None, name: str) -> bool:
    """Whether a field is new or has another value than before."""
    return old is None or _filled(spec.get(name)) != _filled(old.get(name))


def _filled(value: Any) -> Any:
    """The value without the fields that typed clients leave out; an empty object stays, as it is a choice."""
    if isinstance(value, Mapping):
        fields = ((key, _filled(part)) for key, part in value.items())
        return {key: part for key, part in fields if part not in (None, "")}
    if isinstance(value, list):
        return [_filled(part) for part in value] or None
    return value if value != "" else None
