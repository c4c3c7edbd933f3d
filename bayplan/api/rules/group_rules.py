"""Group rules: the API server's validation of Workloads, PodGroups and their members.

Mirrors pkg/apis/scheduling/v1alpha2/zz_generated.validations.go, pkg/apis/scheduling/validation and
ValidateConditions of k8s.io/apimachinery/pkg/apis/meta/v1/validation. Objects are trees, as they come
over the wire; a field behind a gate that is off may only stay as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..text import name_faults
from ..text.name_faults import key_faults, path_segment_faults
from ..workloads import MAX_PRIORITY
from .field_causes import Cause, Part, Tree

Gates = Mapping[str, bool]

TOPOLOGY, PREEMPTION = "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
DISRUPTION_MODES = ("Pod", "PodGroup")
CONDITION_STATUSES = ("False", "True", "Unknown")
MAX_TEMPLATES, MAX_CLAIMS, MAX_TOPOLOGY = 8, 4, 1
MAX_REASON, MAX_MESSAGE = 1024, 32 * 1024
_REASON_FORM = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON_FORM}')"
)
_REASON = re.compile(_REASON_FORM)
_IMMUTABLE = "field is immutable"
dns_label_faults = partial(name_faults.dns_label_faults, unit="bytes")
subdomain_faults = partial(name_faults.subdomain_faults, unit="bytes")
_CLAIM_ORDER = ("name", "resourceClaimName", "resourceClaimTemplateName")
_TEMPLATE_ORDER = (
    *("name", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode"),
    *("priorityClassName", "priority"),
)


def group_causes(spec: Tree, old: Tree | None, gates: Gates) -> list[Cause]:
    """The faults of a PodGroup's spec, or of its change from `old`."""
    part = Part(spec, "spec")
    _check_reference(part, old)
    if _may_check(part, old, "schedulingPolicy"):
        _check_policy(part.below("schedulingPolicy"))
    _check_gated(part, old, gates, "schedulingConstraints")
    _check_claims(part, old)
    for name in ("disruptionMode", "priorityClassName", "priority"):
        _check_gated(part, old, gates, name)
    return part.causes


def workload_causes(spec: Tree, old: Tree | None, gates: Gates) -> list[Cause]:
    """The faults of a Workload's spec, or of its change from `old`."""
    part = Part(spec, "spec")
    if _may_check(part, old, "controllerRef") and part.has("controllerRef"):
        reference = part.below("controllerRef")
        reference.text("apiGroup", subdomain_faults)
        reference.needs_text("kind", path_segment_faults)
        reference.needs_text("name", path_segment_faults)
    if not _changed(spec, old, "podGroupTemplates"):
        return part.causes
    if old is not None:
        part.invalid("podGroupTemplates", _IMMUTABLE, None)
    count = len(spec.get("podGroupTemplates") or ())
    if count > MAX_TEMPLATES:
        part.too_many("podGroupTemplates", count, MAX_TEMPLATES)
    part.needs("podGroupTemplates")
    if old is None and count <= MAX_TEMPLATES:
        _check_unique(part, "podGroupTemplates", _template_value)
        for template in part.each("podGroupTemplates"):
            _check_template(template, gates)
    return part.causes


def group_status_causes(tree: Tree, spec: Tree) -> list[Cause]:
    """The faults of a PodGroup's status that a client wrote."""
    status, types = Part(tree, "status"), set[str]()
    for condition in status.each("conditions"):
        condition.unique("type", types)
        _check_condition(condition)
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    for entry in status.each("resourceClaimStatuses"):
        if entry.get("name") not in claims:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            entry.invalid("name", problem, str(entry.get("name") or ""))
    count = len(tree.get("resourceClaimStatuses") or ())
    if count > MAX_CLAIMS:
        status.too_many("resourceClaimStatuses", count, MAX_CLAIMS)
        return status.causes
    _check_unique(status, "resourceClaimStatuses", _claim_value)
    for entry in status.each("resourceClaimStatuses"):
        entry.given("resourceClaimName", subdomain_faults)
    return status.causes


def check_member(spec: Part) -> None:
    """Check the reference to a group in the spec of a pod."""
    if not spec.has("schedulingGroup"):
        return
    group = spec.below("schedulingGroup")
    if not group.has("podGroupName"):
        group.invalid("podGroupName", "must specify one of: `podGroupName`", None)
        return
    group.check("podGroupName", subdomain_faults)


# Parts of both kinds


def _check_gated(spec: Part, old: Tree | None, gates: Gates, name: str) -> None:
    """Check a field of a PodGroup that a gate guards."""
    if not gates.get(_gate(name)):
        if _changed(spec.tree, old, name) and _is_set(spec, name):
            spec.forbidden(name)
    elif _may_check(spec, old, name) and _is_set(spec, name):
        _FIELDS[name](spec, name)


def _gate(name: str) -> str:
    return TOPOLOGY if name == "schedulingConstraints" else PREEMPTION


def _check_template(template: Part, gates: Gates) -> None:
    template.needs_text("name", dns_label_faults)
    _check_policy(template.below("schedulingPolicy"))
    for name in ("schedulingConstraints", "", "disruptionMode", "priorityClassName", "priority"):
        if not name:
            _check_claims(template, None)
        elif _is_set(template, name):
            if gates.get(_gate(name)):
                _FIELDS[name](template, name)
            else:
                template.forbidden(name)


