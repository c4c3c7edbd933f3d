"""Timeline: changes to a cluster during a simulation, with their times.

A document of kind Timeline (bayplan.dev/v1) has a list of events, each with a time and what is
added, changed or removed. An annotation of an object can also state when it is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

import msgspec

from ..api.custom import find_custom_kind, readable_kinds
from ..api.decode import UnknownObject, iter_objects
from ..api.durations import EXPECTED, parse_duration
from ..api.kinds import KINDS, FieldError, Kind
from ..api.meta import Wire
from ..api.own_documents import API_VERSION
from ..cluster.objects import ClusterObject
from ..errors import DecodeError

KIND = "Timeline"
CREATED_AT = "bayplan.dev/created-at"
FIELDS = ("at", "add", "change", "remove")


class TimelineTarget(msgspec.Struct, frozen=True):
    """Names an object; written `node/worker-a1` or `pod/shop/web-1`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind.lower(), self.namespace, self.name) if part)


class ObjectPatch(msgspec.Struct, frozen=True):
    """A JSON merge patch, and its object."""

    ref: TimelineTarget
    patch: Mapping[str, Any]


class TimelineEvent(msgspec.Struct, frozen=True):
    """The changes at one moment, in the order add, change, remove."""

    at_s: float
    add: tuple[ClusterObject, ...] = ()
    change: tuple[ObjectPatch, ...] = ()
    remove: tuple[TimelineTarget, ...] = ()


class Timeline(msgspec.Struct, frozen=True):
    """Events, in input order."""

    events: tuple[TimelineEvent, ...]

    kind: ClassVar[str] = KIND
    name: ClassVar[str] = ""
    namespace: ClassVar[str] = ""
    key: ClassVar[str] = ""


class TimelineWire(Wire, frozen=True):
    """A timeline on the wire: each event is decoded by hand, as patches need their nulls."""

    events: Any = None


def created_at(obj: ClusterObject) -> float:
    """When the object is added, in seconds, by its annotation; 0: at the start."""
    text = obj.annotations.get(CREATED_AT)
    return 0.0 if text is None else parse_duration(text) or 0.0


def created_at_problem(obj: ClusterObject) -> str | None:
    """The fault of the object's arrival annotation; None when it is valid or absent."""
    text = obj.annotations.get(CREATED_AT)
    if text is None or parse_duration(text) is not None:
        return None
    return f'{EXPECTED}; got "{text}"'


def build_timeline(wire: TimelineWire) -> Timeline:
    """Make a timeline; raises FieldError where it is invalid."""
    if not isinstance(wire.events, list):
        raise FieldError("events", f"expected a list of events; got {found(wire.events)}")
    return Timeline(tuple(_event(tree, f"events[{i}]") for i, tree in enumerate(wire.events)))


def _event(tree: Any, path: str) -> TimelineEvent:
    if not isinstance(tree, Mapping):
        raise FieldError(path, f"expected an object with at and what happens; got {found(tree)}")
    for name in tree:
        if name not in FIELDS:
            raise FieldError(f"{path}.{name}", "expected at, add, change or remove")
    event = TimelineEvent(
        at_s=_moment(tree.get("at"), f"{path}.at"),
        add=tuple(obj for at, item in _items(tree, "add", path) for obj in added_objects(item, at)),
        change=tuple(read_change(item, at) for at, item in _items(tree, "change", path)),
        remove=tuple(parse_ref(item, at) for at, item in _items(tree, "remove", path)),
    )
    if not (event.add or event.change or event.remove):
        raise FieldError(path, "expected add, change or remove; got none of them")
    return event


def _moment(value: Any, path: str) -> float:
    moment = None if isinstance(value, bool) else parse_duration(str(value))
    if moment is None:
        raise FieldError(path, f"{EXPECTED}; got {found(value)}")
    return moment


def _items(tree: Mapping[str, Any], name: str, path: str) -> Iterator[tuple[str, Any]]:
    """The entries of a list, each with its path."""
    items = tree.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        raise FieldError(f"{path}.{name}", f"expected a list; got {found(items)}")
    for i, item in enumerate(items):
        yield f"{path}.{name}[{i}]", item


def added_objects(tree: Any, path: str) -> Iterator[ClusterObject]:
    """The objects of a manifest or a list of them; raises FieldError where it is invalid."""
    try:
        objects = list(iter_objects(tree))
    except DecodeError as error:
        where = f"{path}: {error.where}" if error.where else path
        raise FieldError(where, error.problem) from None
    for obj in objects:
        if isinstance(obj, UnknownObject | Timeline):
            problem = f"expected an object that affects scheduling; got a {obj.kind}"
            raise FieldError(path, problem)
        yield cast(ClusterObject, obj)


def read_change(tree: Any, path: str) -> ObjectPatch:
    """Decode a merge patch with kind and name of its object; raises FieldError where it is invalid."""
    metadata = tree.get("metadata") if isinstance(tree, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        raise FieldError(f"{path}.metadata.name", "expected the name of an object; got none")
    word = str(tree.get("kind"))
    kind = find_custom_kind(str(tree.get("apiVersion")), word) or KINDS.get(word)
    if kind is None or word == KIND:
        raise FieldError(f"{path}.kind", f"expected a kind we know; got {found(tree.get('kind'))}")
    space = (metadata.get("namespace") or "default") if kind.is_namespaced else ""
    return ObjectPatch(TimelineTarget(kind.name, space, metadata["name"]), tree)


def parse_ref(text: Any, path: str) -> TimelineTarget:
    """Parse `kind/name` or `kind/namespace/name`; raises FieldError otherwise."""
    expected = "expected kind/name or kind/namespace/name"
    parts = text.split("/") if isinstance(text, str) else []
    if len(parts) not in (2, 3) or not all(parts):
        raise FieldError(path, f"{expected}; got {found(text)}")
    known = readable_kinds() | {name.lower(): kind for name, kind in KINDS.items() if name != KIND}
    kind = known.get(parts[0].lower())
    if kind is None:
        raise FieldError(path, f"{expected} of a kind we know; got {found(text)}")
    if not kind.is_namespaced and len(parts) == 3:
        raise FieldError(path, f"{expected[: len('expected kind/name')]}; got {found(text)}")
    space = "" if not kind.is_namespaced else parts[1] if len(parts) == 3 else "default"
    return TimelineTarget(kind.name, space, parts[-1])


def found(value: Any) -> str:
    """A value as it is shown in an error."""
    match value:
        case None:
            return "none"
        case str():
            return f'"{value}"'
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list():
            return "a list"
    return "an object"


KINDS[KIND] = Kind(KIND, API_VERSION, TimelineWire, build_timeline, is_namespaced=False)
