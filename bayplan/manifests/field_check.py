"""Field check: the fields in manifests that the API of Kubernetes does not have.

Checked are objects of all built-in kinds; custom resources and our own documents are not. Objects that a Timeline
adds or changes are checked like those of a manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec

from ..api.schema.unknown import UnknownField, schema_type, strict_type, unknown_fields
from ..api.wire.decode import label_of
from ..api.wire.kinds import KINDS, group_of
from ..api.wire.served_versions import BUILT_IN_GROUPS
from .timeline import KIND as TIMELINE

WALKED_UP_TO = 1 << 16
"""Shorter texts are walked at once: making the decoders takes longer."""


class MisfitField(NamedTuple):
    """An unknown field, and its object: the position among those of the document, and the label in messages."""

    item: int
    label: str
    field: UnknownField
    is_stored: bool = False
    """Whether an API server stored the object, which then has the field in another version."""


class ObjectPlace(NamedTuple):
    """An object within a document, and the kind and version from the enclosing list."""

    tree: Any
    api_version: str = ""
    kind: str = ""
    path: str = ""


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


HEADS = msgspec.json.Decoder(_Head)
ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def unknown_in_document(text: bytes) -> Iterator[MisfitField]:
    """The unknown fields of a JSON document, an object or a list."""
    if len(text) > WALKED_UP_TO:
        head = HEADS.decode(text)
        if head.items is not None and head.kind.endswith("List"):
            yield from _unknown_in_raw(head.items, head.kind, head.api_version)
            return
    yield from _unknown_in(objects_within(ObjectPlace(msgspec.json.decode(text))))


def unknown_in_items(text: bytes, list_kind: str) -> Iterator[MisfitField]:
    """The unknown fields of the items, a JSON array, of a list of that kind."""
    if len(text) > WALKED_UP_TO:
        try:
            _strict(list_kind, is_list=True).decode(text)
        except msgspec.ValidationError:
            pass  # one has an unknown field, or is of a kind that is not read
        else:
            return
    yield from _unknown_in_raw(ITEMS.decode(text), list_kind)


def _unknown_in_raw(
    items: list[msgspec.Raw], list_kind: str, api_version: str = ""
) -> Iterator[MisfitField]:
    """The unknown fields of the items of a list; only items that are refused by strict types are walked."""
    decoder = _strict(list_kind, is_list=False)
    kind, number = list_kind.removesuffix("List"), 0
    for item in items:
        try:
            decoder.decode(item)
        except msgspec.ValidationError:
            objects = list(
                objects_within(
                    ObjectPlace(msgspec.json.decode(item), api_version if kind else "", kind)
                )
            )
            for misfit in _unknown_in(objects):
                yield misfit._replace(item=number + misfit.item)
            number += len(objects)
        else:
            number += 1


def unknown_in_part(tree: Any, path: str) -> list[str]:
    """The unknown fields of an object or a patch at `path` of a document of ours, each as the text of a remark."""
    return [
        f"{path}.{misfit.field.path}: {misfit.label}: {unknown_text(misfit.field.expected)}"
        for misfit in _unknown_in(objects_within(ObjectPlace(tree)))
    ]


def unknown_text(expected: str) -> str:
    """The message about an unknown field."""
    return f"expected {expected}; got an unknown field"


def checked_type(api_version: str, kind: str) -> str:
    """The name of a kind in the table of fields; empty if it is not in the table."""
    known = KINDS.get(kind)
    if not api_version:
        return schema_type(known.api_version, kind) if known is not None else ""
    is_built_in = group_of(api_version) in BUILT_IN_GROUPS
    return schema_type(api_version, kind) if is_built_in else ""


@cache
def _strict(list_kind: str, is_list: bool) -> msgspec.json.Decoder[Any]:
    """Decodes an item of a list of that kind, or an array of items, unless there may be unknown fields.

    An array of a List is one of pods and nodes: to make the types of all kinds takes longer than to decode thousands.
    """
    item_kind = list_kind.removesuffix("List")
    if item_kind:
        name = checked_type("", item_kind)
        item: Any = strict_type(name) if name else msgspec.Raw
    else:
        kinds = ("Pod", "Node") if is_list else KINDS
        names = {kind: checked_type("", kind) for kind in kinds}
        item = reduce(or_, (strict_type(name, tag=kind) for kind, name in names.items() if name))
    return msgspec.json.Decoder(list[item] if is_list else item)


def _unknown_in(objects: Iterable[ObjectPlace]) -> Iterator[MisfitField]:
    for i, place in enumerate(objects):
        is_timeline = place.kind == TIMELINE and place.kind in KINDS
        for part in timeline_parts(place.tree) if is_timeline else (place,):
            name = checked_type(part.api_version, part.kind)
            if name:
                for path, expected in unknown_fields(part.tree, name):
                    label = label_of(place.tree, place.kind)
                    where = f"{part.path}.{path}" if part.path else path
                    yield MisfitField(i, label, UnknownField(where, expected), _is_stored(place))


def objects_within(place: ObjectPlace) -> Iterator[ObjectPlace]:
    """The object, or those of a list and of lists in it, each with its own version and kind."""
    tree, api_version, kind, path = place
    if not isinstance(tree, Mapping):
        return
    if tree.get("kind"):
        api_version, kind = _text(tree.get("apiVersion")), _text(tree["kind"])
    items = tree.get("items")
    if kind.endswith("List") and isinstance(items, list):
        item_kind = kind.removesuffix("List")
        for item in items:
            yield from objects_within(
                ObjectPlace(item, api_version if item_kind else "", item_kind, path)
            )
    else:
        yield ObjectPlace(tree, api_version, kind, path)


def timeline_parts(
    timeline: Mapping[str, Any], words: Sequence[str] = ("add", "change")
) -> Iterator[ObjectPlace]:
    """The parts of a timeline's events under these words, each with its path."""
    for i, event in enumerate(timeline.get("events") or ()):
        for word in words:
            for j, tree in enumerate(event.get(word) or ()):
                yield from objects_within(ObjectPlace(tree, path=f"events[{i}].{word}[{j}]"))


def _is_stored(place: ObjectPlace) -> bool:
    metadata = place.tree.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("uid"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
