"""Selectors: label selectors and node selectors with their operators.

Mirrors staging/src/k8s.io/apimachinery/pkg/labels/selector.go and
staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from ..errors import InputError, one_of
from .meta import Wire
from .text.name_faults import is_label_value, is_qualified_name

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")
NAME_FIELD = "metadata.name"

Problem: TypeAlias = tuple[str, str]
"""A fault in an object: the path of the field, and the fault in words."""

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64 = range(-(2**63), 2**63)


class Requirement(Wire, frozen=True):
    """One condition on the value of one key, of a label selector or of a node selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the condition."""
        return self.matches_value(labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """Whether a `value` of the key meets the condition; None for an absent key."""
        match self.operator:
            case "In":
                return value is not None and value in (self.values or ())
            case "NotIn":
                return value is None or value not in (self.values or ())
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt":
                return self._bounds(value) > 0
            case "Lt":
                return self._bounds(value) < 0
            case _:
                return False

    def canonical(self) -> Requirement:
        """The same condition with sorted, unique values."""
        return Requirement(
            key=self.key, operator=self.operator, values=tuple(sorted(set(self.values or ())))
        )

    def parse_problem(self, operators: tuple[str, ...]) -> str | None:
        """Reason why this is not a valid requirement, or None."""
        values = self.values or ()
        if self.operator not in operators:
            return f"operator: expected {one_of(operators)}; got {quote(self.operator)}"
        if not is_qualified_name(self.key):
            return f"key: expected a label key; got {quote(self.key)}"
        if self.operator in ("In", "NotIn") and not values:
            return f"values: expected at least one for operator {self.operator}; got none"
        if self.operator in ("Exists", "DoesNotExist") and values:
            return f"values: expected none for operator {self.operator}; got {len(values)}"
        if self.operator in ("Gt", "Lt") and (len(values) != 1 or parse_integer(values[0]) is None):
            return f"values: expected one integer for operator {self.operator}"
        bad = next((value for value in values if not is_label_value(value)), None)
        return None if bad is None else f"values: expected label values; got {quote(bad)}"

    def _bounds(self, value: str | None) -> int:
        """Sign of `value` minus the bound; 0, which meets neither Gt nor Lt, if not comparable."""
        values = self.values or ()
        number = None if value is None else parse_integer(value)
        bound = parse_integer(values[0]) if len(values) == 1 else None
        if number is None or bound is None:
            return 0
        return (number > bound) - (number < bound)


class LabelSelector(Wire, frozen=True, eq=False, dict=True, gc=True):
    """Selects objects by their labels. Empty selects all; a missing selector (None) selects nothing.

    Two selectors are equal when their requirements are, in any order.
    """

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None

    @classmethod
    def of(cls, labels: Mapping[str, str] | None) -> LabelSelector:
        """The selector for exactly these labels, as in a Service."""
        return cls(match_labels=dict(labels or {}))

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """All conditions in canonical order; `match_labels` become In with one value."""
        pairs = (self.match_labels or {}).items()
        found = {Requirement(key=key, operator="In", values=(value,)) for key, value in pairs}
        found.update(requirement.canonical() for requirement in self.match_expressions or ())
        return tuple(sorted(found, key=lambda r: (r.key, r.operator, r.values or ())))

    @property
    def is_empty(self) -> bool:
        """Whether it has no condition, and so selects everything."""
        return not self.match_labels and not self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects an object with `labels`."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    @cached_property
    def is_usable(self) -> bool:
        """Whether every condition is valid."""
        return next(self.problems(), None) is None

    def with_requirement(self, key: str, operator: str, values: Iterable[str]) -> LabelSelector:
        """This selector with one more condition."""
        added = Requirement(key=key, operator=operator, values=tuple(values))
        return LabelSelector(
            match_labels=self.match_labels,
            match_expressions=(*(self.match_expressions or ()), added),
        )

    def problems(self) -> Iterator[Problem]:
        """Yield the faults that make the selector unusable, with the path below the selector."""
        for key, value in (self.match_labels or {}).items():
            text = Requirement(key=key, operator="In", values=(value,)).parse_problem(("In",))
            if text is not None:
                yield f"matchLabels.{key}", text.partition(": ")[2]
        for i, requirement in enumerate(self.match_expressions or ()):
            text = requirement.parse_problem(LABEL_OPERATORS)
            if text is not None:
                field, _, fault = text.partition(": ")
                yield f"matchExpressions[{i}].{field}", fault

    def validate(self) -> None:
        """Raise InputError if the selector is unusable."""
        for path, fault in self.problems():
            raise InputError(f"{path}: {fault}")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, LabelSelector) and self.requirements == other.requirements

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct has its own

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.requirements)


class NodeSelectorTerm(Wire, frozen=True, dict=True, gc=True):
    """Conditions on a node, all of which must hold. The empty term selects nothing."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None

    @property
    def expressions(self) -> tuple[Requirement, ...]:
        """The conditions on labels."""
        return self.match_expressions or ()

    @property
    def fields(self) -> tuple[Requirement, ...]:
        """The conditions on the node's fields, that is, on its name."""
        return self.match_fields or ()

    @property
    def is_empty(self) -> bool:
        return not self.match_expressions and not self.match_fields

    @cached_property
    def is_usable(self) -> bool:
        """Whether the term can select a node: not empty, and every condition is valid."""
        return not self.is_empty and next(self.problems(), None) is None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether the term selects a node with `labels` and `name`; an unusable term does not."""
        return (
            self.is_usable
            and all(requirement.matches(labels) for requirement in self.expressions)
            and self.matches_name(name)
        )

    def matches_name(self, name: str) -> bool:
        """Whether the conditions on fields hold for a node called `name`."""
        if not name:
            return True
        return all(r.matches_value(name if r.key == NAME_FIELD else "") for r in self.fields)

    def problems(self) -> Iterator[Problem]:
        """Yield the faults that make the term unusable, with the path below the term."""
        for i, requirement in enumerate(self.expressions):
            text = requirement.parse_problem(NODE_OPERATORS)
            if text is not None:
                field, _, fault = text.partition(": ")
                yield f"matchExpressions[{i}].{field}", fault
        for i, requirement in enumerate(self.fields):
            path = f"matchFields[{i}]"
            if requirement.operator not in FIELD_OPERATORS:
                fault = f"expected {one_of(FIELD_OPERATORS)}; got {quote(requirement.operator)}"
                yield f"{path}.operator", fault
            elif len(requirement.values or ()) != 1:
                yield f"{path}.values", f"expected one value; got {len(requirement.values or ())}"


class NodeSelector(Wire, frozen=True):
    """Alternatives: a node is selected when one of the terms selects it."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None

    @property
    def terms(self) -> tuple[NodeSelectorTerm, ...]:
        return self.node_selector_terms or ()

    @property
    def usable_terms(self) -> tuple[NodeSelectorTerm, ...]:
        """The usable terms; the others are skipped."""
        return tuple(term for term in self.terms if term.is_usable)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with `labels` and `name` is selected."""
        return any(term.matches(labels, name) for term in self.terms)

    def problems(self) -> Iterator[Problem]:
        """Yield the faults that make terms unusable, with the path below the selector."""
        for i, term in enumerate(self.terms):
            for path, fault in term.problems():
                yield f"nodeSelectorTerms[{i}].{path}", fault


def matches_map(wanted: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Whether `labels` contain every pair of `wanted`, as a pod's nodeSelector requires."""
    return all(labels.get(key) == value for key, value in (wanted or {}).items())


