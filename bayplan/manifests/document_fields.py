"""Document fields: read the fields of documents of our own kinds. Errors name the path of the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..api.own_documents import API_VERSION
from ..api.text.durations import EXPECTED, parse_duration
from ..api.wire.field_error import FieldError

_SHOWN = 100
"""Characters of a text that an error repeats."""


def check_head(fields: Mapping[str, Any], kind: str) -> None:
    """Refuse a document of another kind or version."""
    for name, expected in (("kind", kind), ("apiVersion", API_VERSION)):
        if fields.get(name) != expected:
            raise FieldError(name, f"expected {expected}; got {found(fields.get(name))}")


def fields_of(tree: Any, path: str, *names: str) -> Mapping[str, Any]:
    """An object that has no other fields."""
    listed = ", ".join(names)
    if not isinstance(tree, Mapping):
        raise FieldError(path, f"expected an object with {listed}; got {found(tree)}")
    for name in tree:
        if name not in names:
            raise FieldError(f"{path}.{name}" if path else str(name), f"expected one of {listed}")
    return tree


def entries_of(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The entries of a list that is not empty, each with its path."""
    if not isinstance(value, list | tuple) or not value:
        shown = "an empty list" if value == [] else found(value)
        raise FieldError(path, f"expected a list with at least one entry; got {shown}")
    for i, entry in enumerate(value):
        yield f"{path}[{i}]", entry


def mapping_of(value: Any, path: str) -> Mapping[str, Any]:
    """An object with any fields; empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise FieldError(path, f"expected an object; got {found(value)}")
    return value


def duration_of(value: Any, path: str) -> float:
    """A duration in seconds."""
    seconds = None if isinstance(value, bool) else parse_duration(str(value))
    if seconds is None:
        raise FieldError(path, f"{EXPECTED}; got {found(value)}")
    return seconds


def flag_of(value: Any, path: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise FieldError(path, f"expected true or false; got {found(value)}")
    return value


def text_of(value: Any, path: str) -> str:
    """A text that is not empty; also for a path."""
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise FieldError(path, f"expected a text; got {found(value)}")
    return value


def found(value: Any) -> str:
    """A value as it is shown in an error."""
    match value:
        case None:
            return "none"
        case str():
            return f'"{value if len(value) <= _SHOWN else value[:_SHOWN] + "…"}"'
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list():
            return "a list"
    return "an object"
