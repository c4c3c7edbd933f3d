"""Plain part: parts of answers whose plain data are some of their attributes."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import Any, ClassVar

_CAPITAL = re.compile("[A-Z]")


class PlainPart:
    """A part of an answer, as plain data the attributes that `PLAIN` names, in its order.

    The names are those of JSON, `atOnce` for `at_once`, or `name=attribute`. With a ? an empty value is null.
    """

    __slots__ = ()
    PLAIN: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as docs/output.md describes it."""
        found = ((*entry, getattr(self, entry[1])) for entry in _entries(self.PLAIN))
        return {
            name: None if is_optional and not value else _plain(value)
            for name, _, is_optional, value in found
        }


@cache
def _entries(names: str) -> list[tuple[str, str, bool]]:
    """The name, the attribute, and whether it may be null, of each entry."""
    entries = []
    for entry in names.split():
        name, _, attribute = entry.removesuffix("?").partition("=")
        written = _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)
        entries.append((name, attribute or written, entry.endswith("?")))
    return entries


def _plain(value: Any) -> Any:
    if isinstance(value, PlainPart):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return dict(value)
    return value.value if isinstance(value, Enum) else value
