"""Label rules: faults of label keys and values, label selectors and node selectors.

Mirrors staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go and the node selectors of
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults, value_faults
from ..text.names import is_label_value, is_qualified_name
from .field_causes import Cause, duplicate, forbidden_field, invalid_value, required

Tree = Mapping[str, Any]
Faults = Callable[[str], tuple[str, ...]]

_LISTED = "must be specified when `operator` is 'In' or 'NotIn'"
_UNLISTED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_NO_OPERATOR = "not a valid selector operator"
_NO_MATCH = "`selector` does not match template `labels`"


def text_causes(text: str, faults: Faults, path: str) -> Iterator[Cause]:
    """Yield the faults that a rule finds in a text."""
    for fault in faults(text):
        yield invalid_value(path, text, fault)


def name_causes_of(tree: Tree, field: str, faults: Faults, path: str) -> Iterator[Cause]:
    """Yield the faults of a text that may be left out."""
    if tree.get(field):
        yield from text_causes(str(tree[field]), faults, f"{path}.{field}")


def key_causes(key: str, path: str) -> Iterator[Cause]:
    """Yield the faults of a label key."""
    if not is_qualified_name(key):
        yield from text_causes(key, key_faults, path)


def value_causes(value: str, path: str) -> Iterator[Cause]:
    """Yield the faults of a label value."""
    if not is_label_value(value):
        yield from text_causes(value, value_faults, path)


def labels_causes(labels: Mapping[str, str] | None, path: str) -> Iterator[Cause]:
    """Yield the faults of labels; the path is that of the map, for keys and values."""
    for key, value in (labels or {}).items():
        yield from key_causes(key, path)
        yield from value_causes(value or "", path)


def annotations_causes(annotations: Mapping[str, str] | None, path: str) -> Iterator[Cause]:
    """Yield the faults of the keys of annotations, which are compared in lower case."""
    for key in annotations or ():
        for fault in () if is_qualified_name(key.lower()) else key_faults(key.lower()):
            yield invalid_value(path, key, fault)


def selector_causes(selector: Tree | None, path: str) -> Iterator[Cause]:
    """Yield the faults of a label selector."""
    if selector is None:
        return
    yield from labels_causes(selector.get("matchLabels"), f"{path}.matchLabels")
    for i, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{i}]"
        operator, values = requirement.get("operator") or "", requirement.get("values") or ()
        yield from _operator_causes(operator, values, where)
        yield from key_causes(requirement.get("key") or "", f"{where}.key")
        for j, value in enumerate(values):
            yield from value_causes(value, f"{where}.values[{j}]")


def _operator_causes(operator: str, values: Iterable[str], path: str) -> Iterator[Cause]:
    """Yield the faults of an operator, with the values that it needs."""
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", _LISTED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden_field(f"{path}.values", _UNLISTED)
    else:
        yield invalid_value(f"{path}.operator", operator, _NO_OPERATOR)


def node_selector_causes(selector: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of a node selector, which must have a term."""
    if not selector.get("nodeSelectorTerms"):
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for i, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        yield from node_term_causes(term, f"{path}.nodeSelectorTerms[{i}]")


def node_term_causes(term: Tree, path: str, any_value: bool = False) -> Iterator[Cause]:
    """Yield the faults of a term of a node selector; its values are not checked with `any_value`."""
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{i}]"
        operator, values = requirement.get("operator") or "", requirement.get("values") or ()
        if operator in ("Gt", "Lt"):
            if len(values) != 1:
                problem = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{where}.values", problem)
        else:
            yield from _operator_causes(operator, values, where)
        yield from key_causes(requirement.get("key") or "", f"{where}.key")
        for j, value in enumerate(() if any_value else values):
            yield from value_causes(value, f"{where}.values[{j}]")
    for i, requirement in enumerate(term.get("matchFields") or ()):
        yield from _node_field_causes(requirement, f"{path}.matchFields[{i}]")


def _node_field_causes(requirement: Tree, path: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield invalid_value(f"{path}.operator", operator, _NO_OPERATOR)
    elif len(values) != 1:
        listed = "`operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", f"must be only one value when {listed}")
    key = requirement.get("key") or ""
    if key != "metadata.name":
        yield invalid_value(f"{path}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        yield from text_causes(value, subdomain_faults, f"{path}.values[{i}]")


def topology_causes(term: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of a term of the topologies that a storage class allows."""
    keys: set[str] = set()
    for i, requirement in enumerate(term.get("matchLabelExpressions") or ()):
        where = f"{path}.matchLabelExpressions[{i}]"
        key, values = requirement.get("key") or "", requirement.get("values") or ()
        if not values:
            yield required(f"{where}.values")
        for j, value in enumerate(values):
            if value in values[:j]:
                yield duplicate(f"{where}.values[{j}]", value)
        yield from key_causes(key, f"{where}.key")
        if key in keys:
            yield duplicate(f"{where}.key", key)
        keys.add(key)


def selects(selector: Tree, labels: Mapping[str, str]) -> bool:
    """Whether a valid label selector selects an object with these labels."""
    pairs = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in pairs.items()) and all(
        _meets(requirement, labels) for requirement in selector.get("matchExpressions") or ()
    )


def _meets(requirement: Tree, labels: Mapping[str, str]) -> bool:
    key, operator = requirement.get("key"), requirement.get("operator")
    if operator == "In":
        return labels.get(key or "") in (requirement.get("values") or ())
    if operator == "NotIn":
        return labels.get(key or "") not in (requirement.get("values") or ())
    return (key in labels) == (operator == "Exists")


def unmatched(path: str, labels: Any) -> Cause:
    """The labels of a template that its workload does not select."""
    return invalid_value(f"{path}.metadata.labels", labels, _NO_MATCH)


__all__ = [
    "annotations_causes",
    "dns_label_faults",
    "key_causes",
    "labels_causes",
    "name_causes_of",
    "node_selector_causes",
    "node_term_causes",
    "selector_causes",
    "selects",
    "subdomain_faults",
    "text_causes",
    "topology_causes",
    "unmatched",
    "value_causes",
]
