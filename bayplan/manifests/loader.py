"""Loader: read objects from YAML and JSON, with the place of each for errors.

JSON is decoded directly into objects. YAML is converted to JSON piece by piece and decoded the same
way.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from ..api.custom_workloads import CustomWorkload, is_custom_group
from ..api.pod import Pod
from ..api.wire.decode import UnknownObject
from ..api.wire.kinds import KINDS, group_of
from ..api.workloads import HorizontalPodAutoscaler
from ..errors import DecodeError, InputError
from . import stage_documents as _stage_documents  # noqa: F401 -- registers the kind PodStages
from .bay_format import is_bay
from .decoder import Found, NotInPiecesError, iter_source
from .field_check import MisfitField, unknown_text
from .foreign_documents import printed_fault, template_fault
from .object_check import InvalidObject, image_note
from .sources import Source, find_files, is_blank, open_source, shown_name, total_size
from .timeline import DrivenAutoscalers, InputObject, Timeline

DESCRIBE_KIND = "describe the kind in a file for --workload-kinds, or go on without with --lenient"
_NUMBERS = re.compile(r"\[\d+\]")
_SYNTAX = re.compile(r"line \d+: |expected (?:JSON|YAML|a key)")

T = TypeVar("T")
OnProgress: TypeAlias = Callable[[int, int], None]
"""Progress callback: bytes done and bytes in total."""


class ManifestPlace(NamedTuple):
    """Place of an object; `item` is -1 outside of lists, `document` is 0 without a file."""

    source: str
    document: int
    item: int

    def __str__(self) -> str:
        if not self.document:
            return self.source
        place = f"{self.source}: document {self.document}"
        return place if self.item < 0 else f"{place}: items[{self.item}]"


class ItemPlaces(NamedTuple):
    """Places of consecutive objects of a list; one for all of them."""

    source: str
    document: int
    first_item: int
    objects: list[object]

    def of(self, obj: object) -> ManifestPlace:
        """The place of one of the objects; without its number if it was replaced."""
        found = (i for i, one in enumerate(self.objects, self.first_item) if one is obj)
        return ManifestPlace(self.source, self.document, next(found, -1))


FaultKey: TypeAlias = tuple[str, str, str]
"""The file, the kind, and the common part of equal faults."""


class ManifestFault(msgspec.Struct):
    """A fault of an object, where it is first, and in how many more places of the file, or of how many more objects."""

    place: ManifestPlace
    label: str
    problem: str
    is_field: bool = False
    """Whether it is a field that does not exist, rather than an object that kube-apiserver refuses."""
    others: int = 0

    def __str__(self) -> str:
        number = f"{self.others:,} more"
        more = f" (and {number})" if self.others else ""
        if self.others and self.is_field:
            more = f" (and in {number} place{'s' if self.others > 1 else ''})"
        return f"{self.place}: {self.label}: {self.problem}{more}"


class Manifests(msgspec.Struct):
    """The objects in order, their places, the ignored kinds, and their faults."""

    objects: list[InputObject] = msgspec.field(default_factory=list)
    places: list[ManifestPlace | ItemPlaces] = msgspec.field(default_factory=list)
    """By object; `place_at` has the place of a single one."""
    unused: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of ignored objects per kind that does not affect scheduling."""
    unknown: dict[FaultKey, ManifestFault] = msgspec.field(default_factory=dict)
    """Fields that do not exist, by file, kind, and path without the numbers of list items."""
    stored_unknown: dict[FaultKey, ManifestFault] = msgspec.field(default_factory=dict)
    """Unknown fields of objects that an API server stored; each gives a note."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Where autoscalers limit their series; lists without items; repeated keys."""
    invalid: dict[FaultKey, ManifestFault] = msgspec.field(default_factory=dict)
    """Objects that kube-apiserver refuses, by file, kind, and reason without names."""
    types: set[type] = msgspec.field(default_factory=set)
    """The types of the objects."""

    def __post_init__(self) -> None:
        self.types.update(map(type, self.objects))

    def of_type(self, kind: type[T]) -> list[T]:
        """The objects of a type; if there are none, not one of a million pods is looked at."""
        if kind not in self.types:
            return []
        return [obj for obj in self.objects if isinstance(obj, kind)]

    @property
    def remarks(self) -> list[str]:
        """Problems of the files: fields that do not exist, and objects that kube-apiserver refuses."""
        return [*map(str, self.unknown.values()), *map(str, self.invalid.values())]

    def refuse_remarks(self) -> None:
        """Raise InputError, a line for each remark, if there is any."""
        if self.remarks:
            raise InputError("\n".join(self.remarks))

    def place_of(self, obj: InputObject) -> str:
        """The place of `obj`, as the beginning of an error; empty if unknown."""
        for i, candidate in enumerate(self.objects):
            if candidate is obj:
                return str(self.place_at(i))
        return ""

    def place_at(self, index: int) -> ManifestPlace:
        """The place of the object of this index."""
        place = self.places[index]
        return place.of(self.objects[index]) if isinstance(place, ItemPlaces) else place

    def drop_running(self) -> None:
        """Drop the pods that have a node, once a simulation has them as admitted: there may be a million of them."""
        lists = {id(place): place.objects for place in self.places if isinstance(place, ItemPlaces)}
        for objects in lists.values():
            objects[:] = [None if _is_running(obj) else obj for obj in objects]
        both = [
            (obj, place)
            for obj, place in zip(self.objects, self.places, strict=True)
            if not _is_running(obj)
        ]
        self.objects, self.places = [obj for obj, _ in both], [place for _, place in both]

    def add(self, source: str, found: Found) -> None:
        """Add a part of `source`: objects, a fault, or a note."""
        place = ManifestPlace(source, found.document, found.item)
        match found.content:
            case list() as objects:  # of a list, all of which affect scheduling
                self.objects += cast(list[InputObject], objects)
                self.types.update(map(type, objects))
                self.places += [ItemPlaces(*place, objects)] * len(objects)
            case MisfitField() as misfit:
                self._add_misfit(place, misfit)
            case InvalidObject(_, label, reason):
                cause = reason.partition(" is invalid: ")[2] or reason
                key = source, label.partition(" ")[0], cause
                _count(self.invalid, key, ManifestFault(place, label, reason))
            case str() as note:
                self.notes.append(note)
            case UnknownObject() as unknown:
                self.unused[kind_name(unknown)] += 1
            case obj:
                self.objects.append(cast(InputObject, obj))
                self.types.add(type(obj))
                self.places.append(place)
                if isinstance(obj, CustomWorkload):
                    self._add_unmade(obj)

    def _add_unmade(self, workload: CustomWorkload) -> None:
        """Refuse a new workload whose pods cannot be made; those of a stored one are in its dump."""
        if workload.missing and workload.is_certain and not workload.uid:
            reason = f"expected pods that can be made; got {workload.missing}: {DESCRIBE_KIND}"
            label, place = str(workload), self.place_at(-1)
            self.invalid[str(place), label, reason] = ManifestFault(place, label, reason)

    def _add_misfit(self, place: ManifestPlace, misfit: MisfitField) -> None:
        """Add an unknown field, as one more place if it was found before."""
        path, expected = misfit.field
        key = place.source, misfit.label.partition(" ")[0], _NUMBERS.sub("[]", path)
        problem = f"{path}: {unknown_text(expected)}"
        fault = ManifestFault(place, misfit.label, problem, is_field=True)
        if misfit.is_stored and key not in self.unknown:
            self.stored_unknown.setdefault(key, fault)
        else:
            _count(self.unknown, key, fault)

    def extend(self, other: Manifests) -> None:
        """Append the contents of `other`."""
        self.objects += other.objects
        self.places += other.places
        self.types |= other.types
        self.unused += other.unused
        self.unknown |= other.unknown
        self.invalid |= other.invalid
        self.notes += other.notes
        self.notes += (f"{one}; an API server stored it" for one in other.stored_unknown.values())

    def drive_autoscalers(self) -> None:
        """Have series that name autoscalers change the workloads of these."""
        autoscalers = self.of_type(HorizontalPodAutoscaler)
        if not autoscalers:
            return
        driven = DrivenAutoscalers(autoscalers)
        self.objects = [
            driven.apply(obj) if isinstance(obj, Timeline) else obj for obj in self.objects
        ]
        self.unused += Counter(
            {HorizontalPodAutoscaler.kind: len(autoscalers) - len(driven.driven)}
        )
        self.notes += driven.notes()


