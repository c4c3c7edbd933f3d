"""Change file: several changes in one file, including those the command line has no options for.

A document of kind WhatIf (bayplan.dev/v1) has a list of changes, each with one keyword and its
arguments; they are made in order. docs/what-if.md describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...api.own_documents import API_VERSION
from ...api.text.durations import EXPECTED, parse_duration
from ...api.wire.kinds import FieldError
from ...errors import InputError
from ...manifests.field_check import unknown_in_part
from ...manifests.sources import open_source
from ...manifests.timeline import added_objects, found, read_change
from ...yaml_tree import YamlError, iter_trees
from .change import ClusterChange
from .node_changes import AddTaint, Cordon, RemoveTaint, Uncordon
from .node_copies import AddNodes
from .object_changes import Add, Delete, Patch, Scale
from .resizes import Resize, check_amount
from .rounds import Drain
from .upgrades import Upgrade

KIND = "WhatIf"
DRAIN_FLAGS = {
    "force": "force",
    "deleteEmptydirData": "delete_emptydir_data",
    "disableEviction": "disable_eviction",
    "ignoreDaemonsets": "ignore_daemonsets",
}
"""The flags of kubectl drain in a file, and the fields of changes that they set."""


def read_change_file(path: str | Path, remarks: list[str] | None = None) -> list[ClusterChange]:
    """Read the changes from a file or standard input (`-`); raises InputError with file and field.

    Fields of objects and patches that do not exist are added to `remarks`.
    """
    source = open_source(str(path))
    changes: list[ClusterChange] = []
    try:
        for number, tree in enumerate(iter_trees(bytes(source.data[:])), 1):
            if tree is not None:
                try:
                    changes += read_changes(tree)
                except InputError as error:
                    raise InputError(f"{source.name}: document {number}: {error}") from None
                if remarks is not None:
                    where = f"{source.name}: document {number}"
                    remarks += (f"{where}: {text}" for text in unknown_in_changes(tree))
    except YamlError as error:
        raise InputError(f"{source.name}: {error}") from None
    if not changes:
        raise InputError(f"{source.name}: expected a {KIND} with changes; got none")
    return changes


def read_changes(tree: Any) -> list[ClusterChange]:
    """The changes of one document."""
    if not isinstance(tree, Mapping) or tree.get("kind") != KIND:
        kind = tree.get("kind") if isinstance(tree, Mapping) else tree
        raise InputError(f"kind: expected {KIND}; got {found(kind)}")
    if tree.get("apiVersion") != API_VERSION:
        raise InputError(f"apiVersion: expected {API_VERSION}; got {found(tree.get('apiVersion'))}")
    listed = tree.get("changes")
    if not isinstance(listed, list):
        raise InputError(f"changes: expected a list; got {found(listed)}")
    changes: list[ClusterChange] = []
    for i, entry in enumerate(listed):
        path = f"changes[{i}]"
        try:
            changes += _read_entry(entry, path)
        except FieldError as error:
            raise InputError(f"{error.path}: {error.fault}") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
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


# Arguments of each keyword


def _drain(value: Any, path: str) -> Iterator[ClusterChange]:
    if not isinstance(value, Mapping):
        yield Drain(_texts(value, path))
        return
    fields = _fields(value, path, "nodes", "selector", *DRAIN_FLAGS, "startTime")
    nodes, selector = _chosen(fields, path)
    yield Drain(
        nodes,
        selector=selector,
        start_s=_seconds(fields, path, "startTime"),
        **_drain_flags(fields, path),
    )


def _drain_flags(fields: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The flags of kubectl drain; one that is left out has its default."""
    return {DRAIN_FLAGS[name]: _flag(fields, path, name) for name in DRAIN_FLAGS if name in fields}


def _upgrade(value: Any, path: str) -> Iterator[ClusterChange]:
    if not isinstance(value, Mapping):
        yield Upgrade(_texts(value, path))
        return
    numbers = ("surge", "maxUnavailable")
    times = ("startTime", "nodeStartTime")
    fields = _fields(value, path, "nodes", "selector", *DRAIN_FLAGS, *numbers, *times)
    yield Upgrade(
        *_chosen(fields, path),
        surge=_number(fields.get("surge", 1), f"{path}.surge"),
        max_unavailable=_number(fields.get("maxUnavailable", 0), f"{path}.maxUnavailable"),
        start_s=_seconds(fields, path, "startTime"),
        node_start_s=_seconds(fields, path, "nodeStartTime"),
        **_drain_flags(fields, path),
    )


def _cordon(make: Callable[[tuple[str, ...], str], ClusterChange]) -> Reader:
    def read(value: Any, path: str) -> Iterator[ClusterChange]:
        if isinstance(value, Mapping):
            yield make(*_chosen(_fields(value, path, "nodes", "selector"), path))
        else:
            yield make(_texts(value, path), "")

    return read


