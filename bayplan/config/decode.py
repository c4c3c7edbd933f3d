"""Decode: plain data to typed objects, strictly, with every problem reported by its path.

msgspec would stop at the first problem; this walk over msgspec's type descriptions continues. As in
Kubernetes, null is the same as absent, a whole number may be written as a float, and an absent
field without a default is zero.
"""

import base64
import binascii
import difflib
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from ..api.text.durations import parse_go_duration
from ..errors import one_of
from .problems import Literally, Problems, child

T = TypeVar("T", bound=msgspec.Struct)

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class JsonFloat(float):
    """A number of a JSON text with a point or an exponent: never a whole number, unlike the same in YAML."""

    def is_integer(self) -> bool:
        return False


def plain_numbers(data: Any) -> Any:
    """Returns data that is not decoded further, without JsonFloat."""
    if isinstance(data, dict):
        return {key: plain_numbers(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain_numbers(item) for item in data]
    return float(data) if isinstance(data, JsonFloat) else data


# Seconds, in Go's notation of durations: 1h30m, 1.5s, 100ms.
Duration = Annotated[float, msgspec.Meta(extra={"written": "duration"})]

_MAX_SECONDS = 2**63 // 10**9  # Go counts nanoseconds in 64 bits
_MAX_FLOAT32 = 3.4028235677973366e38
_INT64_LIMITS = (-(2**63), 2**63 - 1)


class _Wrong:
    """Sentinel for a value that could not be read; its problem is already recorded."""


_WRONG = _Wrong()


def _refused(path: str, expected: str, data: Any, problems: Problems) -> _Wrong:
    """Record that a value is not as expected."""
    problems.add(path, expected, data)
    return _WRONG


def decode(cls: type[T], data: Any, path: str, problems: Problems) -> T:
    """Return `data` as a `cls`, with defaults where it is absent or invalid."""
    info = _type_info(cls)
    assert isinstance(info, inspect.StructType), f"{cls.__name__} is not a Struct"
    value = _value(info, {} if data is None else data, path, problems)
    result = _zero(info) if value is _WRONG else value
    assert isinstance(result, cls), "the walk returns the requested type"
    return result


@cache
def _type_info(cls: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(cls)


def _value(info: inspect.Type, data: Any, path: str, problems: Problems) -> Any:
    """Return `data` read as `info`, or _WRONG with the problem recorded."""
    match info:
        case inspect.Metadata():
            if (info.extra or {}).get("written") == "duration":
                return _duration(data, path, problems)
            return _value(info.type, data, path, problems)
        case inspect.UnionType():
            return _value(_not_null(info), data, path, problems)
        case inspect.StructType():
            return _struct(info, data, path, problems)
        case inspect.ListType() | inspect.VarTupleType():
            return _items(info, data, path, problems)
        case inspect.DictType():
            return _mapping(info, data, path, problems)
        case inspect.AnyType():
            return data
        case inspect.BytesType():
            return _bytes(data, path, problems)
        case _:
            return _scalar(info, data, path, problems)


def _struct(info: inspect.StructType, data: Any, path: str, problems: Problems) -> Any:
    """Return a mapping as a Struct; unreadable fields keep their default."""
    if not isinstance(data, dict):
        return _refused(path, "a mapping", data, problems)
    fields = {field.encode_name: field for field in info.fields}
    for name in data:
        if name not in fields:
            _unknown_field(str(name), tuple(fields), path, problems)
    values = {}
    for name, field in fields.items():
        value = _WRONG
        if data.get(name) is not None:
            value = _value(field.type, data[name], child(path, name), problems)
        if value is not _WRONG:
            values[field.name] = value
        elif field.required:
            values[field.name] = _zero(field.type)
    return info.cls(**values)


def _unknown_field(name: str, known: tuple[str, ...], path: str, problems: Problems) -> None:
    """Record an unknown field, with the most similar known one."""
    folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.7)
    expected = folded[close[0]] if close else one_of(tuple(sorted(known)))
    problems.add(child(path, name), expected, Literally("an unknown field"))


def _items(
    info: inspect.ListType | inspect.VarTupleType, data: Any, path: str, problems: Problems
) -> Any:
    """Return a list or tuple; null items are zero values, one unreadable item makes it unreadable."""
    if not isinstance(data, list | tuple):
        return _refused(path, "a list", data, problems)
    items = [
        _zero(info.item_type)
        if item is None
        else _value(info.item_type, item, f"{path}[{i}]", problems)
        for i, item in enumerate(data)
    ]
    if _WRONG in items:
        return _WRONG
    return items if isinstance(info, inspect.ListType) else tuple(items)


def _mapping(info: inspect.DictType, data: Any, path: str, problems: Problems) -> Any:
    """Returns a mapping with any keys."""
    if not isinstance(data, dict):
        return _refused(path, "a mapping", data, problems)
    result = {
        key: _zero(info.value_type)
        if value is None
        else _value(info.value_type, value, child(path, key), problems)
        for key, value in data.items()
    }
    return _WRONG if _WRONG in result.values() else result


def _scalar(info: inspect.Type, data: Any, path: str, problems: Problems) -> Any:
    """Return a text, number or boolean."""
    match info:
        case inspect.BoolType():
            expected, fits = "true or false", isinstance(data, bool)
        case inspect.StrType():
            expected, fits = "a text", isinstance(data, str)
        case inspect.FloatType():
            expected = "a number"
            fits = isinstance(data, int | float) and not isinstance(data, bool)
            fits = fits and abs(data) <= _MAX_FLOAT32
        case inspect.IntType():
            return _integer(info, data, path, problems)
        case _:
            return _converted(info, data, path, problems)
    if not fits:
        return _refused(path, expected, data, problems)
    return plain_numbers(data)


def _integer(info: inspect.IntType, data: Any, path: str, problems: Problems) -> Any:
    """Return a whole number that fits the type, by default 64 bits."""
    low = _INT64_LIMITS[0] if info.ge is None else info.ge
    high = _INT64_LIMITS[1] if info.le is None else info.le
    is_whole = data.is_integer() if isinstance(data, float) else type(data) is int
    if not is_whole:
        return _refused(path, "a whole number", data, problems)
    if not low <= data <= high:
        return _refused(path, f"a whole number from {low} to {high}", data, problems)
    return int(data)


def _bytes(data: Any, path: str, problems: Problems) -> Any:
    """Returns bytes that are written in base64."""
    if not isinstance(data, str):
        return _refused(path, "a text in base64", data, problems)
    try:
        return base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True)
    except binascii.Error:
        return _refused(path, "a text in base64", data, problems)


