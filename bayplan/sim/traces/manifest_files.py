"""Manifest files: manifests as one JSON List, which `simulate -f` reads fast, or JSON lines sorted by time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ...api.text.durations import parse_duration
from ...manifests.timeline import CREATED_AT
from .external_sort import sorted_on_disk
from .trace_manifests import Manifest

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def write_list(stream: SupportsWrite[str], objects: Iterable[Manifest]) -> int:
    """Write the objects to `stream`; return their number."""
    count = 0
    stream.write('{"apiVersion":"v1","kind":"List","items":[')
    for obj in objects:
        stream.write("\n" if count == 0 else ",\n")
        stream.write(msgspec.json.encode(obj).decode())
        count += 1
    stream.write("\n]}\n")
    return count


def write_lines(stream: SupportsWrite[str], objects: Iterable[Manifest]) -> int:
    """Write the objects to `stream`, one per line, sorted by the time at which they are created; return their number.

    What is created at the same time keeps its order, with pods after everything else. Only a part of the objects is in
    memory at a time.
    """
    count = 0
    for *_, line in sorted_on_disk(_timed(objects)):
        stream.write(f"{line}\n")
        count += 1
    return count


def _timed(objects: Iterable[Manifest]) -> Iterator[tuple[Any, ...]]:
    for number, obj in enumerate(objects):
        notes = obj.get("metadata", {}).get("annotations") or {}
        created_s = parse_duration(notes.get(CREATED_AT, "0")) or 0.0
        yield created_s, obj["kind"] == "Pod", number, msgspec.json.encode(obj).decode()
