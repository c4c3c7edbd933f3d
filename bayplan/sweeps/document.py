"""Document: a file of kind Sweep: inputs, configurations and seeds; docs/sweeps.md describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..api.own_documents import API_VERSION
from ..api.wire.field_error import FieldError
from ..errors import InputError, one_of
from ..manifests.document_fields import (
    check_head,
    duration_of,
    entries_of,
    fields_of,
    flag_of,
    found,
    mapping_of,
    text_of,
)
from ..manifests.sources import read_document
from ..scheduler import names_module
from ..sim.traces.open_trace import PUBLISHED_NAMES
from .sweep_run import RunInput

KIND = "Sweep"
OPENB, OWN_TABLES, GENERATED = "openb", "csv", "generated"
ALLOWED = {
    OPENB: {"folder", "nodes", "pods", "demand", "samplingSeed", "shuffled", "podsPerNode"},
    OWN_TABLES: {"nodes", "pods", "columns", "podsPerNode"},
    GENERATED: {"model", "samplingSeed"},
}
"""The fields of an input with one of our own traces, besides name and trace."""
PUBLISHED_FIELDS = {"place", "from", "until", "podsPerNode"}
FIELDS = ["apiVersion", "kind", "inputs", "configurations", "seeds", "until", "measures", "ties"]
TIES = ("random", "name")
MAX_SEEDS = 100_000


@dataclass(frozen=True, slots=True)
class SweepInput:
    """The simulated objects: manifests, or a trace."""

    name: str
    what: RunInput
    """The files, relative to the folder of the document."""
    demands: tuple[float | None, ...] = (None,)
    """Percentages of the GPUs that pods are sampled for; None for every pod once, at its own time."""
    sampling_seed: int | None = None
    """The seed of the sample; None for that of the run."""


@dataclass(frozen=True, slots=True)
class SweepConfiguration:
    """A scheduler, and its varied parameters."""

    name: str
    tree: Mapping[str, Any] | None = None
    """The configuration as plain data; None for kube-scheduler's defaults."""
    plugins: tuple[str, ...] = ()
    """Python files, and names of installed modules."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    kubernetes_version: str = ""
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The values by path; each combination is a scheduler."""


@dataclass(frozen=True, slots=True)
class SweepDocument:
    """A sweep as it is written."""

    source: str
    inputs: tuple[SweepInput, ...]
    configurations: tuple[SweepConfiguration, ...]
    seeds: tuple[int, ...] = (0,)
    until_s: float | None = None
    """Time when a run is stopped, on its own clock."""
    measures: tuple[str, ...] = ()
    """The measures that a summary shows; empty for some of general interest."""
    ties: str = TIES[0]
    """Choice between nodes with equal scores: at random by the seed, or the first by name."""


def read_sweep(path: str | Path) -> SweepDocument:
    """Read the one Sweep in a file; raises InputError with file and field. Paths in it are relative to its folder."""
    return parse_sweep(*read_document(path, f"document of kind {KIND}"), Path(path).parent)


def parse_sweep(tree: Any, source: str, folder: Path) -> SweepDocument:
    """The sweep in plain data; paths in it are relative to `folder`."""
    try:
        return _Reader(folder).sweep(tree, source)
    except (InputError, FieldError) as error:
        raise InputError(f"{source}: {error}") from None


