"""PromQL: which metrics and labels an expression names. Enough of the grammar for deploy/monitoring, not all of it."""

import re
from typing import NamedTuple

STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
DURATION = re.compile(r"\[[^\]]*\]")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
MATCHERS = re.compile(r"\{([^}]*)\}")
LABEL_BEFORE_OPERATOR = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
NAME = re.compile(r"(?<![\w:.])([A-Za-z_:][\w:]*)(\s*\()?")
WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}


class Names(NamedTuple):
    """The metrics and labels of an expression."""

    metrics: set[str]
    labels: set[str]


def names_in(expression: str) -> Names:
    """The metrics, and the labels in matchers and groupings; functions and operators are left out."""
    text = DURATION.sub("", STRING.sub('""', expression))
    labels = {
        label
        for matchers in MATCHERS.findall(text)
        for label in LABEL_BEFORE_OPERATOR.findall(matchers)
    }
    text = MATCHERS.sub("", text)
    for group in GROUPING.findall(text):
        labels |= set(re.findall(r"\w+", group))
    text = GROUPING.sub("", text)
    metrics = {name for name, call in NAME.findall(text) if not call and name.lower() not in WORDS}
    return Names(metrics, labels)
