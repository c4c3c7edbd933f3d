"""Sweep run: one simulation of a sweep as plain data, with a hash of all that its result depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from .. import __version__
from ..scheduler import module_source, names_module

ID_LENGTH = 16
"""Digits of a hash that name a run: 64 bits."""


class RunInput(msgspec.Struct, frozen=True, kw_only=True):
    """Objects and settings of a run; paths are absolute."""

    files: tuple[str, ...] = ()
    """Files and folders with manifests."""
    trace: str = ""
    """`openb`, `csv`, `generated`, the name of another published trace, or empty."""
    nodes: str = ""
    """The table of nodes of a trace."""
    pods: str = ""
    columns: tuple[str, ...] = ()
    """Fields and their columns in tables of one's own."""
    demand: float | None = None
    sampling_seed: int = 0
    shuffled: bool = False
    """Every pod once before any comes again, nodes in random order."""
    place: str = ""
    """The file or folder of another published trace."""
    tables: tuple[str, ...] = ()
    """The files in that place."""
    window_s: tuple[float, float | None] = (0.0, None)
    """The part of its time that is taken."""
    model: str = ""
    """The model of a generated workload."""
    pods_per_node: int | None = None
    """Pods that a node of a trace takes; None leaves it as it is imported."""

    @property
    def paths(self) -> list[str]:
        """All files that are read."""
        paths = (*self.files, self.nodes, self.pods, *self.tables, self.model)
        return [path for path in paths if path]


class SweepRun(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation: an input under a scheduler with a seed."""

    id: str
    """The hash of everything below and of this version of Bayplan."""
    input: str
    configuration: str
    values: dict[str, Any] = {}
    """Varied values of the configuration, by path."""
    seed: int = 0
    what: RunInput = RunInput()
    config: dict[str, Any] | None = None
    """The configuration with these values; None for kube-scheduler's defaults."""
    plugins: tuple[str, ...] = ()
    feature_gates: dict[str, bool] = {}
    kubernetes_version: str = ""
    until_s: float | None = None
    ties: str = ""
    digests: dict[str, str] = {}
    """SHA-256 of each file that is read, by path; of a module, by its name."""

    @property
    def input_key(self) -> str:
        """Equal for runs that read the same objects."""
        return msgspec.json.encode(self.what).decode()

    @property
    def input_group(self) -> str:
        """Equal for runs of the same input; seeds may sample it differently."""
        return repr((self.input, self.what.demand))

    @property
    def label(self) -> str:
        """The run in a few words: `shop, pack weight.X=2, seed 3`."""
        return f"{self.input_label}, {self.scheduler}, seed {self.seed}"

    @property
    def input_label(self) -> str:
        """The input with its demand: `openb 130%`."""
        demand = f" {self.what.demand:g}%" if self.what.demand is not None else ""
        return f"{self.input}{demand}"

    @property
    def scheduler(self) -> str:
        """The configuration with the varied values: `pack weight.X=2`."""
        values = "".join(f" {path}={shown_value(each)}" for path, each in self.values.items())
        return f"{self.configuration}{values}"

    def columns(self, paths: Iterable[str]) -> dict[str, Any]:
        """Columns that identify the run in the results of a sweep that varies these paths."""
        return {
            "run": self.id,
            "input": self.input,
            "demand": self.what.demand,
            "configuration": self.configuration,
            **{path: shown_value(self.values.get(path)) for path in paths},
            "seed": self.seed,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the varied values in a separate object."""
        return {**self.columns(()), "values": self.values}


def identified(run: SweepRun) -> SweepRun:
    """The run with its hash. Files count by content and name, not by folder."""
    # by name, without the folder
    names = {path: path.replace("\\", "/").rpartition("/")[2] for path in run.what.paths}
    what = run.what
    content = {
        "version": __version__,
        "input": run.input,
        "files": [(names[path], run.digests[path]) for path in what.files],
        "trace": [what.trace, what.columns, what.demand, what.sampling_seed, what.shuffled],
        "tables": [run.digests.get(what.nodes), run.digests.get(what.pods)],
        "published": [(names[path], run.digests[path]) for path in what.tables],
        "window": what.window_s,
        **({"model": run.digests[what.model]} if what.model else {}),
        **({} if what.pods_per_node is None else {"podsPerNode": what.pods_per_node}),
        "configuration": run.configuration,
        "config": run.config,
        "values": run.values,
        "plugins": [run.digests[path] for path in run.plugins],
        "featureGates": run.feature_gates,
        **({"kubernetesVersion": run.kubernetes_version} if run.kubernetes_version else {}),
        "until": run.until_s,
        "ties": run.ties,
        "seed": run.seed,
    }
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
    return msgspec.structs.replace(run, id=digest[:ID_LENGTH])


def digest_of(path: str) -> str:
    """SHA-256 of the content of a file, or of the source of an installed module."""
    with open(module_source(path) if names_module(path) else path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shown_value(value: Any) -> Any:
    """A value as a cell of a table: numbers, texts and truth values as they are, others as JSON."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return msgspec.json.encode(value).decode()