def _is_running(obj: object) -> bool:
    return isinstance(obj, Pod) and bool(obj.node_name)


def _count(faults: dict[FaultKey, ManifestFault], key: FaultKey, fault: ManifestFault) -> None:
    """Add a fault, or count it if there is one like it."""
    known = faults.setdefault(key, fault)
    known.others += known is not fault


def kind_name(obj: UnknownObject) -> str:
    """The kind for messages; with its group for a custom kind, or if another kind has the same name."""
    group = group_of(obj.api_version)
    has_group = is_custom_group(group) or (obj.kind in KINDS and group)
    return f"{obj.kind}.{group}" if has_group else obj.kind


def read_manifests(paths: Iterable[str | Path], on_progress: OnProgress | None = None) -> Manifests:
    """Read all objects in files, folders and standard input (`-`).

    Raises InputError, one line with file, document and field, for unreadable or empty input and for a second object of
    the same kind and name. `remarks` has the other faults.
    """
    given = list(paths)
    groups = [find_files([path]) for path in given]
    total, done = total_size(file for files in groups for file in files), 0
    manifests, is_snapshot = Manifests(), False
    blank = [0] * len(groups)
    with _garbage_collection_off():
        for i, file in ((i, file) for i, files in enumerate(groups) for file in files):
            source = open_source(file, takes_bay=True)
            is_snapshot = is_bay(source.data) and sum(map(len, groups)) == 1

            def tell(share: float, size: int = source.size, before: int = done) -> None:
                if on_progress is not None:
                    on_progress(before + int(share * size), max(total, before + size))

            found = read_source(source, tell)
            if not found.objects and not found.unused:
                blank[i] += is_blank(source.data)
                manifests.notes.append(f"{source.name}: no objects")
            manifests.extend(found)
            done += source.size
            tell(1.0)
    for path, files, number in zip(given, groups, blank, strict=True):
        if number == len(files):  # as after a command that failed
            raise InputError(f"{shown_name(path)}: expected objects; got no document")
    if given and not manifests.objects and not manifests.unused:
        raise InputError(f"{given[0]}: expected objects; got none")
    if not is_snapshot:  # which has an object once
        _keep_last(manifests)
    manifests.drive_autoscalers()
    lacking = image_note(manifests.objects)
    if lacking:
        manifests.notes.append(lacking)
    return manifests