class _Reader:
    """Reads the parts of a document; errors begin with the path of the field."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sweep(self, tree: Any, source: str) -> SweepDocument:
        fields = fields_of(tree, "", *FIELDS)
        check_head({"kind": KIND, "apiVersion": API_VERSION, **fields}, KIND)
        inputs = tuple(
            self._input(entry, path) for path, entry in entries_of(fields.get("inputs"), "inputs")
        )
        listed = fields.get("configurations", [{"name": "default"}])
        configurations = tuple(
            self._configuration(entry, path) for path, entry in entries_of(listed, "configurations")
        )
        for name, parts in (("inputs", inputs), ("configurations", configurations)):
            _refuse_second_names(name, [part.name for part in parts])
        return SweepDocument(
            source,
            inputs,
            configurations,
            _seeds(fields.get("seeds", 1)),
            _duration(fields.get("until"), "until"),
            tuple(_texts(fields.get("measures", []), "measures")),
            _one_of(fields.get("ties", TIES[0]), TIES, "ties"),
        )

    def _input(self, entry: Any, path: str) -> SweepInput:
        of_traces = {*PUBLISHED_FIELDS, *(name for names in ALLOWED.values() for name in names)}
        fields = fields_of(entry, path, "name", "files", "trace", *sorted(of_traces))
        listed = enumerate(_texts(fields.get("files", []), f"{path}.files"))
        files = tuple(self._path(text, f"{path}.files[{i}]") for i, text in listed)
        trace = fields.get("trace", "")
        if bool(files) == bool(trace):
            raise InputError(
                f"{path}: expected files or a trace; got {'both' if files else 'neither'}"
            )
        if trace:
            _one_of(trace, (*ALLOWED, *PUBLISHED_NAMES), f"{path}.trace")
        allowed = ALLOWED.get(trace, PUBLISHED_FIELDS if trace else set())
        for name in sorted(of_traces & {*fields} - allowed):
            raise InputError(f"{path}.{name}: expected it only with {_where_allowed(name)}")
        nodes, pods = self._tables(fields, path)
        is_published, is_drawn = trace in PUBLISHED_NAMES, trace == GENERATED
        return SweepInput(
            text_of(fields.get("name", trace or Path((*files, "")[0]).stem), f"{path}.name"),
            RunInput(
                files=files,
                trace=trace,
                nodes=nodes,
                pods=pods,
                columns=tuple(_texts(fields.get("columns", []), f"{path}.columns")),
                shuffled=_shuffled(fields, path),
                place=self._path(fields.get("place"), f"{path}.place") if is_published else "",
                window_s=_window(fields, path),
                model=self._path(fields.get("model"), f"{path}.model") if is_drawn else "",
                pods_per_node=_pod_limit(fields, path),
            ),
            _demands(fields.get("demand"), f"{path}.demand"),
            _whole(fields.get("samplingSeed"), f"{path}.samplingSeed"),
        )

    def _tables(self, fields: Mapping[str, Any], path: str) -> tuple[str, str]:
        """The tables of nodes and pods of a trace."""
        found_tables = []
        folder = fields.get("folder")
        for name in ("nodes", "pods"):
            given = fields.get(name)
            if given is not None:
                found_tables.append(self._path(given, f"{path}.{name}"))
            elif fields.get("trace") == OPENB:
                if folder is None:
                    raise InputError(f"{path}: expected a folder, or nodes and pods; got neither")
                found_tables.append(_openb_table(self._path(folder, f"{path}.folder"), name))
            else:
                found_tables.append("")
        if fields.get("trace") == OWN_TABLES and not any(found_tables):
            raise InputError(f"{path}: expected nodes, pods or both; got neither")
        return found_tables[0], found_tables[1]

    def _configuration(self, entry: Any, path: str) -> SweepConfiguration:
        known = ("name", "file", "config", "plugins", "featureGates", "kubernetesVersion", "vary")
        fields = fields_of(entry, path, *known)
        if "file" in fields and "config" in fields:
            raise InputError(f"{path}: expected file or config; got both")
        tree, name = fields.get("config"), "default"
        if "file" in fields:
            file = self._path(fields["file"], f"{path}.file")
            tree, name = _configuration_in(file), Path(file).stem
        if tree is not None and not isinstance(tree, Mapping):
            raise InputError(f"{path}.config: expected a configuration; got {found(tree)}")
        gates = mapping_of(fields.get("featureGates"), f"{path}.featureGates")
        for gate, value in gates.items():
            flag_of(value, f"{path}.featureGates.{gate}")
        return SweepConfiguration(
            text_of(fields.get("name", name), f"{path}.name"),
            tree,
            tuple(self._plugins(fields.get("plugins", []), f"{path}.plugins")),
            gates,
            text_of(fields["kubernetesVersion"], f"{path}.kubernetesVersion")
            if "kubernetesVersion" in fields
            else "",
            {
                key: tuple(value for _, value in entries_of(values, f"{path}.vary.{key}"))
                for key, values in mapping_of(fields.get("vary"), f"{path}.vary").items()
            },
        )

    def _plugins(self, value: Any, path: str) -> Iterator[str]:
        """Python files, relative to the folder, and names of installed modules."""
        for i, text in enumerate(_texts(value, path)):
            is_file = (self._folder / text).exists() or not names_module(text)
            yield self._path(text, f"{path}[{i}]") if is_file else text

    def _path(self, value: Any, path: str) -> str:
        return str(self._folder / text_of(value, path))


def _configuration_in(file: str) -> Any:
    """The one document in a file of configuration, as plain data."""
    tree, source = read_document(file, "KubeSchedulerConfiguration")
    if not isinstance(tree, Mapping):
        raise InputError(f"{source}: expected a KubeSchedulerConfiguration; got {found(tree)}")
    return tree


def _openb_table(folder: str, name: str) -> str:
    from ..sim.traces.openb import NODE_FILE, POD_FILE

    return str(Path(folder) / (NODE_FILE if name == "nodes" else POD_FILE))


def _where_allowed(name: str) -> str:
    traces = [f"trace: {trace}" for trace, names in ALLOWED.items() if name in names]
    return " or ".join(traces) or "a published trace besides openb"


def _shuffled(fields: Mapping[str, Any], path: str) -> bool:
    value = flag_of(fields.get("shuffled", False), f"{path}.shuffled")
    if value and "demand" not in fields:
        raise InputError(f"{path}.shuffled: expected it only with demand")
    return value


def _pod_limit(fields: Mapping[str, Any], path: str) -> int | None:
    limit = _whole(fields.get("podsPerNode"), f"{path}.podsPerNode")
    if limit is not None and limit < 1:
        raise InputError(f"{path}.podsPerNode: expected a number of 1 or more; got {limit}")
    return limit


def _window(fields: Mapping[str, Any], path: str) -> tuple[float, float | None]:
    """The part of the time of a trace."""
    begin = _duration(fields.get("from"), f"{path}.from") or 0.0
    end = _duration(fields.get("until"), f"{path}.until")
    if end is not None and end <= begin:
        raise InputError(f"{path}.until: expected a time after from; got {found(fields['until'])}")
    return begin, end


def _one_of(value: Any, names: Sequence[str], path: str) -> str:
    if value not in names:
        raise InputError(f"{path}: expected {one_of(names)}; got {found(value)}")
    return str(value)


def _refuse_second_names(what: str, names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f'{what}[{i}].name: expected a name of its own; got "{name}" again')


def _texts(value: Any, path: str) -> list[str]:
    values = [value] if isinstance(value, str | Path) else value
    if not isinstance(values, list | tuple):
        raise InputError(f"{path}: expected a list of texts; got {found(value)}")
    return [text_of(each, f"{path}[{i}]") for i, each in enumerate(values)]


def _whole(value: Any, path: str) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise InputError(f"{path}: expected a whole number; got {found(value)}")
    return value


def _seeds(value: Any) -> tuple[int, ...]:
    """A number of seeds from 0 on, or a list of them."""
    if isinstance(value, list | tuple):
        seeds = tuple(_whole(seed, path) or 0 for path, seed in entries_of(value, "seeds"))
        _refuse_second_names("seeds", [str(seed) for seed in seeds])
        return seeds
    number = _whole(value, "seeds")
    if number is None or not 0 < number <= MAX_SEEDS:
        raise InputError(
            f"seeds: expected a number of seeds of 1 or more, or a list; got {found(value)}"
        )
    return tuple(range(number))


def _demands(value: Any, path: str) -> tuple[float | None, ...]:
    """Percentages; one stands for a list of one."""
    if value is None:
        return (None,)
    demands: list[float | None] = []
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 < each <= 10_000:
            raise InputError(f"{path}: expected a percentage above 0; got {found(each)}")
        demands.append(float(each))
    return tuple(demands) or (None,)


def _duration(value: Any, path: str) -> float | None:
    return None if value is None else duration_of(value, path)