def _delete(value: Any, path: str) -> Iterator[ClusterChange]:
    if not isinstance(value, Mapping):
        yield Delete(_texts(value, path))
        return
    fields = _fields(value, path, "objects", "selector")
    objects = fields.get("objects")
    yield Delete(
        _texts(objects, f"{path}.objects") if objects is not None else (),
        _text(fields.get("selector"), f"{path}.selector") if "selector" in fields else "",
    )


def _chosen(fields: Mapping[str, Any], path: str) -> tuple[tuple[str, ...], str]:
    """The names of nodes and the selector; one of them may be absent."""
    nodes, selector = fields.get("nodes"), fields.get("selector")
    return (
        _texts(nodes, f"{path}.nodes") if nodes is not None or selector is None else (),
        _text(selector, f"{path}.selector") if selector is not None else "",
    )


def _flag(fields: Mapping[str, Any], path: str, name: str) -> bool:
    given = fields.get(name) or False
    if not isinstance(given, bool):
        raise FieldError(f"{path}.{name}", f"expected true or false; got {found(given)}")
    return given


def _seconds(fields: Mapping[str, Any], path: str, name: str) -> float:
    given = fields.get(name, "0s")
    seconds = parse_duration(given) if isinstance(given, str) else None
    if seconds is None:
        raise FieldError(f"{path}.{name}", f"{EXPECTED}; got {found(given)}")
    return seconds


def _add_nodes(value: Any, path: str) -> Iterator[ClusterChange]:
    fields = _fields(value, path, "number", "like")
    like = _texts(fields.get("like"), f"{path}.like")
    yield AddNodes(_number(fields.get("number", 1), f"{path}.number"), like)


def _taint(make: Callable[[str, tuple[str, ...]], ClusterChange]) -> Reader:
    def read(value: Any, path: str) -> Iterator[ClusterChange]:
        fields = _fields(value, path, "node", "taints")
        node = _text(fields.get("node"), f"{path}.node")
        yield make(node, _texts(fields.get("taints"), f"{path}.taints"))

    return read


def _resize(value: Any, path: str) -> Iterator[ClusterChange]:
    fields = _fields(value, path, "target", "resources", "container")
    resources = fields.get("resources")
    if not isinstance(resources, Mapping) or not resources:
        expected = "expected amounts by resource, such as cpu: 8"
        raise FieldError(f"{path}.resources", f"{expected}; got {found(resources)}")
    for name, amount in resources.items():
        check_amount(name, amount, f"{name}={amount}")
    container = _text(fields["container"], f"{path}.container") if "container" in fields else ""
    yield Resize(_text(fields.get("target"), f"{path}.target"), dict(resources), container)


def _scale(value: Any, path: str) -> Iterator[ClusterChange]:
    fields = _fields(value, path, "workload", "replicas")
    workload = _text(fields.get("workload"), f"{path}.workload")
    yield Scale(workload, _number(fields.get("replicas"), f"{path}.replicas"))


def _add(value: Any, path: str) -> Iterator[ClusterChange]:
    trees = value if isinstance(value, list) else [value]
    for i, tree in enumerate(trees):
        yield Add(tuple(added_objects(tree, f"{path}[{i}]")))


def _patch(value: Any, path: str) -> Iterator[ClusterChange]:
    trees = value if isinstance(value, list) else [value]
    for i, tree in enumerate(trees):
        yield Patch(read_change(tree, f"{path}[{i}]"))


Reader = Callable[[Any, str], Iterator[ClusterChange]]
READERS: dict[str, Reader] = {
    "drain": _drain,
    "upgrade": _upgrade,
    "addNodes": _add_nodes,
    "cordon": _cordon(Cordon),
    "uncordon": _cordon(Uncordon),
    "addTaint": _taint(AddTaint),
    "removeTaint": _taint(RemoveTaint),
    "resize": _resize,
    "scale": _scale,
    "delete": _delete,
    "add": _add,
    "patch": _patch,
}


def _fields(value: Any, path: str, *names: str) -> Mapping[str, Any]:
    listed = " and ".join(names)
    if not isinstance(value, Mapping):
        raise FieldError(path, f"expected an object with {listed}; got {found(value)}")
    for name in value:
        if name not in names:
            raise FieldError(f"{path}.{name}", f"expected {listed}")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise FieldError(path, f"expected a name; got {found(value)}")
    return value


def _texts(value: Any, path: str) -> tuple[str, ...]:
    """One name, or a list of them."""
    if isinstance(value, str):
        return (_text(value, path),)
    if not isinstance(value, list) or not value:
        raise FieldError(path, f"expected names; got {found(value)}")
    return tuple(_text(item, f"{path}[{i}]") for i, item in enumerate(value))


def _number(value: Any, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FieldError(path, f"expected a number that is not negative; got {found(value)}")
    return value
