"""Comparison: regressions in time and memory, and growth of costs with nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from .measurements import CommandRun, PodRun, Run

SizedRun = TypeVar("SizedRun", PodRun, CommandRun)

LEAST_MIB = 1.0
"""Minimum difference in memory per ten thousand pods; less is noise."""


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
