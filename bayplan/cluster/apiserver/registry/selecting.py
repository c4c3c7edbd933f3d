"""Selecting: label selectors and field selectors in query syntax.

Mirrors k8s.io/apimachinery/pkg/labels/selector.go and pkg/fields/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ....api.selectors import NODE_OPERATORS, Requirement
from ..store import Record
from .errors import bad_request
from .resources import ApiResource

Matches = Callable[[Record], bool]

_TERM = re.compile(
    r"\s*(?:(?P<not>!)\s*(?P<absent>[^\s!=<>(),]+)"
    r"|(?P<key>[^\s!=<>(),]+)\s*"
    r"(?:(?P<set>\b(?:in|notin)\b)\s*\((?P<values>[^()]*)\)"
    r"|(?P<op>==|=|!=|>|<)\s*(?P<value>[^\s!=<>(),]*))?)\s*(?:,|$)"
)
_SETS = {"in": "In", "notin": "NotIn"}
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_FIELD_TERM = re.compile(r"(?P<key>[^!=]+?)(?P<op>!=|==|=)(?P<value>.*)", re.DOTALL)


class FieldTerm(NamedTuple):
    """One condition on a field."""

    key: str
    value: str
    is_equal: bool


def parse_labels(text: str) -> list[Requirement]:
    """Parse a label selector; raises StatusError (400) when it is invalid."""
    found, place = [], 0
    while place < len(text.rstrip()):
        match = _TERM.match(text, place)
        if match is None:
            raise bad_request(f"unable to parse requirement: found {text[place:]!r}")
        requirement = _requirement(match)
        problem = requirement.parse_problem(NODE_OPERATORS)
        if problem is not None:
            raise bad_request(f"unable to parse requirement: {problem}")
        found.append(requirement)
        place = match.end()
    return found


def _requirement(match: re.Match[str]) -> Requirement:
    if match["not"]:
        return Requirement(key=match["absent"], operator="DoesNotExist")
    if match["set"]:
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(key=match["key"], operator=_SETS[match["set"]], values=values)
    if match["op"]:
        return Requirement(
            key=match["key"], operator=_OPERATORS[match["op"]], values=(match["value"],)
        )
    return Requirement(key=match["key"], operator="Exists")


def parse_fields(text: str) -> list[FieldTerm]:
    """Parse a field selector; raises StatusError (400) when it is invalid."""
    found = []
    for term in re.split(r"(?<!\\),", text):
        if not term:
            continue
        match = _FIELD_TERM.fullmatch(term)
        if match is None:
            raise bad_request(f"invalid field selector: {term!r}; can't understand it")
        value = re.sub(r"\\([,=\\])", r"\1", match["value"])
        found.append(FieldTerm(match["key"].strip(), value, match["op"] != "!="))
    return found


def make_matcher(resource: ApiResource, labels: str, fields: str) -> Matches | None:
    """A function that tells whether both selectors match an object; None: all match."""
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
    index = resource.field_index(key)
    return lambda record: (record.fields[index] == value) is is_equal


_KEY_FIELDS: Mapping[str, int] = {"metadata.namespace": 0, "metadata.name": 1}
