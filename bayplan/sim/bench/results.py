"""Results: what was measured, as objects and as a document."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from ...api.own_documents import API_VERSION
from ...errors import InputError

KIND = "BenchReport"


class _Run(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="measured"):
    """What all runs have."""

    workload: str
    nodes: int
    repeats: int = 1
    """How often it was run; this is the best of them."""
    spread: float = 0.0
    """By which part of the best the worst was slower."""
    clock: str = "wall"
    """The clock that was measured by: wall or cpu."""


class PodRun(_Run, frozen=True, kw_only=True, rename="camel", tag="pods"):
    """Pods that were scheduled, how fast, and what memory they took."""

    pods: int
    placed: int
    rounds: int
    """Attempts, those of other pods included."""
    seconds: float
    pods_per_s: float
    us_per_pod: float
    p50_us: float = msgspec.field(name="p50Us")
    """Half of the rounds took at most so long."""
    p99_us: float = msgspec.field(name="p99Us")
    mib_per_10k_pods: float = msgspec.field(name="mibPer10kPods")
    """By how much the process grew, for ten thousand pods."""
    peak_mib: float
    cpu_share: float = 1.0
    """Which part of the time the process had a processor; less than all means that others had it."""
    threshold: float = 0.0
    """How many pods a second the file of the workload asks for."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return self.workload

    @property
    def cost(self) -> float:
        """The figure by which runs are compared; less is better."""
        return self.us_per_pod


class EventRun(_Run, frozen=True, kw_only=True, rename="camel", tag="events"):
    """What one kind of event costs, on average, while pods wait."""

    event: str
    waiting: int
    events: int
    us_per_event: float
    moved_per_event: float

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.workload}: {self.event}"

    @property
    def cost(self) -> float:
        """The figure by which runs are compared; less is better."""
        return self.us_per_event


class LoadRun(_Run, frozen=True, kw_only=True, rename="camel", tag="load"):
    """How long it takes from the first byte of a dump to the first decision."""

    pods: int
    mib: float
    """The size of the dump."""
    read_s: float
    """Until all objects are there."""
    cluster_s: float
    """From then until they are in the cluster."""
    decision_s: float
    """From then until the scheduler knows them and has decided about the first pod."""
    seconds: float
    peak_mib: float

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return self.workload

    @property
    def cost(self) -> float:
        """The figure by which runs are compared; less is better."""
        return self.seconds * 1e6


Run: TypeAlias = PodRun | EventRun | LoadRun
AnyRun = TypeVar("AnyRun", PodRun, EventRun, LoadRun)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Runs, and where they were made."""

    runs: tuple[Run, ...]
    api_version: str = API_VERSION
    kind: str = KIND
    machine: dict[str, Any] = {}


def best_of(repeats: Sequence[Sequence[Run]]) -> list[Run]:
    """The best of each run, with how far the others were from it."""
    return [_best(runs) for runs in zip(*repeats, strict=True)]


def _best(runs: Sequence[Run]) -> Run:
    best = min(runs, key=lambda run: run.cost)
    worst = max(run.cost for run in runs)
    spread = round(worst / best.cost - 1, 3) if best.cost else 0.0
    return msgspec.structs.replace(best, repeats=len(runs), spread=spread)


def write_report(path: Path, runs: Sequence[Run]) -> None:
    """Write runs as JSON; InputError if that is not possible."""
    machine = {
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }
    text = msgspec.json.format(msgspec.json.encode(Report(tuple(runs), machine=machine)), indent=2)
    write_file(path, text + b"\n")


def write_file(path: Path, content: bytes) -> None:
    """Write a file; InputError if that is not possible."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: expected a writable file; got {error.strerror}") from error


def read_report(path: Path) -> list[Run]:
    """Read runs that were written; InputError if they cannot be read."""
    try:
        report = msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise InputError(f"{path}: expected a readable file; got {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}: expected a {KIND} in JSON; {error}") from None
    if (report.api_version, report.kind) != (API_VERSION, KIND):
        found = f"{report.kind} {report.api_version}"
        raise InputError(f"{path}: expected a {KIND} of {API_VERSION}; got {found}")
    return list(report.runs)
