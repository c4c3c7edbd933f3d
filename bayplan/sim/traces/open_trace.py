"""Open trace: a published trace by its name, with the amounts that are assumed unless others are given; its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

from ...api.wire.decode import UnknownObject, iter_objects
from ...errors import InputError
from ...manifests.timeline import InputObject
from . import (
    alibaba_2018,
    alibaba_2020,
    alibaba_2025,
    alibaba_2026,
    azure_packing,
    azure_vms,
    google_2019,
    openb,
)
from .published import PublishedTrace, TraceWindow
from .trace_manifests import Manifest

_OPENERS: dict[str, Callable[[Path, TraceWindow], PublishedTrace]] = {
    "alibaba-2018": lambda place, window: alibaba_2018.Alibaba2018(folder=place, window=window),
    "alibaba-2020": lambda place, window: alibaba_2020.Alibaba2020(folder=place, window=window),
    "alibaba-2025": lambda place, window: alibaba_2025.Alibaba2025(file=place, window=window),
    "alibaba-2026": alibaba_2026.find_alibaba_2026,
    "azure-packing": lambda place, window: azure_packing.AzurePacking(place=place, window=window),
    "azure-vms": lambda place, window: azure_vms.AzureVms(file=place, window=window),
    "google-2019": lambda place, window: google_2019.Google2019(folder=place, window=window),
}
PUBLISHED_NAMES = tuple(_OPENERS)
"""The traces that `open_published` opens."""


def open_published(name: str, place: Path, window: TraceWindow) -> PublishedTrace:
    """The trace of this name in a file or folder; raises InputError if there is none."""
    if not place.exists():
        raise InputError(f"{place}: expected the files of {name}; got nothing there")
    return _OPENERS[name](place, window)


def decoded_objects(manifests: Iterable[Manifest]) -> Iterator[InputObject]:
    """The objects of manifests, as they are simulated."""
    for manifest in manifests:
        for obj in iter_objects(manifest):
            if not isinstance(obj, UnknownObject):
                yield cast(InputObject, obj)


def files_of(place: Path) -> list[Path]:
    """The files of a trace: those of a folder, or the one."""
    return sorted(file for file in place.iterdir() if file.is_file()) if place.is_dir() else [place]


TRACE_FORMATS = (
    openb.FORMAT,
    alibaba_2018.FORMAT,
    alibaba_2020.FORMAT,
    alibaba_2025.FORMAT,
    alibaba_2026.FORMAT,
    azure_packing.FORMAT,
    azure_vms.FORMAT,
    google_2019.FORMAT,
)
