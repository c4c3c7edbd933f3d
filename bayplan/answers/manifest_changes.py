"""Manifest changes: modifications of objects as data that can be applied to manifests.

Paths are JSON pointers (RFC 6901). A field change has the meaning it has in a JSON patch, with two
additions: missing parents are created, and a list item that moved is found by its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from ..api.wire.decode import decode_object
from ..api.wire.encode import to_dict
from ..cluster.objects.object_index import ClusterObject
from ..errors import InputError


class Data(msgspec.Struct, kw_only=True, rename="camel"):
    """Base of the parts of an answer."""

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts and lists."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document


DEFAULT = "default"


class ChangeKind(StrEnum):
    """Operation on a field or on a whole object."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    CREATE = "create"
    DELETE = "delete"


class ObjectRef(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Identity of an object; cluster-scoped kinds have the namespace ""."""

    kind: str
    namespace: str = ""
    name: str

    @classmethod
    def of(cls, obj: ClusterObject) -> ObjectRef:
        """The reference of `obj`."""
        return cls(kind=obj.kind, namespace=obj.namespace, name=obj.name)

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectChange(Data, kw_only=True):
    """One change: the field at `path` of `object`, or the whole object, from `from_` to `to`.

    `text` describes it in words.
    """

    kind: ChangeKind
    object: ObjectRef
    path: str = ""
    from_: Any = msgspec.field(default=None, name="from")
    to: Any = None
    text: str = ""


def pointer(*parts: str | int) -> str:
    """The JSON pointer for `parts`."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def apply_changes(
    manifests: Iterable[Mapping[str, Any]], changes: Iterable[ObjectChange]
) -> list[dict[str, Any]]:
    """Return the manifests with the changes made, in order; the given ones are not modified.

    Raises InputError when an object or a field does not exist.
    """
    objects: dict[ObjectRef, dict[str, Any]] = {}
    for manifest in manifests:
        objects[_ref_of(manifest)] = dict(manifest)
    for change in changes:
        ref = change.object
        if change.kind is ChangeKind.CREATE:
            objects[ref] = dict(change.to)
            continue
        if ref not in objects and ref.namespace == DEFAULT:  # which a manifest may omit
            ref = ObjectRef(kind=ref.kind, name=ref.name)
        if ref not in objects:
            raise InputError(f"{ref.kind} {ref.key}: expected an object to change; got none")
        if change.kind is ChangeKind.DELETE:
            del objects[ref]
        else:
            objects[ref] = patched(objects[ref], change)
    return list(objects.values())


def changed_object(obj: ClusterObject, changes: Sequence[ObjectChange]) -> ClusterObject:
    """The object with field changes applied."""
    manifest = to_dict(obj)
    for change in changes:
        manifest = patched(manifest, change)
    return decode(manifest)


def decode(manifest: Mapping[str, Any]) -> ClusterObject:
    """The object that a manifest describes."""
    obj: Any = decode_object(dict(manifest))
    return obj  # type: ignore[no-any-return]  # of the kind of the manifest


def patched(manifest: Mapping[str, Any], change: ObjectChange) -> dict[str, Any]:
    """The manifest with one field change applied."""
    parts = [p.replace("~1", "/").replace("~0", "~") for p in change.path.split("/")[1:]]
    where = f"{change.object.kind} {change.object.key}: {change.path}"
    if not parts:
        raise InputError(f"{where}: expected the path of a field; got none")
    result: dict[str, Any] = _patched(dict(manifest), parts, change, where)
    return result


def _patched(holder: Any, parts: Sequence[str], change: ObjectChange, where: str) -> Any:
    """A copy of `holder` with the change applied below it."""
    part, rest = parts[0], parts[1:]
    if isinstance(holder, list):
        return _patched_list(list(holder), part, rest, change, where)
    if holder is None:
        holder = {}
    if not isinstance(holder, Mapping):
        raise InputError(f"{where}: expected a field that has fields; got {holder!r}")
    copy = dict(holder)
    if rest:
        below = copy.get(part)
        if below is None and rest[0] in ("-", "0"):
            below = []
        copy[part] = _patched(below, rest, change, where)
    elif change.kind is ChangeKind.REMOVE:
        if part not in copy:
            raise InputError(f"{where}: expected a field to remove; got none")
        del copy[part]
    else:
        copy[part] = change.to
    return copy


def _patched_list(
    items: list[Any], part: str, rest: Sequence[str], change: ObjectChange, where: str
) -> list[Any]:
    if part == "-":
        return [*items, change.to]
    at = int(part) if part.isdecimal() else -1
    if not rest and change.kind is not ChangeKind.ADD:
        at = _find(items, at, change.from_)
    if not 0 <= at < len(items) + (change.kind is ChangeKind.ADD and not rest):
        raise InputError(f"{where}: expected an item of the list; got none")
    if rest:
        items[at] = _patched(items[at], rest, change, where)
    elif change.kind is ChangeKind.REMOVE:
        del items[at]
    elif change.kind is ChangeKind.ADD:
        items.insert(at, change.to)
    else:
        items[at] = change.to
    return items


def _find(items: Sequence[Any], at: int, wanted: Any) -> int:
    """Index of the item: its original one, or that of an item that contains all of `wanted`."""
    if wanted is None or (0 <= at < len(items) and _says(items[at], wanted)):
        return at
    return next((i for i, item in enumerate(items) if _says(item, wanted)), -1)


def _says(item: Any, wanted: Any) -> bool:
    """Whether `item` contains everything in `wanted`."""
    if isinstance(wanted, Mapping):
        return isinstance(item, Mapping) and all(
            _says(item.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(item, list | tuple)
            and len(item) == len(wanted)
            and all(map(_says, item, wanted))
        )
    return bool(item == wanted)


def _ref_of(manifest: Mapping[str, Any]) -> ObjectRef:
    metadata = manifest.get("metadata") or {}
    return ObjectRef(
        kind=manifest.get("kind", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
    )
