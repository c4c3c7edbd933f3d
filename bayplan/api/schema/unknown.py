"""Unknown: the fields of an object that its type does not have.

The answer for most objects is "none", and files have tens of thousands of them. So the table becomes types that
refuse unknown fields; only what they refuse is walked in Python, which names the fields.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from .fields import FIELDS, FieldType

_UNCHECKED = frozenset(
    {
        "apiextensions.v1.JSONSchemaProps",
        "core.v1.ContainerStatus",
        "core.v1.HostIP",
        "core.v1.PodCondition",
        "core.v1.PodIP",
        "meta.v1.ManagedFieldsEntry",
    }
)
"""Parts of objects that people do not write, and a schema, whose type contains itself."""
_SIMILAR = 0.7


class UnknownField(NamedTuple):
    """The path of an unknown field within its object, and the fields that were expected there."""

    path: str
    expected: str


def schema_type(api_version: str, kind: str) -> str:
    """The name that a built-in kind has in the table; empty if the table does not have it."""
    group, _, version = api_version.rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    return name if name in FIELDS else ""


@cache
def strict_type(type_name: str, tag: str = "") -> type[msgspec.Struct]:
    """A type that msgspec decodes from objects of a type of the table unless they have unknown fields.

    With a `tag`, for a union of types: that of the objects with this `kind`.
    """
    fields = [each for each in FIELDS.of(type_name).values() if not tag or each.name != "kind"]
    return msgspec.defstruct(
        type_name.replace(".", "_"),
        [(f"field_{i}", _strict(each.type), None) for i, each in enumerate(fields)],
        rename={f"field_{i}": each.name for i, each in enumerate(fields)},
        tag_field="kind" if tag else None,
        tag=tag or None,
        forbid_unknown_fields=True,
        gc=False,
    )


def _strict(kind: FieldType) -> Any:
    """The type of a value; values that are not checked are skipped, whatever their type."""
    if not _is_checked(kind):
        return msgspec.Raw
    if kind.item is None:
        return strict_type(kind.name) | None
    item = _strict(kind.item)
    if kind.form == "list":
        return list[item] | None  # type: ignore[valid-type]  # a type made at run time
    return dict[str, item] | None  # type: ignore[valid-type]  # a type made at run time


def unknown_fields(tree: Any, type_name: str) -> list[UnknownField]:
    """The unknown fields of a parsed object; values of a wrong type are passed over."""
    return [
        UnknownField(path.removeprefix("."), expected)
        for path, expected in _below(tree, FieldType("struct", type_name))
    ]


def _below(value: Any, kind: FieldType) -> Sequence[UnknownField]:
    """The unknown fields within a value, with their paths from there."""
    if kind.item is not None:
        return _below_entries(value, kind.item)
    fields = FIELDS.of(kind.name)
    if not isinstance(value, dict) or not fields:
        return ()
    found: list[UnknownField] = []
    for name, entry in value.items():
        field = fields.get(name)
        if field is None:
            found.append(UnknownField(f".{name}", _expected(str(name), kind.name)))
        elif _is_checked(field.type):
            found += [
                UnknownField(f".{name}{path}", expected)
                for path, expected in _below(entry, field.type)
            ]
    return found


def _below_entries(value: Any, item: FieldType) -> Sequence[UnknownField]:
    """The unknown fields within the entries of a list or a map."""
    entries: Iterable[tuple[str, Any]] = ()
    if isinstance(value, list):
        entries = ((f"[{i}]", entry) for i, entry in enumerate(value))
    elif isinstance(value, dict):
        entries = ((f".{key}", entry) for key, entry in value.items())
    return [
        UnknownField(step + path, expected)
        for step, entry in entries
        for path, expected in _below(entry, item)
    ]


@cache
def _is_checked(kind: FieldType) -> bool:
    """Whether values of the type may have unknown fields."""
    if kind.item is not None:
        return _is_checked(kind.item)
    return kind.form == "struct" and kind.name not in _UNCHECKED and bool(FIELDS.of(kind.name))


@cache
def _expected(name: str, type_name: str) -> str:
    """The most similar field, or the type when none is similar."""
    folded = {other.lower(): other for other in FIELDS.of(type_name)}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_SIMILAR)
    return folded[close[0]] if close else f"a field of {type_name.rpartition('.')[2]}"
