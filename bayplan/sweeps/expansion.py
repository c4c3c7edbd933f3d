"""Expansion: the runs of a sweep: every input with every configuration, combination of values and seed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..config.files import API_VERSION, KIND
from ..config.load import parse_config
from ..config.releases import choose_release
from ..errors import InputError, PluginError, os_errors_named
from ..manifests.sources import STDIN, find_files
from ..releases.feature_gates import FeatureGates
from ..scheduler import names_module
from ..sim.measures import measure_of
from ..sim.traces.open_trace import files_of
from .document import SweepDocument, SweepInput
from .sweep_run import RunInput, SweepRun, digest_of, identified

PATHS = ("nodes", "pods", "place", "model")
"""Fields of an input that name one file or folder."""


class _Digests:
    """The hash of each file, which is read once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str, where: str) -> str:
        if path not in self._known:
            try:
                with os_errors_named(f"{where}: {path}", "a readable file"):
                    self._known[path] = digest_of(path)
            except PluginError as error:
                raise InputError(f"{where}: {error}") from None
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
    inputs = [
        (each.name, *found)
        for i, each in enumerate(document.inputs)
        for found in _inputs(each, f"{document.source}: inputs[{i}]", document.seeds, digests)
    ]
    return [
        identified(
            replace(one, input=name, what=what, seed=seed, digests={**hashes, **one.digests})
        )
        for name, what, hashes, seed in inputs
        for one in schedulers
    ]


def _inputs(
    given: SweepInput, where: str, seeds: tuple[int, ...], digests: _Digests
) -> Iterator[tuple[RunInput, dict[str, str], int]]:
    """Objects read for each demand and seed."""
    if STDIN in given.what.files:
        raise InputError(f"{where}.files: expected files; got standard input")
    try:
        files = tuple(map(_absolute, find_files(given.what.files)))
    except InputError as error:
        raise InputError(f"{where}.files: {error}") from None
    paths = {name: _absolute(getattr(given.what, name)) for name in PATHS}
    tables = tuple(map(str, files_of(Path(paths["place"])))) if paths["place"] else ()
    what = replace(given.what, files=files, tables=tables, **paths)
    hashes = {path: digests.of(path, where) for path in what.paths}
    for demand, seed in product(given.demands, seeds):
        sampling = seed if given.sampling_seed is None else given.sampling_seed
        sampling = 0 if demand is None and not what.model else sampling
        yield replace(what, demand=demand, sampling_seed=sampling), hashes, seed


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


def _schedulers(document: SweepDocument, digests: _Digests) -> Iterator[SweepRun]:
    """Each configuration with each combination of its values: a run without an input."""
    for i, each in enumerate(document.configurations):
        where = f"{document.source}: configurations[{i}]"
        plugins = tuple(file if names_module(file) else _absolute(file) for file in each.plugins)
        hashes = {path: digests.of(path, f"{where}.plugins") for path in plugins}
        for combination in product(*each.vary.values()):
            values = dict(zip(each.vary, combination, strict=True))
            named = " ".join([each.name, *(f"{path}={value}" for path, value in values.items())])
            try:
                release = choose_release(each.kubernetes_version, "kubernetesVersion")
                gates = FeatureGates.of(each.feature_gates, release)
                tree = varied(each.tree, values)
                parse_config(tree, named, gates)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
            yield SweepRun(
                id="",
                input="",
                configuration=each.name,
                values=values,
                config=tree,
                plugins=plugins,
                feature_gates=dict(each.feature_gates),
                kubernetes_version=each.kubernetes_version,
                until_s=document.until_s,
                ties=document.ties,
                digests=hashes,
            )


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_PATH = re.compile(r"[^.\[\]]+(?:\[\d+\])*(?:\.[^.\[\]]+(?:\[\d+\])*)*")
Steps = list[str | int]


def varied(tree: Mapping[str, Any] | None, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """A copy of the configuration with these values by path; raises InputError for a path that leads nowhere."""
    if not values:
        return None if tree is None else deepcopy(dict(tree))
    changed = (
        deepcopy(dict(tree)) if tree is not None else {"apiVersion": API_VERSION, "kind": KIND}
    )
    for path, value in values.items():
        _set(changed, path, value)
    return changed


def _set(tree: dict[str, Any], path: str, value: Any) -> None:
    if not _PATH.fullmatch(path):
        raise InputError(f'{path}: expected a path such as args.PLUGIN.FIELD; got "{path}"')
    steps: Steps = [name or int(number) for name, number in _STEP.findall(path)]
    match steps:
        case ["args", str(plugin), str(_), *_]:
            for profile in _profiles(tree, path):
                entry = _named(profile, "pluginConfig", plugin, path)
                _put(entry.setdefault("args", {}), steps[2:], value, path)
        case ["weight", str(plugin)]:
            for profile in _profiles(tree, path):
                _weigh(profile, plugin, value, path)
        case ["args" | "weight", *_]:
            raise InputError(f"{path}: expected args.PLUGIN.FIELD or weight.PLUGIN")
        case _:
            _put(tree, steps, value, path)


def _profiles(tree: dict[str, Any], path: str) -> list[dict[str, Any]]:
    profiles = tree.setdefault("profiles", [{}])
    if not isinstance(profiles, list) or not all(isinstance(each, dict) for each in profiles):
        raise InputError(f"{path}: expected a configuration with a list of profiles")
    return profiles


def _named(parent: dict[str, Any], field: str, name: str, path: str) -> dict[str, Any]:
    """The entry of this name in a list, which is added where there is none."""
    entries = parent.setdefault(field, [])
    if not isinstance(entries, list):
        raise InputError(f"{path}: expected {field} to be a list")
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry
    entries.append({"name": name})
    added: dict[str, Any] = entries[-1]
    return added


def _weigh(profile: dict[str, Any], plugin: str, value: Any, path: str) -> None:
    """Set the weight where the plugin is enabled for scoring, otherwise at multiPoint."""
    plugins = profile.setdefault("plugins", {})
    if not isinstance(plugins, dict):
        raise InputError(f"{path}: expected plugins to be an object")
    score = plugins.get("score")
    enabled = score.get("enabled") if isinstance(score, dict) else None
    listed = {each.get("name") for each in enabled or () if isinstance(each, dict)}
    point = "score" if plugin in listed else "multiPoint"
    where = plugins.setdefault(point, {})
    if not isinstance(where, dict):
        raise InputError(f"{path}: expected plugins.{point} to be an object")
    _named(where, "enabled", plugin, path)["weight"] = value


def _put(tree: Any, steps: Steps, value: Any, path: str) -> None:
    """Set a field below `tree`; objects on the way that are missing are made."""
    for step, following in pairwise(steps):
        if isinstance(step, str):
            if not isinstance(tree, dict):
                raise InputError(f"{path}: expected an object above {step}")
            tree = tree.setdefault(step, [{}] if isinstance(following, int) else {})
        else:
            tree = _item(tree, step, path)
    last = steps[-1]
    if isinstance(last, int):
        _item(tree, last, path)
    elif not isinstance(tree, dict):
        raise InputError(f"{path}: expected an object above {last}")
    tree[last] = value


def _item(tree: Any, number: int, path: str) -> Any:
    if not isinstance(tree, list) or number >= len(tree):
        raise InputError(f"{path}: expected a list with more than {number} entries")
    return tree[number]
