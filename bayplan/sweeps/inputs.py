"""Inputs: the objects of a run, read from manifests or from the tables of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..api.decode import UnknownObject, iter_objects
from ..sim import read_manifests
from ..sim.traces import OpenbTrace, parse_columns, read_own_tables
from ..sim.world import InputObject
from .run import RunInput


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
        return ReadInput(manifests.objects, manifests.place_of)
    return ReadInput(list(_decoded(_trees(what, paths))))


def _trees(what: RunInput, paths: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    nodes, pods = (
        Path(paths.get(path, path)) if path else None for path in (what.nodes, what.pods)
    )
    if what.trace == "csv":
        yield from read_own_tables(nodes, pods, parse_columns(what.columns))
        return
    assert nodes is not None, "a document with openb has both tables"
    assert pods is not None, "a document with openb has both tables"
    demand = None if what.demand is None else what.demand / 100
    yield from OpenbTrace(nodes, pods).objects(demand, what.sampling_seed)


def _decoded(trees: Iterable[dict[str, Any]]) -> Iterator[InputObject]:
    for tree in trees:
        for obj in iter_objects(tree):
            if not isinstance(obj, UnknownObject):
                yield cast(InputObject, obj)
