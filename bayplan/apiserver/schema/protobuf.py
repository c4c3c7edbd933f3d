"""Protobuf: decode objects sent as protocol buffers.

Newer kubectl, and clients in Go, send this form; responses are JSON, which they accept as well.
Mirrors k8s.io/apimachinery/pkg/runtime/serializer/protobuf and generated.proto of k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import msgspec

from ...api.schema.fields import FIELDS, Field, FieldType
from ...api.schema.unknown import schema_type
from ...api.wire.protobuf_fields import ProtobufError, iter_fields
from ...clock import rfc3339

MIME = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME_S = -62135596800

Tree = dict[str, Any]


class _Message(NamedTuple):
    """Description of a message for decoding: its fields, and the embedded messages that are inlined in JSON."""

    fields: dict[int, Field]
    inlined: dict[int, str]


def decode_object(data: bytes) -> Tree:
    """The object, with its kind and version; raises ProtobufError when it is invalid."""
    if not data.startswith(MAGIC):
        raise ProtobufError("expected the bytes to begin with k8s")
    try:
        return _decode(data)
    except (UnicodeDecodeError, msgspec.DecodeError, OverflowError, RecursionError) as error:
        raise ProtobufError(str(error)) from None


def _decode(data: bytes) -> Tree:
    api_version = kind = ""
    raw = b""
    for number, value in _walk(memoryview(data)[len(MAGIC) :]):
        if number == 1:
            head = {n: _text(v) for n, v in _walk(value)}
            api_version, kind = head.get(1, ""), head.get(2, "")
        elif number == 2:
            raw = bytes(_raw(value))
    is_options = kind == "DeleteOptions"
    type_name = "meta.v1.DeleteOptions" if is_options else schema_type(api_version, kind)
    if not type_name:
        raise ProtobufError(f'no kind "{kind}" in version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **_struct(memoryview(raw), type_name)}


@cache
def _message(type_name: str) -> _Message:
    fields = {field.number: field for field in FIELDS.of(type_name).values() if field.number}
    return _Message(fields, FIELDS.inlined(type_name))


def _struct(data: memoryview, type_name: str) -> Tree:
    message, tree = _message(type_name), {}
    for number, value in _walk(data):
        inlined = message.inlined.get(number)
        if inlined is not None:
            tree.update(_struct(value, inlined))
            continue
        field = message.fields.get(number)
        if field is None:
            continue
        kind = field.type
        if kind.form == "list":
            assert kind.item is not None
            tree.setdefault(field.name, []).append(_value(value, kind.item))
        elif kind.form == "map":
            assert kind.item is not None
            key, item = _entry(value, kind.item)
            tree.setdefault(field.name, {})[key] = item
        else:
            found = _value(value, kind)
            if field.is_pointer or found not in (None, "", 0, {}, []):
                tree[field.name] = found
    return tree


def _entry(data: memoryview, kind: FieldType) -> tuple[str, Any]:
    parts: dict[int, Any] = dict(_walk(data))
    key = _text(parts.get(1, b""))
    if kind.form == "list":  # a list within a map is a separate message
        assert kind.item is not None
        return key, [_value(value, kind.item) for _, value in _walk(parts.get(2, memoryview(b"")))]
    default: Any = 0 if kind.name in ("int32", "int64", "bool") else memoryview(b"")
    return key, _value(parts.get(2, default), kind)


def _value(value: Any, kind: FieldType) -> Any:
    if kind.form == "struct":
        return _struct(value, kind.name)
    match kind.name:
        case "string":
            return _text(value)
        case "bool":
            return bool(_integer(value))
        case "int32" | "int64":
            return _integer(value)
        case "bytes":
            return msgspec.to_builtins(bytes(_raw(value)))
        case "time" | "microtime":
            return _time(value, kind.name == "microtime")
        case "quantity":
            return next((_text(v) for number, v in _walk(value) if number == 1), "") or "0"
        case "intstr":
            parts: dict[int, Any] = dict(_walk(value))
            if parts.get(1):
                return _text(parts.get(3, b""))
            return _integer(parts.get(2, 0))
        case _:
            raw = next((v for number, v in _walk(value) if number == 1), b"")
            text = bytes(_raw(raw))
            return msgspec.json.decode(text) if text else None


def _time(data: memoryview, has_micros: bool) -> str | None:
    parts: dict[int, Any] = dict(_walk(data))
    seconds, nanos = _integer(parts.get(1, 0)), _integer(parts.get(2, 0))
    if not parts or seconds == _ZERO_TIME_S:
        return None
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    return rfc3339(moment, "microseconds" if has_micros else "seconds")


def _raw(value: Any) -> bytes | memoryview:
    """A value that is bytes; raises ProtobufError when it is a number."""
    if isinstance(value, int):
        raise ProtobufError("expected bytes; got a number")
    found: bytes | memoryview = value
    return found


def _text(value: Any) -> str:
    return bytes(_raw(value)).decode()


def _integer(value: Any) -> int:
    """A value that is a number with a sign; raises ProtobufError when it is bytes."""
    if not isinstance(value, int):
        raise ProtobufError("expected a number; got bytes")
    return value - (1 << 64) if value >= 1 << 63 else value


def _walk(data: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers and values."""
    return iter_fields(memoryview(_raw(data)))
