"""Worker: does the runs of a sweep, one after the other; the same in a process and on Ray."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from .. import __version__
from ..config.load import parse_config
from ..config.releases import choose_release, recorded_version, release_warning
from ..errors import BayplanError
from ..manifests.input_bytes import limited_input
from ..manifests.loader import Manifests
from ..releases.feature_gates import FeatureGates
from ..scheduler import FirstByName
from ..sim import read_manifests
from ..sim.measures import measure_run
from ..sim.settings import Settings, reading_for
from ..sim.synthetic import generate, read_model
from ..sim.traces import OpenbTrace, TraceWindow, decoded_objects, read_own_tables
from ..sim.traces.open_trace import open_published
from ..sim.traces.own_tables import parse_columns
from ..sim.traces.trace_manifests import MAX_PODS, with_pod_limit
from .sweep_run import RunInput, SweepRun, digest_of


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run."""

    id: str
    seconds: float = 0.0
    """On the wall clock, reading included."""
    error: str = ""
    """Reason why it failed; empty when it did not."""
    measures: dict[str, float] = {}
    filters: tuple[str, ...] = ()
    """The rules by which nodes were filtered."""
    kubernetes_version: str = ""
    """The kube-scheduler whose decisions these are; empty for a run that failed."""
    warning: str = ""
    """Note that the release is not known, and another one decided."""

    @property
    def is_failed(self) -> bool:
        return bool(self.error)


class Worker:
    """Does runs, and keeps the objects of the last input: runs with the same input read it once.

    `files` are contents by path, for a machine that may not have them.
    """

    def __init__(
        self,
        files: Mapping[str, bytes] | None = None,
        version: str = __version__,
        max_input_size: int | None = None,
    ) -> None:
        self._folder = GuardedFolder("bayplan-sweep-") if files else None
        self._paths = {} if self._folder is None else _write_down(files or {}, self._folder.name)
        self._version = version
        self._limit = max_input_size
        self._input_key = ""
        self._read: dict[str, Manifests] = {}

    def run(self, run: SweepRun) -> RunResult:
        """Simulate; a failure is a result, so that other runs go on."""
        started = time.monotonic()
        result = RunResult(id=run.id)
        try:
            result = self._measure(run)
        except BayplanError as failure:
            result = RunResult(id=run.id, error=str(failure))
        except Exception as failure:  # a fault in one run must not end the sweep: it is in its row
            result = RunResult(id=run.id, error=f"{type(failure).__name__}: {failure}")
        return msgspec.structs.replace(result, seconds=time.monotonic() - started)

    def close(self) -> None:
        """Remove the files that were written down."""
        if self._folder is not None:
            self._folder.cleanup()

    def _measure(self, run: SweepRun) -> RunResult:
        """The result of a run, without its time."""
        if self._version != __version__:
            raise BayplanError(
                f"expected Bayplan {self._version} on the worker, as where the sweep began; got {__version__}"
            )
        self._check_unchanged(run, run.plugins)
        version = run.kubernetes_version
        settings = self._settings(run, version)
        given = self._input(run, settings)
        if not version and run.what.files and (recorded := recorded_version(given.objects)):
            version = recorded
            settings = self._settings(run, version)
        ties = FirstByName() if run.ties == "name" else None
        place_of = given.place_of if given.places else None
        simulation = settings.simulation(given.objects, place_of, ties=ties)
        report = simulation.run(until_s=run.until_s)
        return RunResult(
            id=run.id,
            measures=measure_run(report),
            filters=report.filters,
            kubernetes_version=report.release,
            warning=release_warning(version),
        )

    def _settings(self, run: SweepRun, version: str) -> Settings:
        """The scheduler of a run, of this release."""
        gates = FeatureGates.of(run.feature_gates, choose_release(version))
        config = None if run.config is None else parse_config(run.config, run.configuration, gates)
        plugins = tuple(self._paths.get(path, path) for path in run.plugins)
        return Settings(config, gates, plugins, run.seed)

    def _input(self, run: SweepRun, settings: Settings) -> Manifests:
        """The objects of a run, decoded with the fields that its plugins need."""
        if run.input_key != self._input_key:
            self._input_key, self._read = run.input_key, {}
        needs = repr(settings.needs)
        if needs not in self._read:
            self._check_unchanged(run, run.what.paths)
            with reading_for(settings), limited_input(self._limit):
                self._read[needs] = read_input(run.what, self._paths)
        return self._read[needs]

    def _check_unchanged(self, run: SweepRun, paths: Iterable[str]) -> None:
        """Raise BayplanError if a file differs from the one that the hash of the run was made of."""
        for path in paths:
            if digest_of(self._paths.get(path, path)) != run.digests[path]:
                raise BayplanError(
                    f"{path}: expected it as when the sweep began; got other content"
                )


def _write_down(files: Mapping[str, bytes], within: str) -> dict[str, str]:
    """Write contents to a folder; returns the new place of each path, and of its folder."""
    places: dict[str, str] = {}
    for path, content in files.items():
        parent, name = str(Path(path).parent), Path(path).name
        if parent not in places:
            places[parent] = str(Path(within) / str(len(places)))
            Path(places[parent]).mkdir()
        place = Path(places[parent]) / name
        place.write_bytes(content)
        places[path] = str(place)
    return places


def read_input(what: RunInput, paths: Mapping[str, str]) -> Manifests:
    """Read the objects; `paths` has the place of each file on this machine where it is another."""
    if what.files:
        manifests = read_manifests([paths.get(file, file) for file in what.files])
        manifests.refuse_remarks()
        return manifests
    return Manifests(list(decoded_objects(_trees(what, paths))))


def _trees(what: RunInput, paths: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The manifests of a trace."""
    limit = what.pods_per_node
    if what.model:
        return generate(read_model(paths.get(what.model, what.model)), what.sampling_seed)
    if what.place:
        begin_s, end_s = what.window_s
        window = TraceWindow(begin_s, float("inf") if end_s is None else end_s)
        place = Path(paths.get(what.place, what.place))
        return with_pod_limit(open_published(what.trace, place, window).objects(), limit)
    nodes, pods = (Path(paths.get(p, p)) if p else None for p in (what.nodes, what.pods))
    if what.trace == "csv":
        columns = parse_columns(what.columns)
        return read_own_tables(nodes, pods, columns, MAX_PODS if limit is None else limit)
    assert nodes is not None, "a document with openb has both tables"
    assert pods is not None, "a document with openb has both tables"
    demand = None if what.demand is None else what.demand / 100
    trace = OpenbTrace(nodes, pods)
    return with_pod_limit(trace.objects(demand, what.sampling_seed, what.shuffled), limit)


GUARD = 'exec 3<&0; (cat <&3; rm -rf -- "$1") >/dev/null 2>&1 &'
"""Removes a folder when its standard input ends, in a process that is no child of the one that started it."""


class GuardedFolder:
    """A temporary folder, and a shell process that deletes it at the end of a pipe.

    The pipe ends with this process, however it ends. Where there is no shell, as on Windows, a killed process leaves
    its folder.
    """

    def __init__(self, prefix: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=prefix)
        self.name = self._folder.name
        self._guard: subprocess.Popen[bytes] | None = None
        if os.name == "posix":
            self._guard = subprocess.Popen(
                ("/bin/sh", "-c", GUARD, "sh", self.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._guard.wait()

    def cleanup(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
