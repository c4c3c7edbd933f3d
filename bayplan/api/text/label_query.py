"""Label query: label selectors in the syntax of `kubectl -l`, such as `zone=a,tier in (web,api),!spot`.

Mirrors k8s.io/apimachinery/pkg/labels/selector.go.
"""

from __future__ import annotations

import re

from ..selectors import NODE_OPERATORS, Requirement

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
