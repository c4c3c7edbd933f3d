"""Manifests: objects from YAML and JSON, with the place of each for whoever must find a fault.

JSON is decoded straight into objects. YAML becomes JSON piece by piece and goes the same way.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from ..api.decode import UnknownObject
from ..api.kinds import KINDS, group_of
from ..errors import InputError
from .reading import Found, FoundItems, NotInPiecesError, iter_source
from .sources import Source, find_files, open_source, total_size
from .world import InputObject

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


class Place(NamedTuple):
    """Where an object was found; `item` is -1 outside of lists, `document` is 0 for what is no file."""

    source: str
    document: int
    item: int

    def __str__(self) -> str:
        if not self.document:
            return self.source
        place = f"{self.source}: document {self.document}"
        return place if self.item < 0 else f"{place}: items[{self.item}]"


@dataclass
class Manifests:
    """What was read: objects in order, where they were, and what was left aside."""

    objects: list[InputObject] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)
    """How many objects of each kind have no bearing on scheduling."""

    def place_of(self, obj: InputObject) -> str:
        """Where `obj` was read, for the beginning of an error; empty if it was not."""
        for place, candidate in zip(self.places, self.objects, strict=True):
            if candidate is obj:
                return str(place)
        return ""

    def add(self, source: str, found: Found) -> None:
        """Keep what was found in `source`."""
        if isinstance(found.obj, UnknownObject):
            self.unused[_kind_name(found.obj)] += 1
        else:
            self.objects.append(cast(InputObject, found.obj))
            self.places.append(Place(source, found.document, found.item))

    def add_items(self, source: str, found: FoundItems) -> None:
        """Keep objects of a list in `source`, all of which bear on scheduling."""
        self.objects += cast(list[InputObject], found.objects)
        numbers = range(found.first_item, found.first_item + len(found.objects))
        self.places += map(Place, repeat(source), repeat(found.document), numbers)

    def extend(self, other: Manifests) -> None:
        """Keep what `other` holds, after our own."""
        self.objects += other.objects
        self.places += other.places
        self.unused += other.unused


def _kind_name(obj: UnknownObject) -> str:
    """The kind as people know it; with its group where we know another of that name."""
    group = group_of(obj.api_version)
    return f"{obj.kind}.{group}" if obj.kind in KINDS and group else obj.kind


def read_manifests(paths: Iterable[str | Path], on_progress: OnProgress | None = None) -> Manifests:
    """Read all objects in files, folders and standard input (`-`).

    Raises InputError, one line with file, document and field, for whatever cannot be read and
    for a second object of the same kind and name.
    """
    files = find_files(paths)
    total, done = total_size(files), 0
    manifests = Manifests()
    with _garbage_collection_off():
        for file in files:
            source = open_source(file)

            def tell(share: float, size: int = source.size, before: int = done) -> None:
                if on_progress is not None:
                    on_progress(before + int(share * size), max(total, before + size))

            manifests.extend(read_source(source, tell))
            done += source.size
            tell(1.0)
    _refuse_duplicates(manifests)
    return manifests


def read_source(source: Source, tell: Callable[[float], None] | None = None) -> Manifests:
    """Read the objects of one source; `tell` hears which share of it is done."""
    try:
        return _collect(source, True, tell)
    except NotInPiecesError:
        return _collect(source, False, tell)


def _collect(source: Source, in_pieces: bool, tell: Callable[[float], None] | None) -> Manifests:
    manifests = Manifests()
    told = 0
    for found in iter_source(source, in_pieces):
        if isinstance(found, FoundItems):
            manifests.add_items(source.name, found)
        else:
            manifests.add(source.name, found)
        if found.position > told:
            told = found.position
            source.release(told)
            if tell is not None:
                tell(told / len(source.data))
    return manifests


def _refuse_duplicates(manifests: Manifests) -> None:
    """Raise InputError if an object is there twice; unnamed ones will get names of their own."""
    first: dict[tuple[str, str, str], int] = {}
    for i, obj in enumerate(manifests.objects):
        if not obj.name:
            continue
        j = first.setdefault((obj.kind, obj.namespace, obj.name), i)
        if j != i:
            here, there = manifests.places[i], manifests.places[j]
            name = f"{obj.kind.lower()} {obj.key}"
            raise InputError(f"{here}: {name}: expected it once; got it before in {there}")


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Keep the collector from walking again and again over objects that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
