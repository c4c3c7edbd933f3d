"""Measurements: runs as objects and as a document, regressions from an earlier one, and growth with nodes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from ...api.own_documents import API_VERSION
from ...errors import InputError, os_errors_named

KIND = "BenchReport"
LEAST_MIB = 1.0
"""Minimum difference in memory per ten thousand pods; less is noise."""


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
    """Seconds until all objects are decoded."""
    cluster_s: float
    """Seconds from then until they are in the cluster."""
    decision_s: float
    """Seconds from then until the scheduler has them and has decided about the first pod."""
    seconds: float
    peak_mib: float


class _ProcessRun(_Run, frozen=True, kw_only=True, rename="camel"):
    """A command, from the start of its process to its end."""

    pods: int
    seconds: float
    """On the wall clock."""
    cpu_s: float
    """Processor seconds of the process."""
    peak_mib: float


class CommandRun(_ProcessRun, frozen=True, kw_only=True, rename="camel", tag="command"):
    """`bayplan simulate`."""

    compared_by = "cpu_s", 1e6

    placed: int

    @property
    def pods_per_cpu_s(self) -> float:
        return self.pods / max(self.cpu_s, 0.001)


class QuestionRun(_ProcessRun, frozen=True, kw_only=True, rename="camel", tag="question"):
    """A question about a cluster, such as `bayplan explain`."""

    compared_by = "answer_s", 1e6

    question: str
    answer_s: float
    """The processor seconds beyond those of a process that only reads the files."""

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.workload}: {self.question}"


class PlanRun(_ProcessRun, frozen=True, kw_only=True, rename="camel", tag="plan"):
    """`bayplan plan` on a seeded workload: price, bound, and first fit decreasing on the same scheduler."""

    compared_by = "price", 1.0

    seed: int
    price: float
    """Per hour."""
    bound: float
    first_fit_price: float
    first_plan_s: float
    """Seconds until the first plan."""
    simulations: int
    held: int = 0
    """Number of further seeds, with which the plan was not verified, that place every pod."""

    @property
    def saved(self) -> float:
        """The share of first fit's price by which the plan is cheaper."""
        return 1 - self.price / self.first_fit_price

    @property
    def gap(self) -> float:
        """The gap between the price of the plan and the bound, as a share of the bound."""
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


SizedRun = TypeVar("SizedRun", PodRun, CommandRun)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A run, and the same run of an earlier version; `before` is None when there was none."""

    before: Run | None
    now: Run
    threshold: float
    """The relative increase that counts as worse."""

    @property
    def by(self) -> float | None:
        """The relative increase of the cost; None without an earlier run."""
        return None if self.before is None else self.now.cost / max(self.before.cost, 1e-9) - 1

    @property
    def is_slower(self) -> bool:
        """Whether the cost rose by more than the threshold."""
        return self.by is not None and self.by > self.threshold

    @property
    def is_faster(self) -> bool:
        """Whether the cost fell by the equivalent of the threshold."""
        return self.by is not None and self.by < 1 / (1 + self.threshold) - 1

    @property
    def is_bigger(self) -> bool:
        """Whether pods need more memory, by more than the threshold."""
        if not isinstance(self.now, PodRun) or not isinstance(self.before, PodRun):
            return False
        was, now = self.before.mib_per_10k_pods, self.now.mib_per_10k_pods
        return now - was > max(was * self.threshold, LEAST_MIB)


def compare(before: Sequence[Run], now: Sequence[Run], threshold: float) -> list[RunComparison]:
    """Each current run, with the earlier one of the same name, size and clock."""
    known = {_key(run): run for run in before}
    return [RunComparison(known.get(_key(run)), run, threshold) for run in now]


def _key(run: Run) -> tuple[str, int, int, str]:
    return run.name, run.nodes, getattr(run, "pods", 0), run.clock


@dataclass(frozen=True)
class Growth(Generic[SizedRun]):
    """One workload at several sizes, smallest first."""

    runs: tuple[SizedRun, ...]

    @property
    def workload(self) -> str:
        """The name of the workload."""
        return self.runs[0].workload

    def factors(self, figure: Callable[[SizedRun], float]) -> list[float]:
        """The growth factor of a figure from each size to the next."""
        values = [figure(run) for run in self.runs]
        return [
            after / before if before > 0 else float("nan") for before, after in pairwise(values)
        ]


def find_growth(runs: Sequence[Run], kind: type[SizedRun]) -> list[Growth[SizedRun]]:
    """The workloads of pods, or of commands, that were run at more than one number of nodes."""
    by_workload: dict[str, dict[int, SizedRun]] = {}
    for run in runs:
        if isinstance(run, kind):
            by_workload.setdefault(run.workload, {})[run.nodes] = run
    return [
        Growth(tuple(sizes[nodes] for nodes in sorted(sizes)))
        for sizes in by_workload.values()
        if len(sizes) > 1
    ]
