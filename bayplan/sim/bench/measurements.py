"""Measurements: measurements, as objects and as a document."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import msgspec

from ...api.own_documents import API_VERSION
from ...errors import InputError, os_errors_named

KIND = "BenchReport"


class _Run(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="measured"):
    """Common part of all runs."""

    compared_by: ClassVar[tuple[str, float]]
    """A field, and the factor that makes it microseconds if it is a time."""

    workload: str
    nodes: int
    repeats: int = 1
    """Number of repetitions; this is the best of them."""
    spread: float = 0.0
    """Relative slowdown of the worst repetition."""
    clock: str = "wall"
    """The measuring clock: wall or cpu."""

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.workload

    @property
    def cost(self) -> float:
        """The figure by which runs are compared; less is better."""
        field, factor = self.compared_by
        return float(getattr(self, field) * factor)


class CacheUse(msgspec.Struct, frozen=True):
    """Hits, misses and invalidations of the caches of one name."""

    hits: int
    misses: int
    drops: int


class PodRun(_Run, frozen=True, kw_only=True, rename="camel", tag="pods"):
    """Throughput, latency and memory of scheduling."""

    compared_by = "us_per_pod", 1.0

    pods: int
    placed: int
    rounds: int
    """Attempts, including those of other pods."""
    seconds: float
    pods_per_s: float
    us_per_pod: float
    p50_us: float = msgspec.field(name="p50Us")
    """Median duration of a round."""
    p99_us: float = msgspec.field(name="p99Us")
    mib_per_10k_pods: float = msgspec.field(name="mibPer10kPods")
    """Memory growth of the process per ten thousand pods."""
    peak_mib: float
    cpu_share: float = 1.0
    """Share of the time in which the process had a processor; below 1, the machine was busy."""
    threshold: float = 0.0
    """The throughput that the workload's file requires, in pods per second."""
    caches: dict[str, CacheUse] = {}
    """By name; see docs/engine.md."""


class EventRun(_Run, frozen=True, kw_only=True, rename="camel", tag="events"):
    """Average cost of one kind of event while pods are pending."""

    compared_by = "us_per_event", 1.0

    event: str
    waiting: int
    events: int
    us_per_event: float
    moved_per_event: float

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.workload}: {self.event}"


class LoadRun(_Run, frozen=True, kw_only=True, rename="camel", tag="load"):
    """Time from the first byte of a dump to the first decision."""

    compared_by = "seconds", 1e6

    pods: int
    mib: float
    """The size of the dump."""
    read_s: float
    """Until all objects are decoded."""
    cluster_s: float
    """From then until they are in the cluster."""
    decision_s: float
    """From then until the scheduler has them and has decided about the first pod."""
    seconds: float
    peak_mib: float


class CommandRun(_Run, frozen=True, kw_only=True, rename="camel", tag="command"):
    """`bayplan simulate` from the start of its process to its end."""

    compared_by = "cpu_s", 1e6

    pods: int
    placed: int
    seconds: float
    """On the wall clock."""
    cpu_s: float
    """Processor seconds of the process."""
    peak_mib: float

    @property
    def pods_per_cpu_s(self) -> float:
        return self.pods / max(self.cpu_s, 0.001)


class QuestionRun(_Run, frozen=True, kw_only=True, rename="camel", tag="question"):
    """A question about a cluster, such as `bayplan explain`, from the start of its process to its end."""

    compared_by = "answer_s", 1e6

    question: str
    pods: int
    seconds: float
    """On the wall clock."""
    cpu_s: float
    """Processor seconds of the process."""
    answer_s: float
    """The part of them beyond that of a process that only reads the files."""
    peak_mib: float

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.workload}: {self.question}"


class PlanRun(_Run, frozen=True, kw_only=True, rename="camel", tag="plan"):
    """`bayplan plan` on a seeded workload: price, bound, and first fit decreasing on the same scheduler."""

    compared_by = "price", 1.0

    seed: int
    pods: int
    price: float
    """Per hour."""
    bound: float
    first_fit_price: float
    first_plan_s: float
    """Until there was a plan."""
    seconds: float
    cpu_s: float
    """Processor seconds of the process."""
    simulations: int
    peak_mib: float
    held: int = 0
    """With how many of the seeds of ties that the plan was not verified with every pod is placed."""

    @property
    def saved(self) -> float:
        """The share of first fit's price by which the plan is cheaper."""
        return 1 - self.price / self.first_fit_price

    @property
    def gap(self) -> float:
        """The share of the bound by which the plan is dearer."""
        return self.price / self.bound - 1 if self.bound > 0 else 1.0


Run: TypeAlias = PodRun | EventRun | LoadRun | CommandRun | QuestionRun | PlanRun


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Runs, and the machine they were made on."""

    runs: tuple[Run, ...]
    api_version: str = API_VERSION
    kind: str = KIND
    machine: dict[str, Any] = {}


def best_of(repeats: Sequence[Sequence[Run]]) -> list[Run]:
    """The best of each run, with the spread of the others."""
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
    with os_errors_named(path, "a writable file"):
        path.write_bytes(content)


def read_report(path: Path) -> list[Run]:
    """Read a document of runs; raises InputError if it is invalid."""
    try:
        with os_errors_named(path, "a readable file"):
            report = msgspec.json.decode(path.read_bytes(), type=Report)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a {KIND} in JSON; {error}") from None
    except RecursionError:
        raise InputError(f"{path}: expected less deep nesting") from None
    if (report.api_version, report.kind) != (API_VERSION, KIND):
        found = f"{report.kind} {report.api_version}"
        raise InputError(f"{path}: expected a {KIND} of {API_VERSION}; got {found}")
    return list(report.runs)
