"""Expansion: the runs of a sweep: every input with every configuration, combination of values and seed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from ..config import FeatureGates, parse_config
from ..errors import InputError
from ..manifests.sources import STDIN, find_files
from ..sim.measures import measure_of
from ..sim.traces import files_of
from .document import SweepConfiguration, SweepDocument, SweepInput
from .sweep_run import RunInput, SweepRun, digest_of, identified
from .vary import varied


class _Digests:
    """The hash of each file, which is read once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str, where: str) -> str:
        if path not in self._known:
            try:
                self._known[path] = digest_of(path)
            except OSError as error:
                raise InputError(
                    f"{where}: {path}: expected a readable file; got {error.strerror}"
                ) from None
        return self._known[path]


def expand(document: SweepDocument) -> list[SweepRun]:
    """All runs, those with the same input one after the other.

    Raises InputError for files that are missing, and for configurations that are wrong.
    """
    for i, name in enumerate(document.measures):
        try:
            measure_of(name)
        except InputError as error:
            raise InputError(f"{document.source}: measures[{i}]: {error}") from None
    digests = _Digests()
    schedulers = list(_schedulers(document, digests))
    return [
        identified(
            SweepRun(
                id="",
                input=each.name,
                configuration=configuration.name,
                values=values,
                seed=seed,
                what=what,
                config=tree,
                plugins=plugins,
                feature_gates=dict(configuration.feature_gates),
                until_s=document.until_s,
                ties=document.ties,
                digests={**hashes, **plugin_hashes},
            )
        )
        for i, each in enumerate(document.inputs)
        for what, hashes, seed in _inputs(
            each, f"{document.source}: inputs[{i}]", document.seeds, digests
        )
        for configuration, values, tree, plugins, plugin_hashes in schedulers
    ]


def _inputs(
    given: SweepInput, where: str, seeds: tuple[int, ...], digests: _Digests
) -> Iterator[tuple[RunInput, dict[str, str], int]]:
    """What is read for each demand and seed."""
    if STDIN in given.files:
        raise InputError(f"{where}.files: expected files; got standard input")
    try:
        files = tuple(str(Path(file).absolute()) for file in find_files(given.files))
    except InputError as error:
        raise InputError(f"{where}.files: {error}") from None
    tables = [str(Path(path).absolute()) if path else "" for path in (given.nodes, given.pods)]
    place = str(Path(given.place).absolute()) if given.place else ""
    published = tuple(map(str, files_of(Path(place)))) if place else ()
    hashes = {path: digests.of(path, where) for path in (*files, *tables, *published) if path}
    for demand, seed in product(given.demands, seeds):
        sampling = seed if given.sampling_seed is None else given.sampling_seed
        yield (
            RunInput(
                files=files,
                trace=given.trace,
                nodes=tables[0],
                pods=tables[1],
                columns=given.columns,
                demand=demand,
                sampling_seed=0 if demand is None else sampling,
                shuffled=given.shuffled,
                place=place,
                tables=published,
                window_s=given.window_s,
            ),
            hashes,
            seed,
        )


def _schedulers(
    document: SweepDocument, digests: _Digests
) -> Iterator[
    tuple[
        SweepConfiguration,
        dict[str, Any],
        dict[str, Any] | None,
        tuple[str, ...],
        dict[str, str],
    ]
]:
    """Each configuration with each combination of its values, and its plugin files."""
    for i, each in enumerate(document.configurations):
        where = f"{document.source}: configurations[{i}]"
        plugins = tuple(str(Path(file).absolute()) for file in each.plugins)
        hashes = {path: digests.of(path, f"{where}.plugins") for path in plugins}
        for combination in product(*each.vary.values()):
            values = dict(zip(each.vary, combination, strict=True))
            try:
                gates = FeatureGates.of(each.feature_gates)
                tree = varied(each.tree, values)
                parse_config(tree, _shown(each.name, values), gates)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
            yield each, values, tree, plugins, hashes


def _shown(name: str, values: dict[str, Any]) -> str:
    return " ".join([name, *(f"{path}={value}" for path, value in values.items())])
