"""Query selectors: label selectors and field selectors in query syntax.

Mirrors k8s.io/apimachinery/pkg/labels/selector.go and pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...api.selectors import Requirement, parse_label_query
from ..store.records import Record
from .resource_table import ApiResource, field_text
from .status_errors import bad_request

Matches = Callable[[Record], bool]
NAME = "metadata.name"

_FIELD_TERMS = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL)
_FIELD_TERM = re.compile(r"(?P<key>.*?)(?P<op>!=|==|=)(?P<value>.*)", re.DOTALL)
_FIELD_VALUE = re.compile(r"(?:[^\\,=]|\\[\\,=])*")


class FieldTerm(NamedTuple):
    """One condition on a field."""

    key: str
    value: str
    is_equal: bool


def parse_labels(text: str) -> list[Requirement]:
    """Parse a label selector; raises StatusError (400) when it is invalid."""
    try:
        return parse_label_query(text)
    except ValueError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


def parse_fields(text: str) -> list[FieldTerm]:
    """Parse a field selector, sorted by its terms; raises StatusError (400) when it is invalid."""
    found = []
    for term in sorted(_FIELD_TERMS.findall(text)):
        match = _FIELD_TERM.fullmatch(term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        value = match["value"]
        if not _FIELD_VALUE.fullmatch(value):
            problem = "expected each of \\, comma and = in a value after a \\"
            raise bad_request(f"invalid field selector: '{text}'; {problem}")
        value = re.sub(r"\\(.)", r"\1", value)
        found.append(FieldTerm(match["key"], value, match["op"] != "!="))
    return found


def make_matcher(resource: ApiResource, labels: str, fields: str) -> Matches | None:
    """A predicate that is true if both selectors match an object; None if all match."""
    requirements = parse_labels(labels)
    conditions = [_field_condition(resource, term, fields) for term in parse_fields(fields)]
    if not requirements and not conditions:
        return None

    def matches(record: Record) -> bool:
        return all(requirement.matches(record.labels) for requirement in requirements) and all(
            condition(record) for condition in conditions
        )

    return matches


def _field_condition(resource: ApiResource, term: FieldTerm, selector: str) -> Matches:
    key, value, is_equal = term
    if key in _KEY_FIELDS:
        part = _KEY_FIELDS[key]
        return lambda record: (record.key[part] == value) is is_equal
    if key not in resource.fields:
        about = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        raise bad_request(
            f'Unable to find "{about}" that match label selector "", field selector "{selector}":'
            f" field label not supported: {key}"
        )
    if resource.custom is not None:
        path = resource.custom.fields[key]
        return lambda record: (field_text("", path.first(record.decode())) == value) is is_equal
    index = resource.field_index(key)
    return lambda record: (field_text(key, record.fields[index]) == value) is is_equal


_KEY_FIELDS: Mapping[str, int] = {"metadata.namespace": 0, NAME: 1}