def _duration(data: Any, path: str, problems: Problems) -> Any:
    """Returns a duration in seconds."""
    seconds = parse_go_duration(data) if isinstance(data, str) else None
    if seconds is None:
        return _refused(path, "a duration such as 1m30s", data, problems)
    if abs(seconds) > _MAX_SECONDS:
        return _refused(path, f"a duration up to {_MAX_SECONDS}s", data, problems)
    return seconds


def _converted(info: inspect.Type, data: Any, path: str, problems: Problems) -> Any:
    """Return an enumerated value; only its being one of the choices is checked."""
    if isinstance(info, inspect.LiteralType):
        choices = tuple(str(value) for value in info.values)
    elif isinstance(info, inspect.EnumType):
        choices = tuple(str(member.value) for member in info.cls)
    else:
        raise AssertionError(f"no way to read {type(info).__name__} at {path}")
    if data not in choices:
        problems.add(path, one_of(choices), data)
        return _WRONG
    return data if isinstance(info, inspect.LiteralType) else info.cls(data)


def _not_null(info: inspect.UnionType) -> inspect.Type:
    """Return the type inside an optional."""
    types = [type_ for type_ in info.types if not isinstance(type_, inspect.NoneType)]
    assert len(types) == 1, "a field of the configuration has one type, or none"
    return types[0]


def _zero(info: inspect.Type) -> Any:
    """Return the zero value of a type, which Kubernetes uses for absent fields."""
    match info:
        case inspect.Metadata():
            return _zero(info.type)
        case inspect.UnionType() | inspect.AnyType():
            return None
        case inspect.StructType():
            return info.cls(**{f.name: _zero(f.type) for f in info.fields if f.required})
        case inspect.ListType():
            return []
        case inspect.VarTupleType():
            return ()
        case inspect.DictType():
            return {}
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.BytesType():
            return b""
        case _:
            return ""
