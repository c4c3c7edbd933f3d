"""Quick types: the table of fields as types of msgspec, for a quick yes.

What converts to the type of its kind has only known fields with values of their types. What does not may still be
right (a whole number as `1.0`), and is walked through by `checking`, which also finds the words for what is wrong.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec

from . import FIELDS, FieldType

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_SCALARS: dict[str, Any] = {
    "string": str,
    "bytes": str,
    "time": str,
    "microtime": str,
    "quantity": str | int | float,
    "intstr": int | str,
    "int32": _INT32,
    "int64": _INT64,
    "number": int | float,
    "bool": bool,
}


class _RecursiveTypeError(Exception):
    """The type contains itself."""


@cache
def quick_type(type_name: str) -> Any | None:
    """The type of objects of that name; None when there can be none."""
    try:
        return _struct(type_name, ())
    except _RecursiveTypeError:
        return None


def is_certainly_valid(tree: Any, type_name: str) -> bool:
    """Whether the tree has only known fields with values of their types; False: not certain."""
    found = quick_type(type_name)
    if found is None:
        return False
    try:
        msgspec.convert(tree, found)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


_MADE: dict[str, Any] = {}


def _struct(type_name: str, above: tuple[str, ...]) -> Any:
    if type_name in above:
        raise _RecursiveTypeError(type_name)
    if type_name not in _MADE:
        fields = FIELDS.of(type_name)
        names = {f"f{i}": name for i, name in enumerate(fields)}
        within = (*above, type_name)
        types = [_type(field.type, within) for field in fields.values()]
        _MADE[type_name] = msgspec.defstruct(
            type_name.replace(".", "_"),
            [(name, kind | None, None) for name, kind in zip(names, types, strict=True)],
            rename=names,
            forbid_unknown_fields=bool(fields),  # a type without fields is not checked
        )
    return _MADE[type_name]


def _type(kind: FieldType, above: tuple[str, ...]) -> Any:
    if kind.form == "scalar":
        return _SCALARS.get(kind.name, Any)
    if kind.form == "struct":
        return _struct(kind.name, above)
    assert kind.item is not None, "lists and maps have items"
    item = _type(kind.item, above)
    return list[item] if kind.form == "list" else dict[str, item | None]  # type: ignore[valid-type]
