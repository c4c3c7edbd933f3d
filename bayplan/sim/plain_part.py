"""Plain part: results whose plain data are some of their attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct, to_builtins

from ..api.text.quantity import format_quantity
from .totals import TotalsChange

_CAPITAL = re.compile("[A-Z]")
_ENTRY = re.compile(r"(?P<name>\w+)(?:=(?P<attribute>\w+))?(?P<mark>.*)")


class PlainPart:
    """A result, or a part of one, whose plain data are the attributes that `PLAIN` lists, in its order.

    The names are those of JSON, `atOnce` for `at_once`, or `name=attribute`; a method is called. With a ? an empty
    value is null, with a ~ numbers are rounded to the millionth, with a # they are quantities of the `resource` that
    the part is about, or of those that are its keys. `refusals@reason,nodes` has a row for each entry of a mapping, of
    a Counter the most frequent first.
    """

    __slots__ = ()
    PLAIN: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        resource = getattr(self, "resource", "")
        return {
            entry.name: _plain(getattr(self, entry.attribute), entry.mark, resource)
            for entry in _entries(self.PLAIN)
        }


class _Entry(NamedTuple):
    """A name, its attribute, and the mark after it, which may be empty."""

    name: str
    attribute: str
    mark: str


@cache
def _entries(names: str) -> list[_Entry]:
    found = filter(None, map(_ENTRY.fullmatch, names.split()))
    return [_Entry(m["name"], m["attribute"] or attribute_of(m["name"]), m["mark"]) for m in found]


def attribute_of(name: str) -> str:
    """`at_once` for `atOnce`."""
    return _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)


def _plain(value: Any, mark: str = "", resource: str = "") -> Any:
    if callable(value):
        value = value()
    if mark[:1] == "@":
        names = mark[1:].split(",")
        entries = value.most_common() if isinstance(value, Counter) else value.items()
        return [dict(zip(names, map(_plain, entry), strict=True)) for entry in entries]
    if mark == "#" and isinstance(value, Mapping):
        return {name: format_quantity(amount, name) for name, amount in value.items()}
    if mark == "#":
        return "-" * (value < 0) + format_quantity(abs(value), resource)
    if mark == "?" and not value:
        return None
    if mark == "~" and isinstance(value, float):
        return round(value, 6)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, TotalsChange):
        return value.to_list()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Struct):
        return to_builtins(value)
    return value.value if isinstance(value, Enum) else value