def read_source(source: Source, tell: Callable[[float], None] | None = None) -> Manifests:
    """Read the objects of one source; `tell` receives the progress."""
    try:
        try:
            return _collect(source, True, tell)
        except NotInPiecesError:
            return _collect(source, False, tell)
    except DecodeError as error:
        fault = printed_fault(source.data[:]) or (
            template_fault(source.data[:]) if _SYNTAX.match(error.problem) else ""
        )
        if fault:
            raise DecodeError(source.name, fault) from None
        raise


def _collect(source: Source, in_pieces: bool, tell: Callable[[float], None] | None) -> Manifests:
    manifests = Manifests()
    told = 0
    for found in iter_source(source, in_pieces):
        manifests.add(source.name, found)
        if found.position > told:
            told = found.position
            source.release(told)
            if tell is not None:
                tell(told / len(source.data))
    return manifests


def _keep_last(manifests: Manifests) -> None:
    """Drop all but the last of the documents of an object, with a note, as if they were applied in turn.

    Unnamed objects get their names later.
    """
    named = [hash((obj.kind, obj.namespace, obj.name)) for obj in manifests.objects if obj.name]
    if len(set(named)) == len(named):
        return
    last: dict[tuple[str, str, str], int] = {}
    dropped: dict[int, int] = {}
    for i, obj in enumerate(manifests.objects):
        if obj.name:
            key = (obj.kind, obj.namespace, obj.name)
            if key in last:
                dropped[last[key]] = i
            last[key] = i
    if not dropped:
        return
    first, by = next(iter(dropped.items()))
    obj, more = manifests.objects[first], len(dropped) - 1
    places = manifests.place_at(first), manifests.place_at(by)
    note = f"{obj.kind.lower()} {obj.key} in {places[0]} is replaced by that in {places[1]}"
    manifests.notes.append(note + (f", and {more:,} more by later documents" if more else ""))
    for name in ("objects", "places"):
        listed = getattr(manifests, name)
        listed[:] = [each for i, each in enumerate(listed) if i not in dropped]


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Keep the garbage collector from scanning long-lived objects repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