def parse_integer(text: str) -> int | None:
    """A decimal 64-bit integer, or None."""
    if not _INTEGER.fullmatch(text) or len(text) > 100:
        return None
    number = int(text)
    return number if number in _INT64 else None


def quote(text: str) -> str:
    """The text as in JSON, truncated when long."""
    return f'"{text}"' if len(text) <= 80 else f'"{text[:77]}..."'


_TERM = re.compile(
    r"\s*(?:(?P<not>!)\s*(?P<absent>[^\s!=<>(),]+)"
    r"|(?P<key>[^\s!=<>(),]+)\s*"
    r"(?:(?P<set>\b(?:in|notin)\b)\s*\((?P<values>[^()]*)\)"
    r"|(?P<op>==|=|!=|>|<)\s*(?P<value>[^\s!=<>(),]*))?)\s*(?:,|$)"
)
_SETS = {"in": "In", "notin": "NotIn"}
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}


def parse_label_query(text: str) -> list[Requirement]:
    """The conditions of a label selector, all of which must be met; raises ValueError when it is invalid."""
    found, place = [], 0
    while place < len(text.rstrip()):
        match = _TERM.match(text, place)
        if match is None:
            raise ValueError(f"found {text[place:]!r}")
        requirement = _requirement(match)
        problem = requirement.parse_problem(NODE_OPERATORS)
        if problem is not None:
            raise ValueError(problem)
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


_SET_TEXT = {"In": "{} in ({})", "NotIn": "{} notin ({})", "DoesNotExist": "!{}"}


def label_query(selector: Mapping[str, Any] | None) -> str:
    """A label selector, or a map of labels, in the syntax of queries, by key."""
    given = selector or {}
    labels = (
        given.get("matchLabels") if given.keys() & {"matchLabels", "matchExpressions"} else given
    )
    found = [(str(key), f"{key}={value}") for key, value in (labels or {}).items()]
    for one in given.get("matchExpressions") or ():
        values = ",".join(sorted(one.get("values") or ()))
        found.append((one["key"], _SET_TEXT.get(one["operator"], "{}").format(one["key"], values)))
    return ",".join(text for _, text in sorted(found))
