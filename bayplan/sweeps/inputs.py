"""Inputs: the objects of a run, read from manifests or from the tables of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..manifests.timeline import InputObject
from ..sim import read_manifests
from ..sim.traces import (
    OpenbTrace,
    TraceWindow,
    decoded_objects,
    open_published,
    parse_columns,
    read_own_tables,
)
from .sweep_run import RunInput


def _nowhere(obj: InputObject) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ReadInput:
    """The objects of a run, and where each was read."""

    objects: list[InputObject]
    place_of: Callable[[InputObject], str] = _nowhere


def read_input(what: RunInput, paths: Mapping[str, str]) -> ReadInput:
    """Read the objects; `paths` has the place of each file on this machine where it is another."""
    if what.files:
        manifests = read_manifests([paths.get(file, file) for file in what.files])
        manifests.refuse_remarks()
        return ReadInput(manifests.objects, manifests.place_of)
    return ReadInput(list(decoded_objects(_trees(what, paths))))


def _trees(what: RunInput, paths: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    if what.place:
        begin_s, end_s = what.window_s
        window = TraceWindow(begin_s, float("inf") if end_s is None else end_s)
        place = Path(paths.get(what.place, what.place))
        yield from open_published(what.trace, place, window).objects()
        return
    nodes, pods = (
        Path(paths.get(path, path)) if path else None for path in (what.nodes, what.pods)
    )
    if what.trace == "csv":
        yield from read_own_tables(nodes, pods, parse_columns(what.columns))
        return
    assert nodes is not None, "a document with openb has both tables"
    assert pods is not None, "a document with openb has both tables"
    demand = None if what.demand is None else what.demand / 100
    yield from OpenbTrace(nodes, pods).objects(demand, what.sampling_seed, what.shuffled)
