"""Plain data: plain data as JSON and YAML on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def with_remarks(document: dict[str, Any], remarks: Sequence[str]) -> dict[str, Any]:
    """The document with more remarks, if there are any."""
    if not remarks:
        return document
    return {**document, "remarks": [*document.get("remarks", ()), *remarks]}


def print_json_document(document: Any) -> None:
    """Print plain data as JSON."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def print_yaml_document(document: Any) -> None:
    """Print plain data as YAML, in the order it has."""
    sys.stdout.write(format_yaml_document(document))


def format_yaml_document(document: Any) -> str:
    """Plain data as YAML, in the order it has."""
    from ...yaml_tree import format_tree

    return format_tree(document)


def yaml_pieces(trees: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A document per object."""
    for tree in trees:
        yield "---\n"
        yield format_yaml_document(tree)


def json_pieces(trees: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A List with an object per line."""
    import msgspec

    yield '{"apiVersion": "v1", "kind": "List", "items": ['
    joint = "\n"
    for tree in trees:
        yield joint + msgspec.json.encode(tree).decode()
        joint = ",\n"
    yield "\n]}\n"
