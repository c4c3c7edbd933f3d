"""Apply: server-side apply, in which each manager owns the fields it sets.

Mirrors sigs.k8s.io/structured-merge-diff: merging, removal of fields that a manager no longer sets,
and conflicts. Only managers that apply are kept in `managedFields`; one that updates owns nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import msgspec

from ...api.schema.fields import FIELDS, Field, FieldType

Object = dict[str, Any]
Path = tuple[str, ...]
"""Steps as in FieldsV1: `f:name`, `k:{"name":"web"}`, `v:"value"`; `.` is the value itself."""

SELF = "."
_NOT_OWNED = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "uid",
                "generation",
                "managedFields",
                "resourceVersion",
                "selfLink",
            )
        ),
    }
)
_ENCODER = msgspec.json.Encoder(order="sorted")


class ApplyConflictError(Exception):
    """Other managers own fields that would change: pairs of manager and path."""

    def __init__(self, conflicts: list[tuple[str, str]]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class Manager(NamedTuple):
    """The manager, its version of the API, and the time."""

    name: str
    api_version: str
    time: str
    subresource: str = ""


class FieldLookup(Protocol):
    """Gives the fields of types: `Fields`, or the schema of a custom resource."""

    def of(self, type_name: str, /) -> Mapping[str, Field]:
        """The fields of a type."""


def apply(
    live: Object,
    config: Object,
    type_name: str,
    manager: Manager,
    force: bool = False,
    fields: FieldLookup = FIELDS,
) -> Object:
    """`live`, empty for a new object, with the manager's configuration applied; raises
    ApplyConflictError unless forced."""
    kind = FieldType("struct", type_name)
    config = deepcopy(config)
    (config.get("metadata") or {}).pop("managedFields", None)
    wanted = {path for path in _paths(fields, config, kind) if path[:2] not in _NOT_OWNED}
    entries = list((live.get("metadata") or {}).get("managedFields") or ())
    owned = {i: set(_read(entry.get("fieldsV1") or {})) for i, entry in enumerate(entries)}
    mine = next((i for i, entry in enumerate(entries) if _is_of(entry, manager)), None)
    others = {i: paths for i, paths in owned.items() if i != mine}
    conflicts = [
        (i, path)
        for i, paths in others.items()
        for path in sorted(wanted & paths)
        if path[-1] != SELF and _get(live, path) != _get(config, path)
    ]
    if conflicts and not force:
        raise ApplyConflictError([(str(entries[i].get("manager")), _text(p)) for i, p in conflicts])
    for i, path in conflicts:
        owned[i].discard(path)
    merged: Object = _merge(fields, deepcopy(live), config, kind, None)
    kept = wanted.union(*others.values()) if others else wanted
    # Whole items first: without its key an item could no longer be found.
    before = owned.get(-1 if mine is None else mine, ())
    given_up = sorted(before, key=lambda path: (path[-1] != SELF, -len(path)))
    for path in given_up:
        if path not in kept:
            _remove(merged, path)
    _write_entries(merged, entries, owned, mine, manager, wanted)
    return merged


def _write_entries(
    merged: Object,
    entries: list[Object],
    owned: Mapping[int, set[Path]],
    mine: int | None,
    manager: Manager,
    wanted: set[Path],
) -> None:
    """Record the owners of the fields."""
    written = []
    for i, entry in enumerate(entries):
        if i != mine and owned[i]:
            written.append({**entry, "fieldsV1": _tree(owned[i])})
    entry = {
        "manager": manager.name,
        "operation": "Apply",
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _tree(wanted),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    if mine is not None and entries[mine].get("fieldsV1") == entry["fieldsV1"]:
        entry["time"] = entries[mine].get("time")  # no change: the object stays as it is
    merged.setdefault("metadata", {})["managedFields"] = [*written, entry]


def _is_of(entry: Mapping[str, Any], manager: Manager) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "") == (
        manager.name,
        "Apply",
        manager.subresource,
    )


# Which paths a configuration sets


def _paths(
    fields: FieldLookup, value: Any, kind: FieldType | None, field: Field | None = None
) -> Iterator[Path]:
    """The paths of all values below, relative to here; the empty path is here itself."""
    if value is None or (field is not None and field.is_atomic):
        yield ()
    elif isinstance(value, dict):
        if not value:
            yield ()
        for key, item in value.items():
            inner = _field_of(fields, kind, key)
            for path in _paths(fields, item, inner.type if inner else _item_of(kind), inner):
                yield (f"f:{key}", *path)
    elif isinstance(value, list) and field is not None and field.list_keys is not None:
        if not value:
            yield ()
        for item in value:
            step = _element_step(item, field)
            yield (step, SELF) if step.startswith("k:") else (step,)
            if isinstance(item, dict):
                for path in _paths(fields, item, _item_of(kind)):
                    yield (step, *path)
    else:
        yield ()


def _field_of(fields: FieldLookup, kind: FieldType | None, key: str) -> Field | None:
    return fields.of(kind.name).get(key) if kind is not None and kind.form == "struct" else None


def _item_of(kind: FieldType | None) -> FieldType | None:
    return kind.item if kind is not None else None


def _element_step(item: Any, field: Field) -> str:
    if not field.list_keys or not isinstance(item, dict):
        return "v:" + _ENCODER.encode(item).decode()
    keys = {key: item.get(key, _default_key(key)) for key in field.list_keys}
    return "k:" + _ENCODER.encode(keys).decode()


def _default_key(key: str) -> Any:
    return "TCP" if key == "protocol" else ""


# Merging, finding, removing


def _merge(
    fields: FieldLookup, live: Any, config: Any, kind: FieldType | None, field: Field | None
) -> Any:
    if field is not None and field.is_atomic:
        return config
    if isinstance(config, dict) and isinstance(live, dict):
        for key, value in config.items():
            inner = _field_of(fields, kind, key)
            below = inner.type if inner else _item_of(kind)
            live[key] = _merge(fields, live.get(key), value, below, inner)
        return live
    if isinstance(config, list) and field is not None and field.list_keys is not None:
        merged = list(live) if isinstance(live, list) else []
        steps = [_element_step(item, field) for item in merged]
        for item in config:
            step = _element_step(item, field)
            if step in steps:
                place = steps.index(step)
                merged[place] = _merge(fields, merged[place], item, _item_of(kind), None)
            else:
                merged.append(item)
                steps.append(step)
        return merged
    return config


def _locate(value: Any, step: str) -> Any:
    """The key or index of a step within `value`; None when there is none."""
    if step.startswith("f:"):
        key = step[2:]
        return key if isinstance(value, dict) and key in value else None
    if not isinstance(value, list):
        return None
    wanted = msgspec.json.decode(step[2:])
    for i, item in enumerate(value):
        if step.startswith("v:") and item == wanted:
            return i
        is_keyed = step.startswith("k:") and isinstance(item, dict)
        if is_keyed and all(item.get(k, _default_key(k)) == wish for k, wish in wanted.items()):
            return i
    return None


def _get(value: Any, path: Path) -> Any:
    for step in path:
        if step == SELF:
            return value
        key = _locate(value, step)
        if key is None:
            return None
        value = value[key]
    return value


def _remove(value: Any, path: Path) -> None:
    if path[-1] == SELF:
        path = path[:-1]
    for step in path[:-1]:
        key = _locate(value, step)
        if key is None:
            return
        value = value[key]
    key = _locate(value, path[-1])
    if key is not None and not (
        isinstance(value[key], dict) and path[-1].startswith("f:") and value[key]
    ):
        del value[key]


# FieldsV1


def _tree(paths: Iterable[Path]) -> Object:
    root: Object = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
    return root


def _read(tree: Mapping[str, Any]) -> Iterator[Path]:
    for step, below in tree.items():
        if not below:
            yield (step,)
        else:
            for path in _read(below):
                yield (step, *path)


def _text(path: Path) -> str:
    """The path as in error messages: `.spec.replicas`."""
    out = ""
    for step in path:
        if step.startswith("f:"):
            out += f".{step[2:]}"
        elif step.startswith("k:"):
            keys = msgspec.json.decode(step[2:])
            out += (
                "["
                + ",".join(f"{key}={_ENCODER.encode(v).decode()}" for key, v in keys.items())
                + "]"
            )
        elif step.startswith("v:"):
            out += f"[={step[2:]}]"
    return out
