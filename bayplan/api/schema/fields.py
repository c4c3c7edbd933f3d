"""Fields: the names and types of the fields of Kubernetes objects, and how lists of them are merged.

`fields.txt` has one type per line: its name, then its fields as `name:type`. A name with `*` is required. A type is a
scalar, another type, `[]` before the type of the elements of a list, or `{}` before that of the values of a map. It
may be followed by `!key` (a strategic merge patch merges the list by that key; without key: as a set), `^` (the patch
says which keys are kept), `#keys` (server-side apply tells elements apart by these keys; without keys: as a set), `=`
(server-side apply takes the value as a whole), and at the end the number of the field in protocol buffers, `@4`, then
`?` when a zero value differs from an absent one, and `~` when the field is written even if it is not set. `+2:type` is
a message of its own in protocol buffers, while its fields are fields of the type itself in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pkgutil import get_data
from typing import NamedTuple

_TEXTS = ("string", "bytes", "time", "microtime")
_NUMBERS = ("quantity", "intstr", "int32", "int64", "number")
SCALARS = frozenset({*_TEXTS, *_NUMBERS, "bool", "any", "json"})
"""`any` is an object of any kind, `json` any value."""
_FIELD = re.compile(
    r"(?P<name>[^:*]+)(?P<required>\*?):(?P<type>[^!^#=@?~]+)"
    r"(?:!(?P<merge>[^^#=@?~]*))?(?P<retain>\^?)(?:#(?P<keys>[^=@?~]*))?(?P<atomic>=?)"
    r"(?:@(?P<number>\d+))?(?P<pointer>\??)(?P<written>~?)"
)
_INLINE = re.compile(r"\+(?P<number>\d+):(?P<type>.+)")


class FieldType(NamedTuple):
    """The type of a value: `form` is "list", "map", "struct" or "scalar"."""

    form: str
    name: str = ""
    """Name of a struct or scalar."""
    item: FieldType | None = None
    """Type of the elements of a list, or of the values of a map."""


class Field(NamedTuple):
    """One field of a type."""

    name: str
    type: FieldType
    is_required: bool = False
    merge_key: str | None = None
    """Merge key of a strategic merge patch; "": as a set; None if the list is replaced."""
    retains_keys: bool = False
    list_keys: tuple[str, ...] | None = None
    """Keys of list items in server-side apply; (): as a set; None if the list is atomic."""
    is_atomic: bool = False
    number: int = 0
    """Number in protocol buffers; 0 if it has none."""
    is_pointer: bool = False
    """Whether zero differs from absent."""
    is_always_written: bool = False
    """Whether objects have the field even if it is not set: with a zero value, or null."""


NO_FIELDS: Mapping[str, Field] = {}


class Fields:
    """All types, by name; each line is parsed on first use."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = dict(line.split(" ", 1) for line in lines if " " in line)
        self._read: dict[str, Mapping[str, Field]] = {}

    def of(self, type_name: str) -> Mapping[str, Field]:
        """The fields of a type; empty if it is unknown, and so not checked."""
        found = self._read.get(type_name)
        if found is None:
            line = self._lines.get(type_name)
            found = NO_FIELDS
            if line is not None:
                tokens = [token for token in line.split() if not token.startswith("+")]
                found = {field.name: field for field in map(_parse_field, tokens)}
            self._read[type_name] = found
        return found

    def inlined(self, type_name: str) -> dict[int, str]:
        """The messages whose fields are inlined in JSON, by their number in protocol buffers."""
        found = {}
        for token in self._lines.get(type_name, "").split():
            match = _INLINE.fullmatch(token)
            if match is not None:
                found[int(match["number"])] = match["type"]
        return found

    def __contains__(self, type_name: str) -> bool:
        return type_name in self._lines

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all types."""
        return tuple(self._lines)


def _parse_field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    assert match is not None, f"fields.txt: expected a field; got {text!r}"
    keys = match["keys"]
    return Field(
        match["name"],
        _parse_type(match["type"]),
        bool(match["required"]),
        match["merge"],
        bool(match["retain"]),
        None if keys is None else tuple(key for key in keys.split(",") if key),
        bool(match["atomic"]),
        int(match["number"] or 0),
        bool(match["pointer"]),
        bool(match["written"]),
    )


def _parse_type(text: str) -> FieldType:
    if text.startswith("[]"):
        return FieldType("list", item=_parse_type(text[2:]))
    if text.startswith("{}"):
        return FieldType("map", item=_parse_type(text[2:]))
    return FieldType("scalar" if text in SCALARS else "struct", text)


_table = get_data(__name__, "fields.txt")
assert _table is not None, "modules are read from files"
FIELDS = Fields(_table.decode().splitlines())
