"""Cbor: plain data as application/cbor, in the form in which Kubernetes writes it.

RFC 8949 with the tag of self-described data in front. Texts are byte strings, keys as well; lengths and numbers take
the fewest bytes. kube-scheduler shuffles the keys of a map; here they stay in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SELF_DESCRIBED = bytes.fromhex("d9d9f7")
"""Tag 55799."""
COUNT, BYTES, LIST, MAP = 0, 2, 4, 5
"""Major types."""
SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
"""Bytes of a number, by the code that stands in for it in the first byte."""


def encode_cbor(value: Any) -> bytes:
    """Encodes maps, lists, texts and numbers from 0 on."""
    return SELF_DESCRIBED + _item(value)


def _item(value: Any) -> bytes:
    match value:
        case str():
            text = value.encode()
            return _head(BYTES, len(text)) + text
        case int() if not isinstance(value, bool) and value >= 0:
            return _head(COUNT, value)
        case Mapping():
            pairs = (_item(key) + _item(held) for key, held in value.items())
            return _head(MAP, len(value)) + b"".join(pairs)
        case list():
            return _head(LIST, len(value)) + b"".join(map(_item, value))
    raise TypeError(f"cbor: expected a map, a list, a text or a number from 0 on; got {value!r}")


def _head(major: int, number: int) -> bytes:
    """Major type with a number: a value, a length in bytes, or a count of items."""
    if number < 24:
        return bytes((major << 5 | number,))
    code, size = next(pair for pair in SIZES.items() if number < 1 << 8 * pair[1])
    return bytes((major << 5 | code,)) + number.to_bytes(size)
