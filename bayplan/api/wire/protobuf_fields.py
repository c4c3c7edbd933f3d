"""Protobuf fields: the fields of a message in the form of protocol buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

Data = TypeVar("Data", bytes, memoryview)

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_UINT64 = (1 << 64) - 1


class ProtobufError(Exception):
    """The bytes are not a valid object."""


def iter_fields(data: Data) -> Iterator[tuple[int, int | Data]]:
    """The number and the value of each field, in order; raises ProtobufError."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, form = tag >> 3, tag & 7
        if form == VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if form == BYTES:
            size, place = _varint(data, place)
        elif form in (FIXED64, FIXED32):
            size = 8 if form == FIXED64 else 4
        else:
            raise ProtobufError(f"unknown form of a value: {form}")
        found = data[place : place + size]
        if len(found) < size:
            raise ProtobufError("the bytes end within a value")
        yield number, found if form == BYTES else int.from_bytes(found, "little")
        place += size


def _varint(data: bytes | memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ProtobufError("the bytes end within a number")
        byte = data[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value & _UINT64, place
        shift += 7
