"""Timeline: changes to a cluster during a simulation, with their times.

A document of kind Timeline (bayplan.dev/v1) has a list of events, each with a time and what is
added, changed or removed, and series of replicas over time, as a HorizontalPodAutoscaler would set
them. An annotation of an object can also state when it is added. A series that names a
HorizontalPodAutoscaler becomes one of its workload: the metrics of the autoscaler are not known here, and
the series has the replicas that it would want, within its `minReplicas` and `maxReplicas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NoReturn, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from ..api.custom import find_custom_kind, readable_kinds
from ..api.meta import Wire
from ..api.own_documents import API_VERSION
from ..api.pod_stages import StageRule
from ..api.text.durations import EXPECTED, parse_duration
from ..api.wire.decode import UnknownObject, iter_objects
from ..api.wire.kinds import KINDS, FieldError, Kind
from ..api.workloads import HorizontalPodAutoscaler
from ..cluster.objects.object_index import ClusterObject
from ..errors import DecodeError, InputError
from .document_fields import duration_of, fields_of, found

KIND = "Timeline"
CREATED_AT = "bayplan.dev/created-at"
FIELDS = ("at", "add", "change", "remove")
SERIES_FIELDS = ("target", "replicas", "minReplicas", "maxReplicas", "every", "until")
SCALED_KINDS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
MAX_POINTS = 100_000
"""Limit on the points of a repeated series."""
AUTOSCALER = HorizontalPodAutoscaler.kind
DEFAULT_MIN = 1
"""Kubernetes' default of minReplicas."""


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


class WorkloadScale(msgspec.Struct, frozen=True):
    """A number of replicas, as the scale subresource sets it."""

    ref: TimelineTarget
    replicas: int


class TimelineEvent(msgspec.Struct, frozen=True):
    """The changes at one moment, in the order add, change, scale, remove."""

    at_s: float
    add: tuple[ClusterObject, ...] = ()
    change: tuple[ObjectPatch, ...] = ()
    scale: tuple[WorkloadScale, ...] = ()
    remove: tuple[TimelineTarget, ...] = ()
    path: str = ""
    """Its place in the timeline, if it is not one of its `events`."""


class Timeline(msgspec.Struct, frozen=True):
    """Events, in input order, or the stages of pods, of a document of kind PodStages."""

    events: tuple[TimelineEvent, ...]
    stages: tuple[StageRule, ...] = ()

    kind: ClassVar[str] = KIND
    name: ClassVar[str] = ""
    namespace: ClassVar[str] = ""
    key: ClassVar[str] = ""


InputObject: TypeAlias = ClusterObject | Timeline
"""The input of a simulation."""


class TimelineWire(Wire, frozen=True):
    """A timeline on the wire: each event is decoded by hand, as patches need their nulls."""

    events: Any = None
    series: Any = None


def created_at(obj: ClusterObject) -> float:
    """Time when the object is added, in seconds, by its annotation; 0 for the start."""
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
    events = wire.events
    if events is None and wire.series is not None:
        events = []
    if not isinstance(events, list):
        raise FieldError("events", f"expected a list of events; got {found(wire.events)}")
    given = [_event(tree, f"events[{i}]") for i, tree in enumerate(events)]
    if wire.series is not None and not isinstance(wire.series, list):
        raise FieldError("series", f"expected a list of series; got {found(wire.series)}")
    for i, tree in enumerate(wire.series or ()):
        given += _series_events(tree, f"series[{i}]")
    return Timeline(tuple(given))


def _series_events(tree: Any, path: str) -> Iterator[TimelineEvent]:
    """A change of replicas for each point of a series, and for each time that it repeats."""
    tree = fields_of(tree, path, *SERIES_FIELDS)
    target = _series_target(tree.get("target"), f"{path}.target")
    if target.kind == AUTOSCALER:
        for name in ("minReplicas", "maxReplicas"):
            if name in tree:
                expected = "expected it in the HorizontalPodAutoscaler only"
                raise FieldError(f"{path}.{name}", f"{expected}; got {found(tree[name])}")
    points = list(_points(tree, path))
    for at_s in _repeats(tree, points, path):
        for i, (offset_s, replicas) in enumerate(points):
            if i and replicas == points[i - 1][1]:
                continue
            scale = (WorkloadScale(target, replicas),)
            yield TimelineEvent(at_s + offset_s, scale=scale, path=path)


def _series_target(text: Any, path: str) -> TimelineTarget:
    """A workload with replicas, or a HorizontalPodAutoscaler of the input (`DrivenAutoscalers`)."""
    parts = text.split("/") if isinstance(text, str) else []
    if len(parts) in (2, 3) and all(parts) and parts[0].lower() == AUTOSCALER.lower():
        return TimelineTarget(AUTOSCALER, parts[1] if len(parts) == 3 else "default", parts[-1])
    target = parse_ref(text, path)
    if target.kind not in SCALED_KINDS:
        expected = (
            f"expected a workload with replicas ({', '.join(SCALED_KINDS)}) or a {AUTOSCALER}"
        )
        raise FieldError(path, f"{expected}; got {found(text)}")
    return target


