"""Checking: what clients send, held against the table of fields.

A value of the wrong type is refused always, a field that nobody knows when the client asks for it (`fieldValidation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .fields import FIELDS, FieldType

_GO_NAMES = {"string": "string", "bool": "bool", "int32": "int32", "int64": "int64"}
_INTEGERS = {"int32": 2**31, "int64": 2**63}
_TEXTS = frozenset({"string", "bytes", "time", "microtime"})


class WrongTypeError(Exception):
    """A value is not of the type of its field; the text says which, as the API server would."""


def unknown_fields(value: Any, type_name: str) -> list[str]:
    """The paths of the fields that the type does not have; WrongTypeError when a value does not fit its field."""
    if type_name not in FIELDS:
        return []
    return list(_check(value, FieldType("struct", type_name), "", type_name.rpartition(".")[2]))


def _check(value: Any, kind: FieldType, path: str, owner: str) -> Iterator[str]:
    """Yield the unknown fields at and below `path`."""
    if value is None:
        return
    match kind.form:
        case "struct":
            yield from _check_struct(value, kind, path, owner)
        case "list":
            assert kind.item is not None
            if not isinstance(value, list):
                raise _wrong(value, path, owner, "slice")
            for i, item in enumerate(value):
                yield from _check(item, kind.item, f"{path}[{i}]", owner)
        case "map":
            assert kind.item is not None
            if not isinstance(value, dict):
                raise _wrong(value, path, owner, "map")
            for key, item in value.items():
                yield from _check(item, kind.item, f"{path}.{key}", owner)
        case _:
            if not _fits(value, kind.name):
                raise _wrong(value, path, owner, _GO_NAMES.get(kind.name, kind.name))


def _check_struct(value: Any, kind: FieldType, path: str, owner: str) -> Iterator[str]:
    if not isinstance(value, dict):
        raise _wrong(value, path, owner, kind.name.rpartition(".")[2])
    fields = FIELDS.of(kind.name)
    for key, item in value.items():
        field = fields.get(key)
        where = f"{path}.{key}" if path else key
        if field is None:
            if fields:
                yield where
        else:
            yield from _check(item, field.type, where, kind.name.rpartition(".")[2])


def _fits(value: Any, scalar: str) -> bool:
    if scalar in _TEXTS:
        return isinstance(value, str)
    if scalar == "bool":
        return isinstance(value, bool)
    if scalar in _INTEGERS:
        limit = _INTEGERS[scalar]
        return (
            isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        ) or (isinstance(value, float) and value.is_integer())
    if scalar in ("quantity", "number"):
        texts = str if scalar == "quantity" else int
        return isinstance(value, int | float | texts) and not isinstance(value, bool)
    if scalar == "intstr":
        return isinstance(value, int | str) and not isinstance(value, bool)
    return True


def _wrong(value: Any, path: str, owner: str, wanted: str) -> WrongTypeError:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}.get(
        type(value), "object"
    )
    tail = path.removeprefix(".")
    return WrongTypeError(
        f"json: cannot unmarshal {found} into Go struct field {owner}.{tail} of type {wanted}"
    )
