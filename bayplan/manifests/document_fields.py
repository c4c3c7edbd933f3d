"""Document fields: read documents of our own kinds from files and plain data. Errors name the path of the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..api.text.durations import EXPECTED, parse_duration
from ..errors import InputError
from ..yaml_tree import YamlError, iter_trees
from .sources import open_source
from .timeline import found


def read_document(path: str | Path, expected: str) -> tuple[Any, str]:
    """The one document in a file as plain data, and the name of the file in messages; raises InputError."""
    source = open_source(str(path))
    try:
        trees = [tree for tree in iter_trees(bytes(source.data[:])) if tree is not None]
    except YamlError as error:
        raise InputError(f"{source.name}: {error}") from None
    if len(trees) != 1:
        raise InputError(f"{source.name}: expected one {expected}; got {len(trees)}")
    return trees[0], source.name


def fields_of(tree: Any, path: str, *names: str) -> Mapping[str, Any]:
    """An object that has no other fields."""
    if not isinstance(tree, Mapping):
        where = f"{path}: " if path else ""
        raise InputError(f"{where}expected an object with {', '.join(names)}; got {found(tree)}")
    for name in tree:
        if name not in names:
            where = f"{path}.{name}" if path else str(name)
            raise InputError(f"{where}: expected one of {', '.join(names)}")
    return tree


def entries_of(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The entries of a list that is not empty, each with its path."""
    if not isinstance(value, list | tuple) or not value:
        shown = "an empty list" if value == [] else found(value)
        raise InputError(f"{path}: expected a list with at least one entry; got {shown}")
    for i, entry in enumerate(value):
        yield f"{path}[{i}]", entry


def mapping_of(value: Any, path: str) -> Mapping[str, Any]:
    """An object with any fields; empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: expected an object; got {found(value)}")
    return value


def duration_of(value: Any, path: str) -> float:
    """A duration in seconds."""
    seconds = None if isinstance(value, bool) else parse_duration(str(value))
    if seconds is None:
        raise InputError(f"{path}: {EXPECTED}; got {found(value)}")
    return seconds
