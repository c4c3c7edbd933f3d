"""Result files: the rows of a sweep on disk: a journal that grows with each run, and a table made of it.

The journal (`RESULTS.runs.jsonl`) has a line per finished run from which an interrupted sweep goes on. The table, CSV
or Parquet by the ending of its name, is replaced as a whole now and then and at the end, so a reader never sees a part
of it.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import InputError, os_errors_named
from ..sim.measures import Metric, PairedDifference
from ..sim.measures.metric import other_filters
from .sweep_run import SweepRun
from .worker import RunResult

CSV, PARQUET = ".csv", ".parquet"
JOURNAL = ".runs.jsonl"
INTERVAL_S = 5.0
SHARE_OF_TIME = 20
"""Pause between two writes of a table, as a multiple of the duration of one."""
DONE, FAILED = "done", "failed"


class SweepEntry(NamedTuple):
    """A finished run, and its result."""

    run: SweepRun
    result: RunResult

    def row(self, paths: Iterable[str]) -> dict[str, Any]:
        """A line of the table of a sweep that varies these paths."""
        measures = {name: float(value) for name, value in self.result.measures.items()}
        return {**self.run.columns(paths), **self._state(), **measures}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with measures and varied values in objects of their own."""
        return {**self.run.to_dict(), **self._state(), "measures": self.result.measures}

    def _state(self) -> dict[str, Any]:
        result = self.result
        status = FAILED if result.is_failed else DONE
        return {
            "status": status,
            "error": result.error or None,
            "seconds": result.seconds,
            "kubernetesVersion": result.kubernetes_version or None,
        }


_EXPECTED = "a file that can be read and written"


class RunJournal:
    """The results on disk, or in memory without a `path`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.results: dict[str, RunResult] = {}
        """By the hash of the run; the last one counts."""
        if path is not None and path.exists():
            self._load(path)

    def add(self, result: RunResult) -> None:
        """Add a finished run; it is on disk when this returns."""
        self.results[result.id] = result
        if self._path is None:
            return
        with os_errors_named(self._path, _EXPECTED), self._path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _load(self, path: Path) -> None:
        """Read the lines; an incomplete last line of a killed process is cut off."""
        with os_errors_named(path, _EXPECTED):
            data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                result = msgspec.json.decode(line, type=RunResult)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"{path}: line {number}: expected a run of a sweep; got {error}"
                ) from None
            except RecursionError:
                raise InputError(f"{path}: line {number}: expected less deep nesting") from None
            self.results[result.id] = result
        if len(whole) < len(data):
            os.truncate(path, len(whole))


class ResultTable:
    """The table of results, which is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in (CSV, PARQUET):
            raise InputError(f"{path}: expected a name that ends in {CSV} or {PARQUET}")
        if path.suffix == PARQUET:
            _import_parquet()
        if not path.parent.is_dir():
            raise InputError(f"{path}: expected a file in a folder that exists; got none")
        self._path = path
        self._due = time.monotonic() + INTERVAL_S

    def update(self, rows: Callable[[], list[dict[str, Any]]]) -> None:
        """Write the rows if that was long ago."""
        if time.monotonic() >= self._due:
            self.write(rows())

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows."""
        started = time.monotonic()
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with os_errors_named(self._path, _EXPECTED), ExitStack() as stack:
            stack.callback(beside.unlink, missing_ok=True)
            names = list(dict.fromkeys(name for row in rows for name in row))
            _WRITERS[self._path.suffix](beside, names, rows)
            os.replace(beside, self._path)
        now = time.monotonic()
        self._due = now + max(INTERVAL_S, SHARE_OF_TIME * (now - started))


def _write_csv(path: Path, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_parquet(path: Path, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    pyarrow, parquet = _import_parquet()
    columns = {name: _one_type([row.get(name) for row in rows]) for name in names}
    parquet.write_table(pyarrow.table(columns), path)


def _one_type(values: list[Any]) -> list[Any]:
    """The values of a column, as texts where some are texts and others are not."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) < 2:
        return [float(v) if kinds == {int, float} and v is not None else v for v in values]
    return [None if value is None else str(value) for value in values]