def _points(tree: Mapping[str, Any], path: str) -> Iterator[tuple[float, int]]:
    """The times of a series with the replicas from each on, within minReplicas and maxReplicas."""
    low = _count(tree.get("minReplicas", 0), f"{path}.minReplicas")
    high = tree.get("maxReplicas")
    most = None if high is None else _count(high, f"{path}.maxReplicas")
    if most is not None and most < low:
        raise FieldError(f"{path}.maxReplicas", f"expected minReplicas or more; got {most}")
    items = list(_items(tree, "replicas", path))
    if not items:
        raise FieldError(f"{path}.replicas", "expected a list of times and numbers; got none")
    last_s = -1.0
    for at, item in items:
        if not isinstance(item, Mapping) or set(item) != {"at", "replicas"}:
            raise FieldError(at, f"expected an object with at and replicas; got {found(item)}")
        at_s = duration_of(item["at"], f"{at}.at")
        if at_s <= last_s:
            problem = f"expected a later time than the one before; got {found(item['at'])}"
            raise FieldError(f"{at}.at", problem)
        last_s = at_s
        replicas = max(_count(item["replicas"], f"{at}.replicas"), low)
        yield at_s, replicas if most is None else min(replicas, most)


def _repeats(
    tree: Mapping[str, Any], points: list[tuple[float, int]], path: str
) -> Iterator[float]:
    """The times at which the series begins."""
    if "every" not in tree and "until" not in tree:
        yield 0.0
        return
    every = duration_of(tree.get("every"), f"{path}.every")
    until = duration_of(tree.get("until"), f"{path}.until")
    if every <= points[-1][0]:
        problem = f"expected more than the last time of the series; got {found(tree['every'])}"
        raise FieldError(f"{path}.every", problem)
    if until / every * len(points) > MAX_POINTS:
        raise FieldError(f"{path}.until", f"expected at most {MAX_POINTS:,} changes of replicas")
    number = 0
    while number * every < until:
        yield number * every
        number += 1


def _count(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FieldError(path, f"expected a number of pods, 0 or more; got {found(value)}")
    return value


def _event(tree: Any, path: str) -> TimelineEvent:
    tree = fields_of(tree, path, *FIELDS)
    event = TimelineEvent(
        at_s=duration_of(tree.get("at"), f"{path}.at"),
        add=tuple(obj for at, item in _items(tree, "add", path) for obj in added_objects(item, at)),
        change=tuple(read_change(item, at) for at, item in _items(tree, "change", path)),
        remove=tuple(parse_ref(item, at) for at, item in _items(tree, "remove", path)),
    )
    if not (event.add or event.change or event.remove):
        raise FieldError(path, "expected add, change or remove; got none of them")
    return event


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


class DrivenAutoscalers:
    """The autoscalers of an input; `apply` puts their workloads into timelines."""

    def __init__(self, autoscalers: Iterable[HorizontalPodAutoscaler]) -> None:
        self._known = {(one.namespace, one.name): one for one in autoscalers}
        self.driven: set[tuple[str, str]] = set()
        """Those that a series names."""
        self._limited: dict[str, tuple[int, int, int]] = {}

    def apply(self, timeline: Timeline) -> Timeline:
        """The timeline with changes of workloads for those of autoscalers; one that is not there stays as it is."""
        if not any(self._is_driven(scale) for event in timeline.events for scale in event.scale):
            return timeline
        return replace(timeline, events=tuple(map(self._event, timeline.events)))

    def notes(self) -> list[str]:
        """Differences of a series from its autoscaler."""
        return [
            f"{name} limits its series: {count:,} of its numbers of replicas are outside of {low} to {high}"
            for name, (count, low, high) in self._limited.items()
        ]

    def _is_driven(self, scale: WorkloadScale) -> bool:
        return (
            scale.ref.kind == HorizontalPodAutoscaler.kind
            and (scale.ref.namespace, scale.ref.name) in self._known
        )

    def _event(self, event: TimelineEvent) -> TimelineEvent:
        scale = tuple(self._scale(one) if self._is_driven(one) else one for one in event.scale)
        return replace(event, scale=scale)

    def _scale(self, scale: WorkloadScale) -> WorkloadScale:
        ref, key = scale.ref, (scale.ref.namespace, scale.ref.name)
        kind, name, low, high = read_autoscaler(self._known[key], str(ref))
        self.driven.add(key)
        replicas = min(max(scale.replicas, low), high)
        if replicas != scale.replicas:
            count = self._limited.get(str(ref), (0, low, high))[0] + 1
            self._limited[str(ref)] = count, low, high
        return WorkloadScale(TimelineTarget(kind, ref.namespace, name), replicas)


def read_autoscaler(autoscaler: HorizontalPodAutoscaler, label: str) -> tuple[str, str, int, int]:
    """Its target, minReplicas and maxReplicas; raises InputError, with the path, where it is wrong."""
    target = autoscaler.spec.scale_target_ref
    target = target if isinstance(target, Mapping) else {}
    kind, name = target.get("kind"), target.get("name")
    if kind not in SCALED_KINDS:
        _fail(label, "scaleTargetRef.kind", ", ".join(SCALED_KINDS), kind)
    if not isinstance(name, str) or not name:
        _fail(label, "scaleTargetRef.name", "the name of a workload", name)
    low, high = autoscaler.spec.min_replicas, autoscaler.spec.max_replicas
    low = DEFAULT_MIN if low is None else low
    if not isinstance(low, int) or isinstance(low, bool) or low < 0:
        _fail(label, "minReplicas", "a number of pods, 0 or more", low)
    if not isinstance(high, int) or isinstance(high, bool) or high < max(low, 1):
        _fail(label, "maxReplicas", f"a number of pods, {max(low, 1)} or more", high)
    return str(kind), str(name), int(low), int(high)


def _fail(label: str, path: str, expected: str, value: Any) -> NoReturn:
    raise InputError(f"{label}: spec.{path}: expected {expected}; got {found(value)}")


KINDS[KIND] = Kind(KIND, API_VERSION, TimelineWire, build_timeline, is_namespaced=False)
