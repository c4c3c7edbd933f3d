"""Object check: objects in manifests that kube-apiserver would refuse to create, in its words.

Objects that an API server stored already, which have a uid or a resource version, are not checked: it may have stored
them under earlier rules, and accepts them as they are. Containers without an image pass, with a note: sketches lack it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..api.meta import KubeObject
from ..api.pod import Pod
from ..api.rules.creation import WrongTypeError, creation_causes, name_causes, refusal_text
from ..api.rules.field_causes import Cause
from ..api.wire.decode import label_of, without_nulls
from ..api.wire.kinds import KINDS
from ..api.workloads import pod_template
from .field_check import WALKED_UP_TO, ObjectPlace, objects_within, timeline_parts
from .timeline import KIND as TIMELINE

MAX_REMEMBERED = 4096
"""Pods and nodes, apart from their metadata, that are remembered as valid."""
BY_METADATA = frozenset({"Pod", "Node"})
"""Kinds of which there are many. Rules about their metadata read nothing else, and other rules read no metadata."""


class InvalidObject(NamedTuple):
    """An object that would be refused: its position in the document, its label in messages, and the reason."""

    item: int
    label: str
    reason: str


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")
    status: msgspec.Raw = msgspec.Raw(b"")


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_HEADS = msgspec.json.Decoder(_Head)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_LIGHT = msgspec.json.Decoder(_Item)


def invalid_in_document(text: bytes) -> Iterator[InvalidObject]:
    """The objects of a JSON document, an object or a list, that would be refused."""
    if len(text) > WALKED_UP_TO:
        head = _HEADS.decode(text)
        if head.items is not None and head.kind.endswith("List"):
            yield from _invalid_in_raw(head.items, head.kind, head.api_version)
            return
    for i, place in enumerate(objects_within(ObjectPlace(msgspec.json.decode(text)))):
        yield from _invalid(i, place)


def invalid_in_items(text: bytes, list_kind: str) -> Iterator[InvalidObject]:
    """The items, a JSON array, of a list of that kind that would be refused."""
    yield from _invalid_in_raw(_ITEMS.decode(text), list_kind, "")


def _invalid_in_raw(
    items: list[msgspec.Raw], list_kind: str, api_version: str
) -> Iterator[InvalidObject]:
    """Judge the items of a long list; pods and nodes that are like a valid one by their metadata alone."""
    item_kind, number = list_kind.removesuffix("List"), 0
    valid: set[tuple[str, str, bytes, bytes]] = set()
    for item in items:
        light = _LIGHT.decode(item)
        metadata, kind = light.metadata or {}, light.kind or item_kind
        like = (light.api_version, kind, bytes(light.spec), bytes(light.status))
        is_stored = _is_stored(metadata)
        if kind in BY_METADATA and (is_stored or like in valid):
            causes = [] if is_stored else name_causes("v1", kind, metadata)
            if causes:
                yield _refused(number, "v1", kind, {"metadata": metadata}, causes)
            number += 1
            continue
        place = ObjectPlace(msgspec.json.decode(item), api_version if item_kind else "", item_kind)
        places = list(objects_within(place))
        found = [one for i, each in enumerate(places) for one in _invalid(number + i, each)]
        yield from found
        number += len(places)
        if kind in BY_METADATA and not found and len(valid) < MAX_REMEMBERED:
            valid.add(like)


def _invalid(item: int, place: ObjectPlace) -> Iterator[InvalidObject]:
    if place.kind == TIMELINE and place.kind in KINDS:
        for part in timeline_parts(place.tree, ("add",)):
            for found in _invalid(item, part):
                label = label_of(place.tree, place.kind)
                yield InvalidObject(item, label, f"{part.path}: {found.reason}")
        return
    tree = place.tree
    metadata = tree.get("metadata")
    if isinstance(metadata, Mapping) and _is_stored(metadata):
        return
    known = KINDS.get(place.kind)
    if not place.api_version and known is not None:
        reason = f"apiVersion: expected {known.api_version}; got none"
        yield InvalidObject(item, label_of(tree, place.kind), reason)
    api_version = place.api_version or (known.api_version if known is not None else "")
    try:
        causes = [
            cause
            for cause in creation_causes(api_version, place.kind, without_nulls(tree))
            if not _is_image(cause)
        ]
    except WrongTypeError as error:
        yield InvalidObject(item, label_of(tree, place.kind), str(error))
        return
    if causes:
        yield _refused(item, api_version, place.kind, tree, causes)


def _refused(
    item: int, api_version: str, kind: str, tree: Mapping[str, Any], causes: Sequence[Cause]
) -> InvalidObject:
    name = (tree.get("metadata") or {}).get("name")
    reason = refusal_text(api_version, kind, name if isinstance(name, str) else "", causes)
    return InvalidObject(item, label_of(tree, kind), reason)


def image_note(objects: Iterable[object]) -> str:
    """Note on new pods and workloads whose containers lack an image; empty if there are none."""
    lacking: dict[int, bool] = {}
    count = 0
    for obj in objects:
        if isinstance(obj, (Pod, KubeObject)) and obj.uid:
            continue  # an API server stored it
        template = pod_template(obj)
        spec = obj.spec if isinstance(obj, Pod) else template.spec if template is not None else None
        if spec is None:
            continue
        if id(spec) not in lacking:
            containers = (*(spec.containers or ()), *(spec.init_containers or ()))
            lacking[id(spec)] = not all(container.image for container in containers)
        count += lacking[id(spec)]
    if not count:
        return ""
    have = "1 object has" if count == 1 else f"{count:,} objects have"
    return f"{have} containers without an image, which kube-apiserver would refuse"


def _is_image(cause: Cause) -> bool:
    """Whether the image of a container is missing: a sketch of a workload needs none to be placed."""
    return cause.field.endswith("].image") and cause.reason == "FieldValueRequired"


def _is_stored(metadata: Mapping[str, Any]) -> bool:
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))
