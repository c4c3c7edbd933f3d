"""Change file: several changes in one file, including those the command line has no options for.

A document of kind WhatIf (bayplan.dev/v1) has a list of changes, each with one keyword and its
arguments; they are made in order. docs/what-if.md describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...api.wire.kinds import FieldError
from ...errors import InputError
from ...manifests.document_fields import (
    check_head,
    duration_of,
    fields_of,
    flag_of,
    found,
    text_of,
)
from ...manifests.field_check import unknown_in_part
from ...manifests.sources import read_documents, shown_name
from ...manifests.timeline import added_objects, read_change
from ...sim.plain_part import attribute_of
from .change import ClusterChange
from .node_changes import AddNodes, AddTaint, Cordon, RemoveTaint, Uncordon
from .object_changes import Add, Delete, Patch, Scale
from .resizes import Resize, check_amount
from .rounds import Drain, Upgrade

KIND = "WhatIf"


def read_change_file(path: str | Path, remarks: list[str] | None = None) -> list[ClusterChange]:
    """Read the changes from a file or standard input (`-`); raises InputError with file and field.

    Fields of objects and patches that do not exist are added to `remarks`.
    """
    changes: list[ClusterChange] = []
    for place, tree in read_documents(path):
        try:
            changes += read_changes(tree)
        except FieldError as error:
            raise InputError(f"{place}: {error}") from None
        if remarks is not None:
            remarks += (f"{place}: {text}" for text in unknown_in_changes(tree))
    if not changes:
        raise InputError(f"{shown_name(path)}: expected a {KIND} with changes; got none")
    return changes


def read_changes(tree: Any) -> list[ClusterChange]:
    """The changes of one document."""
    if not isinstance(tree, Mapping):
        raise FieldError("kind", f"expected {KIND}; got {found(tree)}")
    check_head(tree, KIND)
    listed = tree.get("changes")
    if not isinstance(listed, list):
        raise FieldError("changes", f"expected a list; got {found(listed)}")
    changes: list[ClusterChange] = []
    for i, entry in enumerate(listed):
        path = f"changes[{i}]"
        try:
            changes += _read_entry(entry, path)
        except InputError as error:
            raise FieldError(path, str(error)) from None
    return changes


def unknown_in_changes(tree: Mapping[str, Any]) -> Iterator[str]:
    """The unknown fields of the objects that the changes of a document add and patch."""
    for i, entry in enumerate(tree["changes"]):
        for word in ("add", "patch"):
            value = entry.get(word)
            for j, part in enumerate(value if isinstance(value, list) else [value]):
                yield from unknown_in_part(part, f"changes[{i}].{word}[{j}]")


def _read_entry(entry: Any, path: str) -> Iterator[ClusterChange]:
    words = ", ".join(READERS)
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise FieldError(path, f"expected an object with one of {words}; got {found(entry)}")
    ((word, value),) = entry.items()
    reader = READERS.get(word)
    if reader is None:
        raise FieldError(f"{path}.{word}", f"expected one of {words}")
    yield from reader(value, f"{path}.{word}")


def _texts(value: Any, path: str) -> tuple[str, ...]:
    """One name, or a list of them."""
    if isinstance(value, str):
        return (text_of(value, path),)
    if not isinstance(value, list) or not value:
        raise FieldError(path, f"expected names; got {found(value)}")
    return tuple(text_of(item, f"{path}[{i}]") for i, item in enumerate(value))


def _number(value: Any, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FieldError(path, f"expected a number that is not negative; got {found(value)}")
    return value


def _amounts(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        expected = "expected amounts by resource, such as cpu: 8"
        raise FieldError(path, f"{expected}; got {found(value)}")
    for name, amount in value.items():
        check_amount(name, amount, f"{name}={amount}")
    return dict(value)


def _add(value: Any, path: str) -> Iterator[ClusterChange]:
    trees = value if isinstance(value, list) else [value]
    for i, tree in enumerate(trees):
        yield Add(tuple(added_objects(tree, f"{path}[{i}]")))


def _patch(value: Any, path: str) -> Iterator[ClusterChange]:
    trees = value if isinstance(value, list) else [value]
    for i, tree in enumerate(trees):
        yield Patch(read_change(tree, f"{path}[{i}]"))


Reader = Callable[[Any, str], Iterator[ClusterChange]]
Fields = Mapping[str, Callable[[Any, str], Any]]
NODES: Fields = {"nodes": _texts, "selector": text_of}
FLAGS = ("force", "deleteEmptydirData", "disableEviction", "ignoreDaemonsets")
"""The flags of kubectl drain."""
DRAIN: Fields = {**NODES, **dict.fromkeys(FLAGS, flag_of)}
UPGRADE: Fields = {**DRAIN, "surge": _number, "maxUnavailable": _number}
TAINTS: Fields = {"node": text_of, "taints": _texts}
ATTRIBUTES = {"startTime": "start_s", "nodeStartTime": "node_start_s", "resources": "amounts"}
"""Attributes of changes that are not named as in a file."""


def _reader(
    make: Callable[..., ClusterChange], fields: Fields, *required: str, alone: str = ""
) -> Reader:
    """Reads a change whose arguments are `fields`; `alone` is the argument whose value may be given without a name.
    Either nodes or a selector are required.
    """

    def read(value: Any, path: str) -> Iterator[ClusterChange]:
        if alone and not isinstance(value, Mapping):
            yield make(**{alone: _texts(value, path)})
            return
        given = fields_of(value, path, *fields)
        given = {name: v for name, v in given.items() if v is not None}
        needed = set(required) if "selector" not in given else ()
        names = [name for name in fields if name in given or name in needed]
        attributes = [ATTRIBUTES.get(name) or attribute_of(name) for name in names]
        values = [fields[name](given.get(name), f"{path}.{name}") for name in names]
        yield make(**dict(zip(attributes, values, strict=True)))

    return read


READERS: dict[str, Reader] = {
    "drain": _reader(Drain, {**DRAIN, "startTime": duration_of}, "nodes", alone="nodes"),
    "upgrade": _reader(
        Upgrade,
        {**UPGRADE, "startTime": duration_of, "nodeStartTime": duration_of},
        "nodes",
        alone="nodes",
    ),
    "addNodes": _reader(partial(AddNodes, number=1), {"number": _number, "like": _texts}, "like"),
    "cordon": _reader(Cordon, NODES, "nodes", alone="nodes"),
    "uncordon": _reader(Uncordon, NODES, "nodes", alone="nodes"),
    "addTaint": _reader(AddTaint, TAINTS, *TAINTS),
    "removeTaint": _reader(RemoveTaint, TAINTS, *TAINTS),
    "resize": _reader(
        Resize,
        {"target": text_of, "resources": _amounts, "container": text_of},
        "target",
        "resources",
    ),
    "scale": _reader(Scale, {"workload": text_of, "replicas": _number}, "workload", "replicas"),
    "delete": _reader(Delete, {"objects": _texts, "selector": text_of}, alone="objects"),
    "add": _add,
    "patch": _patch,
}
