"""Input check: client input against the table of fields.

A value of the wrong type is always rejected, an unknown field when the client requests it
(`fieldValidation`).
"""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import Annotated, Any

import msgspec

from ..text.quantity import parse_quantity
from .canonical import zero_value
from .fields import FIELDS, FieldType

_INTEGERS = {"int32": 2**31, "int64": 2**63}
_USUAL = {
    "string": str,
    "time": str,
    "microtime": str,
    "bool": bool,
}
"""Types that need no further check."""
_QUANTITY_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_QUANTITY_RULE = f"quantities must match the regular expression '{_QUANTITY_FORM}'"
_PLAIN_QUANTITY = r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]*")
_TEXTS = frozenset({"string", "bytes", "time", "microtime"})


class WrongTypeError(Exception):
    """A value is not of the type of its field; the text is the API server's."""


def unknown_fields(value: Any, type_name: str) -> list[str]:
    """The paths of unknown fields; raises WrongTypeError when a value does not match its field.

    Nulls in lists are replaced by the zero values of their types, which Go reads them as.
    """
    unknown: list[str] = []
    if type_name in FIELDS and value is not None and not is_certainly_valid(value, type_name):
        _check_struct(value, type_name, "", type_name.rpartition(".")[2], unknown)
    return unknown


def _check(value: Any, kind: FieldType, path: str, owner: str, unknown: list[str]) -> None:
    """Record the unknown fields at and below `path`."""
    if value is None:
        return
    form = kind.form
    if form == "scalar":
        if type(value) is not _USUAL.get(kind.name) and not _fits(value, kind.name):
            raise _wrong(value, path, owner, kind.name)
    elif form == "struct":
        _check_struct(value, kind.name, path, owner, unknown)
    elif form == "list":
        if not isinstance(value, list):
            raise _wrong(value, path, owner, "slice")
        assert kind.item is not None
        for i, item in enumerate(value):
            if item is None:
                item = value[i] = zero_value(kind.item)
            _check(item, kind.item, f"{path}[{i}]", owner, unknown)
    else:
        if not isinstance(value, dict):
            raise _wrong(value, path, owner, "map")
        assert kind.item is not None
        for key, item in value.items():
            _check(item, kind.item, f"{path}.{key}", owner, unknown)


def _check_struct(value: Any, type_name: str, path: str, owner: str, unknown: list[str]) -> None:
    name = type_name.rpartition(".")[2]
    if not isinstance(value, dict):
        raise _wrong(value, path, owner, name)
    fields = FIELDS.of(type_name)
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            if fields:
                unknown.append(f"{path}.{key}" if path else key)
        elif type(item) is not _USUAL.get(field.type.name):
            _check(item, field.type, f"{path}.{key}" if path else key, name, unknown)


def _fits(value: Any, scalar: str) -> bool:
    if scalar == "bytes" and isinstance(value, str):
        _check_base64(value)
    if scalar in _TEXTS:
        return isinstance(value, str)
    if scalar == "bool":
        return isinstance(value, bool)
    if scalar in _INTEGERS:
        limit = _INTEGERS[scalar]
        return (
            isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        ) or (isinstance(value, float) and value.is_integer())
    if scalar == "quantity" and isinstance(value, str):
        _check_quantity(value)
        return True
    if scalar in ("quantity", "number"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "intstr":
        return isinstance(value, int | str) and not isinstance(value, bool)
    return True


def _check_quantity(text: str) -> None:
    try:
        parse_quantity(text)
    except ValueError:
        raise WrongTypeError(_QUANTITY_RULE) from None


def _check_base64(text: str) -> None:
    plain = text.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(plain, validate=True)
    except ValueError:
        matched = _BASE64.match(text)
        place = matched.end() if matched is not None else 0
        raise WrongTypeError(f"illegal base64 data at input byte {place}") from None


def _wrong(value: Any, path: str, owner: str, wanted: str) -> WrongTypeError:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}.get(
        type(value), "object"
    )
    tail = path.removeprefix(".")
    return WrongTypeError(
        f"json: cannot unmarshal {found} into Go struct field {owner}.{tail} of type {wanted}"
    )


_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_SCALARS: dict[str, Any] = {
    "string": str,
    "time": str,
    "microtime": str,
    "quantity": Annotated[str, msgspec.Meta(pattern=_PLAIN_QUANTITY)] | int | float,
    "intstr": int | str,
    "int32": _INT32,
    "int64": _INT64,
    "number": int | float,
    "bool": bool,
}


class _NoQuickTypeError(Exception):
    """The type contains itself, or values that need a closer look."""


@cache
def quick_type(type_name: str) -> Any | None:
    """The type of objects of that name; None when there can be none."""
    try:
        return _struct(type_name, ())
    except _NoQuickTypeError:
        return None


def is_certainly_valid(tree: Any, type_name: str) -> bool:
    """Whether the tree surely has only known fields with values of their types."""
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
        raise _NoQuickTypeError(type_name)
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
        if kind.name == "bytes":
            raise _NoQuickTypeError(kind.name)
        return _SCALARS.get(kind.name, Any)
    if kind.form == "struct":
        return _struct(kind.name, above)
    assert kind.item is not None, "lists and maps have items"
    item = _type(kind.item, above)
    return list[item] if kind.form == "list" else dict[str, item | None]  # type: ignore[valid-type]  # a type made at run time
