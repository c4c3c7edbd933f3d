"""GoJson: read JSON as Go's encoding/json does: case-insensitive names, null as absent, unknown fields ignored.

Webhook responses and annotations are mostly written for, or by, encoding/json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ...errors import DecodeError

Tree = Mapping[str, Any]
T = TypeVar("T")


def decode_json(body: bytes) -> Any:
    """The value in `body`; DecodeError when it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        shown = body[:40].decode("utf-8", "replace") + ("..." if len(body) > 40 else "")
        raise DecodeError("", f'expected JSON; got "{shown}" ({error})') from error


def find(tree: Any, name: str) -> Any:
    """The field `name` of an object, None when absent or null; with several spellings the last
    counts."""
    if tree is None:
        return None
    if not isinstance(tree, dict):
        raise DecodeError("", f"expected an object; got {_kind(tree)}")
    found = None
    for key, value in tree.items():
        if key.lower() == name.lower() and value is not None:
            found = value
    return found


def member(tree: Any, name: str) -> Tree:
    """An object in an object; empty when absent."""
    return _typed(find(tree, name), name, {})


def list_member(tree: Any, name: str) -> list[Any]:
    """A list in an object; empty when absent."""
    return _typed(find(tree, name), name, [])


def text_member(tree: Any, name: str) -> str:
    """A text in an object; empty when absent."""
    return _typed(find(tree, name), name, "")


def int_member(tree: Any, name: str) -> int:
    """A whole number in an object; 0 when absent."""
    found = find(tree, name)
    if isinstance(found, bool):
        raise DecodeError(name, f"expected a whole number; got {_kind(found)}")
    return _typed(found, name, 0)


def texts_by_name(tree: Any, name: str) -> dict[str, str]:
    """Texts by name in an object; empty when absent."""
    given = member(tree, name)
    return {key: text_member({key: value}, key) for key, value in given.items()}


def _typed(value: Any, name: str, otherwise: T) -> T:
    """The value, which must have the type of `otherwise`, its default."""
    if value is None:
        return otherwise
    if not isinstance(value, type(otherwise)):
        raise DecodeError(name, f"expected {_KINDS[type(otherwise)]}; got {_kind(value)}")
    return value


_KINDS: dict[type[Any], str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _KINDS.get(type(value), "a number" if isinstance(value, float) else "nothing")
