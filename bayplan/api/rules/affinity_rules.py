"""Affinity rules: faults of affinities, spread constraints, tolerations and taints.

Mirrors validateAffinity, validateTopologySpreadConstraints, ValidateTolerations and validateNodeTaints of
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from ..text.name_faults import dns_label_faults, key_faults, value_faults
from .field_causes import Part, duplicate
from .label_rules import check_node_selector, check_node_term, check_selector

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POSITIVE = "must be greater than zero"
_NO_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def check_affinity(affinity: Part) -> None:
    """Check the affinities of a pod."""
    nodes = affinity.below("nodeAffinity")
    if nodes.has(REQUIRED):
        check_node_selector(nodes.below(REQUIRED))
    for term in nodes.each(PREFERRED):
        _check_weight(term)
        check_node_term(term.below("preference"), any_value=True)
    for field in ("podAffinity", "podAntiAffinity"):
        pods = affinity.below(field)
        for term in pods.each(REQUIRED):
            _check_pod_term(term)
        for term in pods.each(PREFERRED):
            _check_weight(term)
            _check_pod_term(term.below("podAffinityTerm"))


def _check_weight(term: Part) -> None:
    weight = term.get("weight") or 0
    if not 0 < weight <= 100:
        term.invalid("weight", "must be in the range 1-100", weight)


def _check_pod_term(term: Part) -> None:
    for field in ("labelSelector", "namespaceSelector"):
        check_selector(term.below(field))
    for name in term.get("namespaces") or ():
        term.check("namespace", dns_label_faults, name)
    _check_label_keys(term)
    term.needs("topologyKey", problem="can not be empty")
    term.check("topologyKey", key_faults)


def _check_label_keys(term: Part) -> None:
    """Check the label keys of a term whose values are those of the pod."""
    selector = term.get("labelSelector")
    same, other = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(field) and selector is None:
            term.forbidden(field, "must not be specified when labelSelector is not set")
            continue
        for name, key in term.items(field):
            term.check(name, key_faults, key)
    used = set((selector or {}).get("matchLabels") or {})
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key")
        if key in same and key in used:
            problem = "exists in both matchLabelKeys and labelSelector"
            term.invalid(f"[{same.index(key)}]", problem, key)
        used.add(key)
    for name, key in term.items("matchLabelKeys"):
        if key in other:
            term.invalid(name, "exists in both matchLabelKeys and mismatchLabelKeys", key)


def check_spreads(spec: Part) -> None:
    """Check the spread constraints of a pod."""
    constraints = list(spec.each("topologySpreadConstraints"))
    pairs = [(one.get("topologyKey"), one.get("whenUnsatisfiable")) for one in constraints]
    for i, one in enumerate(constraints):
        skew, key = one.get("maxSkew") or 0, one.get("topologyKey") or ""
        action, domains = one.get("whenUnsatisfiable") or "", one.get("minDomains")
        if skew <= 0:
            one.invalid("maxSkew", _POSITIVE, skew)
        one.needs("topologyKey", problem="can not be empty")
        one.needs_choice("whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway")
        if (key, action) in pairs[i + 1 :]:
            one.duplicate("{topologyKey, whenUnsatisfiable}", f"{{{key}, {action}}}")
        if domains is not None and domains <= 0:
            one.invalid("minDomains", _POSITIVE)
        if domains is not None and action != "DoNotSchedule":
            only = "can only use minDomains if whenUnsatisfiable=DoNotSchedule"
            one.invalid("minDomains", f"{only}, not {action}")
        one.choice("nodeAffinityPolicy", "Honor", "Ignore")
        one.choice("nodeTaintsPolicy", "Honor", "Ignore")
        _check_label_keys(one)
        check_selector(one.below("labelSelector"))


def check_tolerations(part: Part) -> None:
    """Check the tolerations of a pod, or of a class of pods."""
    for one in part.each("tolerations"):
        operator, value = one.get("operator") or "", one.get("value") or ""
        effect = one.get("effect") or ""
        if one.get("key"):
            one.check("key", key_faults)
        elif operator != "Exists":
            one.invalid("operator", _NO_KEY, operator)
        if one.has("tolerationSeconds") and effect != "NoExecute":
            problem = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            one.invalid("effect", problem, effect)
        if operator in ("", "Equal"):
            if value_faults(value):
                one.invalid("operator", ";".join(value_faults(value)), value)
        elif operator == "Exists":
            if value:
                one.invalid("operator", "value must be empty when `operator` is 'Exists'", value)
        else:
            bounds = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
            one.unsupported("operator", ("Equal", "Exists", *bounds))
        if effect:
            one.choice("effect", *EFFECTS)


def check_taints(node: Part) -> None:
    """Check the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for taint in node.each("taints"):
        key, value = taint.get("key") or "", taint.get("value") or ""
        effect = taint.get("effect") or ""
        taint.check("key", key_faults)
        if value_faults(value):
            taint.invalid("value", ";".join(value_faults(value)))
        if taint.needs("effect"):
            taint.choice("effect", *EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect}
            found = duplicate(taint.path, {**shown, "TimeAdded": taint.get("timeAdded")})
            detail = "taints must be unique by key and effect pair"
            node.causes.append(found._replace(message=f"{found.message}: {detail}"))
        seen.add((key, effect))
