"""Affinity rules: faults of affinities, spread constraints, tolerations and taints.

Mirrors validateAffinity, validateTopologySpreadConstraints, ValidateTolerations and validateNodeTaints of
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..text.name_faults import dns_label_faults, value_faults
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from .label_rules import (
    key_causes,
    node_selector_causes,
    node_term_causes,
    selector_causes,
    text_causes,
)
from .security_rules import choice_causes

Tree = Mapping[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WEIGHT = "must be in the range 1-100"
_POSITIVE = "must be greater than zero"
_NO_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def affinity_causes(affinity: Tree | None, path: str) -> Iterator[Cause]:
    """Yield the faults of the affinities of a pod."""
    affinity = affinity or {}
    nodes, where = affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity"
    if nodes.get(REQUIRED) is not None:
        yield from node_selector_causes(nodes[REQUIRED], f"{where}.{REQUIRED}")
    for i, term in enumerate(nodes.get(PREFERRED) or ()):
        at = f"{where}.{PREFERRED}[{i}]"
        yield from _weight_causes(term, at)
        yield from node_term_causes(
            term.get("preference") or {}, f"{at}.preference", any_value=True
        )
    for field in ("podAffinity", "podAntiAffinity"):
        pods, where = affinity.get(field) or {}, f"{path}.{field}"
        for i, term in enumerate(pods.get(REQUIRED) or ()):
            yield from _pod_term_causes(term, f"{where}.{REQUIRED}[{i}]")
        for i, term in enumerate(pods.get(PREFERRED) or ()):
            at = f"{where}.{PREFERRED}[{i}]"
            yield from _weight_causes(term, at)
            yield from _pod_term_causes(term.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")


def _weight_causes(term: Tree, path: str) -> Iterator[Cause]:
    weight = term.get("weight") or 0
    if not 0 < weight <= 100:
        yield invalid_value(f"{path}.weight", weight, _WEIGHT)


def _pod_term_causes(term: Tree, path: str) -> Iterator[Cause]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from selector_causes(term.get(field), f"{path}.{field}")
    for name in term.get("namespaces") or ():
        yield from text_causes(name, dns_label_faults, f"{path}.namespace")
    yield from _label_key_causes(term, path)
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from key_causes(key, f"{path}.topologyKey")


def _label_key_causes(term: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the label keys of a term whose values are those of the pod."""
    selector = term.get("labelSelector")
    same, other = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            problem = "must not be specified when labelSelector is not set"
            yield forbidden_field(f"{path}.{field}", problem)
            continue
        for i, key in enumerate(keys):
            yield from key_causes(key, f"{path}.{field}[{i}]")
    used = set((selector or {}).get("matchLabels") or {})
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key")
        if key in same and key in used:
            problem = "exists in both matchLabelKeys and labelSelector"
            yield invalid_value(f"{path}[{same.index(key)}]", key, problem)
        used.add(key)
    for i, key in enumerate(same):
        if key in other:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid_value(f"{path}.matchLabelKeys[{i}]", key, problem)


def spread_causes(constraints: Sequence[Tree], path: str) -> Iterator[Cause]:
    """Yield the faults of spread constraints."""
    for i, constraint in enumerate(constraints):
        where = f"{path}[{i}]"
        skew, key = constraint.get("maxSkew") or 0, constraint.get("topologyKey") or ""
        action = constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid_value(f"{where}.maxSkew", skew, _POSITIVE)
        if not key:
            yield required(f"{where}.topologyKey", "can not be empty")
        actions = ("DoNotSchedule", "ScheduleAnyway")
        if action not in actions:
            yield unsupported_value(f"{where}.whenUnsatisfiable", action, actions)
        others = [
            (one.get("topologyKey"), one.get("whenUnsatisfiable")) for one in constraints[i + 1 :]
        ]
        if (key, action) in others:
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from _domain_causes(constraint.get("minDomains"), action, f"{where}.minDomains")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from choice_causes(constraint, field, ("Honor", "Ignore"), where)
        yield from _label_key_causes(constraint, where)
        yield from selector_causes(constraint.get("labelSelector"), f"{where}.labelSelector")


def _domain_causes(count: int | None, action: str, path: str) -> Iterator[Cause]:
    if count is None:
        return
    if count <= 0:
        yield invalid_value(path, count, _POSITIVE)
    if action != "DoNotSchedule":
        problem = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid_value(path, count, problem)


def toleration_causes(tolerations: Sequence[Tree], path: str) -> Iterator[Cause]:
    """Yield the faults of tolerations."""
    for i, toleration in enumerate(tolerations):
        where, key = f"{path}[{i}]", toleration.get("key") or ""
        operator, value = toleration.get("operator") or "", toleration.get("value") or ""
        effect = toleration.get("effect") or ""
        if key:
            yield from key_causes(key, f"{where}.key")
        elif operator != "Exists":
            yield invalid_value(f"{where}.operator", operator, _NO_KEY)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            problem = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid_value(f"{where}.effect", effect, problem)
        if operator in ("", "Equal"):
            if value_faults(value):
                problem = ";".join(value_faults(value))
                yield invalid_value(f"{where}.operator", value, problem)
        elif operator == "Exists":
            if value:
                problem = "value must be empty when `operator` is 'Exists'"
                yield invalid_value(f"{where}.operator", value, problem)
        else:
            bounds = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
            yield unsupported_value(f"{where}.operator", operator, ("Equal", "Exists", *bounds))
        if effect and effect not in EFFECTS:
            yield unsupported_value(f"{where}.effect", effect, EFFECTS)


def taint_causes(taints: Sequence[Tree], path: str) -> Iterator[Cause]:
    """Yield the faults of the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        where, key = f"{path}[{i}]", taint.get("key") or ""
        value, effect = taint.get("value") or "", taint.get("effect") or ""
        yield from key_causes(key, f"{where}.key")
        if value_faults(value):
            yield invalid_value(f"{where}.value", value, ";".join(value_faults(value)))
        if not effect:
            yield required(f"{where}.effect")
        elif effect not in EFFECTS:
            yield unsupported_value(f"{where}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            shown = {
                "Key": key,
                "Value": value,
                "Effect": effect,
                "TimeAdded": taint.get("timeAdded"),
            }
            found = duplicate(where, shown)
            detail = "taints must be unique by key and effect pair"
            yield found._replace(message=f"{found.message}: {detail}")
        seen.add((key, effect))
