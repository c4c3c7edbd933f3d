"""Object check: objects in manifests that kube-apiserver would refuse to create, in its words.

Objects that an API server stored already, which have a uid or a resource version, are not checked: it may have stored
them under earlier rules, and accepts them as they are. Containers without an image pass, with a note: sketches lack it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..api.meta import KubeObject
from ..api.pod import Pod
from ..api.rules.field_causes import Cause
from ..api.rules.object_validation import creation_causes, name_causes, refusal_text
from ..api.schema.input_check import WrongTypeError
from ..api.wire.decode import label_of
from ..api.wire.kinds import KINDS
from ..api.wire.nulls import without_nulls
from ..api.workloads import pod_template
from .field_check import HEADS, ITEMS, WALKED_UP_TO, ObjectPlace, objects_within, timeline_parts
from .timeline import KIND as TIMELINE

MAX_REMEMBERED = 4096
"""Contents that are remembered as valid; with more of them, all are dropped."""
ABSENT = msgspec.Raw(b"")
BY_METADATA = frozenset({"Pod", "Node"})
"""Kinds of which there are many. Rules about their metadata read nothing else, and other rules read no metadata."""
_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PLAIN_NAME = rf"{_LABEL}(?:\.{_LABEL}){{0,2}}"
"""The form of most names of pods and nodes, all of which are valid."""
_NODE_NAME = re.compile(rf'"nodeName"\s*:\s*"{_PLAIN_NAME}"'.encode())


class InvalidObject(NamedTuple):
    """An object that would be refused: its position in the document, its label in messages, and the reason."""

    item: int
    label: str
    reason: str


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """All fields of metadata; most objects of a list differ in few of them."""

    name: Any = None
    uid: Any = None
    resource_version: Any = None
    creation_timestamp: Any = None
    namespace: msgspec.Raw = ABSENT
    labels: msgspec.Raw = ABSENT
    annotations: msgspec.Raw = ABSENT
    owner_references: msgspec.Raw = ABSENT
    generate_name: msgspec.Raw = ABSENT
    finalizers: msgspec.Raw = ABSENT
    managed_fields: msgspec.Raw = ABSENT
    self_link: msgspec.Raw = ABSENT
    generation: msgspec.Raw = ABSENT
    deletion_timestamp: msgspec.Raw = ABSENT
    deletion_grace_period_seconds: msgspec.Raw = ABSENT

    @property
    def is_written(self) -> bool:
        """Whether it has only fields that are written by hand: the types of the others are checked with the object."""
        by_server = (
            self.self_link,
            self.generation,
            self.deletion_timestamp,
            self.deletion_grace_period_seconds,
        )
        return not any(map(bytes, by_server))

    @property
    def is_stored(self) -> bool:
        """Whether an API server has the object."""
        return bool(self.uid or self.resource_version)

    def but_name(self) -> tuple[object, ...]:
        """All of it but the name, if it `is_written`."""
        fields = (
            self.namespace,
            self.labels,
            self.annotations,
            self.owner_references,
            self.generate_name,
            self.finalizers,
            self.managed_fields,
        )
        return (self.creation_timestamp, *map(bytes, fields))


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    api_version: Any = ""
    kind: Any = ""
    metadata: _Metadata | None = None
    spec: msgspec.Raw = ABSENT
    status: msgspec.Raw = ABSENT


class _Named(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] | None = None


class _Kind(msgspec.Struct, frozen=True):
    kind: Any = None


_KINDS = msgspec.json.Decoder(_Kind)
_LIGHT = msgspec.json.Decoder(_Item)
_NAMED = msgspec.json.Decoder(_Named)
_is_plain = re.compile(_PLAIN_NAME).fullmatch
NONE_INVALID: Sequence[InvalidObject] = ()


class ObjectCheck:
    """Checks the objects of a file, piece by piece; of pods and nodes that equal a valid one in part, only the rest is
    checked.
    """

    def __init__(self) -> None:
        self._valid: set[tuple[object, ...]] = set()
        """Contents that are valid apart from the metadata, and with all of it but the name."""

    def in_document(self, text: bytes) -> Iterator[InvalidObject]:
        """The objects of a JSON document, an object or a list, that would be refused."""
        if len(text) > WALKED_UP_TO:
            head = HEADS.decode(text)
            if head.items is not None and head.kind.endswith("List"):
                yield from self._among(head.items, head.kind, head.api_version)
                return
        elif _KINDS.decode(text).kind in BY_METADATA:
            yield from self._among([msgspec.Raw(text)])
            return
        for i, place in enumerate(objects_within(ObjectPlace(msgspec.json.decode(text)))):
            yield from _invalid(i, place)

    def in_items(self, text: bytes, list_kind: str) -> Iterator[InvalidObject]:
        """The items, a JSON array, of a list of that kind that would be refused."""
        return self._among(ITEMS.decode(text), list_kind)

    def _among(
        self, items: Iterable[msgspec.Raw], list_kind: str = "", api_version: str = ""
    ) -> Iterator[InvalidObject]:
        item_kind, number = list_kind.removesuffix("List"), 0
        around = ObjectPlace(None, api_version if item_kind else "", item_kind)
        for item in items:
            light = _LIGHT.decode(item)
            kind, metadata = light.kind or item_kind, light.metadata or _Metadata()
            if kind in BY_METADATA and metadata.is_stored:
                found, count = NONE_INVALID, 1
            elif kind in BY_METADATA and metadata.is_written:
                found, count = self._judge_like(item, number, around, light)
            else:
                found, count = _judge(item, number, around)
            yield from found
            number += count

    def _judge_like(
        self, item: msgspec.Raw, number: int, around: ObjectPlace, light: _Item
    ) -> tuple[Sequence[InvalidObject], int]:
        """Judge a pod or a node; see `_judge`."""
        kind, metadata = light.kind or around.kind, light.metadata or _Metadata()
        apart = (light.api_version, kind, _on_some_node(bytes(light.spec)), bytes(light.status))
        alike, name = (*apart, *metadata.but_name()), metadata.name
        if alike in self._valid and isinstance(name, str) and _is_plain(name):
            return NONE_INVALID, 1
        if apart in self._valid:
            known = _NAMED.decode(item).metadata or {}
            causes = name_causes("v1", kind, known)
            if causes:
                return [_refused(number, "v1", kind, {"metadata": known}, causes)], 1
            found, count = NONE_INVALID, 1
        else:
            found, count = _judge(item, number, around)
        if not found:
            if len(self._valid) >= MAX_REMEMBERED:
                self._valid.clear()
            self._valid |= {apart, alike}
        return found, count


def _judge(
    item: msgspec.Raw, number: int, around: ObjectPlace
) -> tuple[Sequence[InvalidObject], int]:
    """The faults of an item, or of the objects in it, and the number of these."""
    places = list(objects_within(around._replace(tree=msgspec.json.decode(item))))
    found = [one for i, each in enumerate(places) for one in _invalid(number + i, each)]
    return found, len(places)


def _on_some_node(spec: bytes) -> bytes:
    """The spec of a pod with the same node name for all: rules read whether it is set, not its value."""
    at = spec.find(b'"nodeName"')
    found = _NODE_NAME.match(spec, at) if at > 0 and spec[at - 1 : at] != b"\\" else None
    return spec if found is None else spec[:at] + b'"nodeName"' + spec[found.end() :]


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
