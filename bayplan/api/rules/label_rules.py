"""Label rules: faults of label keys and values, label selectors and node selectors.

Mirrors staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go and the node selectors of
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..selectors import LabelSelector
from ..text.name_faults import key_faults, subdomain_faults, value_faults
from ..wire.nulls import without_nulls
from .field_causes import Part, Tree

_LISTED = "must be specified when `operator` is 'In' or 'NotIn'"
_UNLISTED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_NO_OPERATOR = "not a valid selector operator"


def check_labels(part: Part, name: str) -> None:
    """Check labels; the path of a fault is that of the map, for keys and values."""
    for key, value in (part.get(name) or {}).items():
        part.check(name, key_faults, key)
        part.check(name, value_faults, value or "")


def check_annotations(part: Part, name: str) -> None:
    """Check the keys of annotations, which are compared in lower case."""
    for key in part.get(name) or ():
        part.check(name, lambda key: key_faults(key.lower()), key)


def check_selector(selector: Part) -> None:
    """Check a label selector."""
    check_labels(selector, "matchLabels")
    for requirement in selector.each("matchExpressions"):
        _check_operator(requirement)
        _check_key_and_values(requirement)


def _check_operator(requirement: Part) -> None:
    """Check an operator, with the values that it needs."""
    operator = requirement.get("operator") or ""
    if operator in ("In", "NotIn"):
        requirement.needs("values", problem=_LISTED)
    elif operator not in ("Exists", "DoesNotExist"):
        requirement.invalid("operator", _NO_OPERATOR, operator)
    elif requirement.get("values"):
        requirement.forbidden("values", _UNLISTED)


def _check_key_and_values(requirement: Part, any_value: bool = False) -> None:
    requirement.check("key", key_faults)
    for name, value in () if any_value else requirement.items("values"):
        requirement.check(name, value_faults, value)


def check_node_selector(selector: Part) -> None:
    """Check a node selector, which must have a term."""
    selector.needs("nodeSelectorTerms", problem="must have at least one node selector term")
    for term in selector.each("nodeSelectorTerms"):
        check_node_term(term)


def check_node_term(term: Part, any_value: bool = False) -> None:
    """Check a term of a node selector; not its values with `any_value`."""
    for requirement in term.each("matchExpressions"):
        if requirement.get("operator") not in ("Gt", "Lt"):
            _check_operator(requirement)
        elif len(requirement.get("values") or ()) != 1:
            problem = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            requirement.required("values", problem)
        _check_key_and_values(requirement, any_value)
    for requirement in term.each("matchFields"):
        _check_node_field(requirement)


def _check_node_field(requirement: Part) -> None:
    operator, key = requirement.get("operator") or "", requirement.get("key") or ""
    if operator not in ("In", "NotIn"):
        requirement.invalid("operator", _NO_OPERATOR, operator)
    elif len(requirement.get("values") or ()) != 1:
        listed = "`operator` is 'In' or 'NotIn' for node field selector"
        requirement.required("values", f"must be only one value when {listed}")
    if key != "metadata.name":
        requirement.invalid("key", "not a valid field selector key", key)
        return
    for name, value in requirement.items("values"):
        requirement.check(name, subdomain_faults, value)


def selects(selector: Tree, labels: Mapping[str, str]) -> bool:
    """Whether a valid label selector selects an object with these labels."""
    return msgspec.convert(without_nulls(selector), LabelSelector).matches(labels)


def refuse_unselected(workload: Part, labels: Any) -> None:
    """Refuse the labels of a template that its workload does not select."""
    problem = "`selector` does not match template `labels`"
    workload.invalid("template.metadata.labels", problem, labels)