def _check_reference(spec: Part, old: Tree | None) -> None:
    if not _may_check(spec, old, "podGroupTemplateRef") or not spec.has("podGroupTemplateRef"):
        return
    reference = spec.below("podGroupTemplateRef")
    _check_union(reference, ("workload",))
    if reference.has("workload"):
        workload = reference.below("workload")
        workload.needs_text("workloadName", subdomain_faults)
        workload.needs_text("podGroupTemplateName", dns_label_faults)


def _check_policy(policy: Part) -> None:
    _check_union(policy, ("basic", "gang"))
    gang = policy.below("gang")
    if policy.has("gang") and gang.needs("minCount") and gang.get("minCount") < 1:
        gang.invalid("minCount", "must be greater than or equal to 1")


def _check_claims(spec: Part, old: Tree | None) -> None:
    if not _changed(spec.tree, old, "resourceClaims"):
        return
    count = len(spec.get("resourceClaims") or ())
    if old is not None:
        spec.invalid("resourceClaims", _IMMUTABLE, None)
    if count > MAX_CLAIMS:
        spec.too_many("resourceClaims", count, MAX_CLAIMS)
    elif old is None:
        _check_unique(spec, "resourceClaims", _claim_value)
        for claim in spec.each("resourceClaims"):
            _check_union(claim, _CLAIM_ORDER[1:])
            claim.needs_text("name", dns_label_faults)
            for name in _CLAIM_ORDER[1:]:
                claim.given(name, subdomain_faults)


def _check_constraints(spec: Part, name: str) -> None:
    constraints = spec.below(name)
    count = len(constraints.get("topology") or ())
    if count > MAX_TOPOLOGY:
        constraints.too_many("topology", count, MAX_TOPOLOGY)
        return
    for constraint in constraints.each("topology"):
        constraint.needs_text("key", key_faults)


def _check_mode(spec: Part, name: str) -> None:
    if isinstance(spec.get(name), Mapping):  # v1beta1
        _check_union(spec.below(name), ("single", "all"))
    else:
        spec.choice(name, *DISRUPTION_MODES)


def _check_priority(spec: Part, name: str) -> None:
    if spec.get(name) > MAX_PRIORITY:
        spec.invalid(name, f"must be less than or equal to {MAX_PRIORITY}")


_FIELDS: Mapping[str, Callable[[Part, str], None]] = {
    "schedulingConstraints": _check_constraints,
    "disruptionMode": _check_mode,
    "priorityClassName": lambda spec, name: spec.check(name, subdomain_faults),
    "priority": _check_priority,
}


def _check_condition(condition: Part) -> None:
    reason = str(condition.get("reason") or "")
    condition.check("type", key_faults)
    condition.needs_choice("status", *CONDITION_STATUSES)
    if (condition.get("observedGeneration") or 0) < 0:
        condition.invalid("observedGeneration", "must be greater than or equal to zero")
    condition.needs("lastTransitionTime")
    if condition.needs("reason") and not _REASON.fullmatch(reason):
        condition.invalid("reason", _REASON_RULE)
    if len(reason) > MAX_REASON:
        condition.too_long("reason", MAX_REASON)
    if len(str(condition.get("message") or "").encode()) > MAX_MESSAGE:
        condition.too_long("message", MAX_MESSAGE)


# Single fields


def _may_check(spec: Part, old: Tree | None, name: str) -> bool:
    """Whether a field is new; an existing field must not change."""
    if not _changed(spec.tree, old, name):
        return False
    if old is not None:
        spec.invalid(name, _IMMUTABLE, None)
    return old is None


def _check_union(part: Part, members: Sequence[str]) -> None:
    """Refuse a union unless exactly one member is set."""
    found, choices = part.set_of(members), ", ".join(f"`{name}`" for name in members)
    if not found:
        part.invalid("", f"must specify one of: {choices}", "")
    elif len(found) > 1:
        shown = f"{{{', '.join(found)}}}"
        part.invalid("", f"must specify exactly one of: {choices}", shown)


def _check_unique(part: Part, field: str, shown: Callable[[Tree], dict[str, Any]]) -> None:
    """Refuse items with the name of an earlier item."""
    names: set[str] = set()
    for item in part.each(field):
        name = str(item.get("name") or "")
        if name in names:
            item.duplicate("", shown(item.tree))
        names.add(name)


def _claim_value(claim: Tree) -> dict[str, Any]:
    """A claim as messages show it."""
    return {key: claim[key] for key in _CLAIM_ORDER if claim.get(key) is not None}


def _template_value(template: Tree) -> dict[str, Any]:
    """A template as messages show it."""
    found = {key: template.get(key) for key in _TEMPLATE_ORDER}
    always = ("name", "schedulingPolicy", "schedulingConstraints")
    return {key: value for key, value in found.items() if key in always or value}


def _is_set(spec: Part, name: str) -> bool:
    """Whether a field has a value; an empty class name does not count."""
    return bool(spec.get(name)) if name == "priorityClassName" else spec.has(name)


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