def _import_parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "results: expected pyarrow to be installed for Parquet (pip install 'bayplan[parquet]'), "
            "or a file that ends in .csv; got none"
        ) from None
    return pyarrow, pyarrow.parquet


_WRITERS = {CSV: _write_csv, PARQUET: _write_parquet}


ALWAYS = ("placed", "pending", "p95Latency")
PER_RESOURCE = ("Utilisation", "Delivered", "Overpromised", "Fragmentation")
NOT_SHARED = ("run", "seed")
"""Columns in which the runs of a group differ."""
NOT_SHOWN = ("MeanUtilisation", "PeakUtilisation")


@dataclass(slots=True)
class SweepGroup:
    """The runs of one input under one scheduler, which differ in their seeds."""

    run: SweepRun
    """One of them."""
    _first: SweepGroup | None = None
    failed: int = 0
    by_seed: dict[int, dict[str, float]] = field(default_factory=dict)
    """The measures of each run that did not fail."""
    filters: tuple[str, ...] = ()
    """The rules by which nodes were filtered; empty when they are not known."""
    release: str = ""
    """The kube-scheduler whose decisions these are; empty when it is not known."""

    def columns(self, paths: Iterable[str]) -> dict[str, Any]:
        """Columns that identify them."""
        named = self.run.columns(paths)
        return {name: value for name, value in named.items() if name not in NOT_SHARED}

    def metric(self, name: str, seeds: Iterable[int] | None = None) -> Metric | None:
        """A measure over the seeds; None when not every run has it."""
        chosen = list(self.by_seed if seeds is None else seeds)
        if not chosen or not all(name in self.by_seed[seed] for seed in chosen):
            return None
        return Metric(name, tuple(self.by_seed[seed][name] for seed in chosen))

    @property
    def first(self) -> SweepGroup:
        """The group of the first scheduler on the same input."""
        return self._first or self

    @property
    def other_filters(self) -> str:
        """The filters in which it differs from the first, in words; empty when it does not."""
        return other_filters(self.filters, self.first.filters)

    def difference(self, name: str) -> PairedDifference | None:
        """The difference of these runs from those of the first with the same seeds; None when there are none."""
        seeds = [seed for seed in self.by_seed if seed in self.first.by_seed]
        mine, other = self.metric(name, seeds), self.first.metric(name, seeds)
        if mine is None or other is None:
            return None
        return PairedDifference.of(mine, other, not self.other_filters)

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain data: the group and these measures."""
        metrics = []
        for name in names:
            metric, difference = self.metric(name), self.difference(name)
            if metric is not None:
                shown = None if difference is None else difference.to_dict()
                metrics.append({**metric.to_dict(), "difference": shown})
        return {
            **{k: v for k, v in self.run.to_dict().items() if k not in NOT_SHARED},
            "kubernetesVersion": self.release or None,
            "runs": len(self.by_seed),
            "failed": self.failed,
            "filters": list(self.filters),
            "metrics": metrics,
        }


def summarize(entries: Iterable[SweepEntry]) -> list[SweepGroup]:
    """The groups in the order of their first runs."""
    groups: dict[str, SweepGroup] = {}
    firsts: dict[str, SweepGroup] = {}
    for run, result in entries:
        key = repr((run.input_group, run.configuration, run.values))
        if key not in groups:
            groups[key] = SweepGroup(run, firsts.get(run.input_group))
            firsts.setdefault(run.input_group, groups[key])
        if result.is_failed:
            groups[key].failed += 1
        else:
            groups[key].by_seed[run.seed] = result.measures
            groups[key].filters = result.filters
            groups[key].release = result.kubernetes_version
    return list(groups.values())


def shown_measures(groups: Iterable[SweepGroup]) -> list[str]:
    """The measures that are shown if none are named: placed and pending pods, use and fragmentation per resource."""
    return list(dict.fromkeys(_shown(groups)))


def _shown(groups: Iterable[SweepGroup]) -> Iterator[str]:
    every = dict.fromkeys(name for group in groups for m in group.by_seed.values() for name in m)
    yield from (name for name in ALWAYS if name in every)
    for end in PER_RESOURCE:
        yield from (n for n in every if n.endswith(end) and not n.endswith(NOT_SHOWN))
