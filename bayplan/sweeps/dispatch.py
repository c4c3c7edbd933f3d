"""Dispatch: give runs to workers, and again when a worker is lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from ..errors import BayplanError
from .sweep_run import SweepRun
from .worker import RunResult

TRIES = 2
"""Number of times that a run is given to a worker before the loss of workers counts as its failure."""


class CrewLostError(BayplanError):
    """All workers are gone, and none can be started."""


class WorkerReport(NamedTuple):
    """Result of a worker: a result, or its end without one."""

    worker: int
    result: RunResult | None
    why: str = ""
    """Result of the worker."""


class Crew(Protocol):
    """Workers, by number, wherever they run."""

    def start(self) -> int:
        """Start a worker; returns its number."""

    def give(self, worker: int, run: SweepRun) -> None:
        """Let a worker do a run; it reports later."""

    def next_report(self) -> WorkerReport:
        """Wait for a worker that has finished its run, or has ended."""

    def close(self) -> None:
        """End all workers."""


class _Waiting:
    """The runs that wait, by input: a worker keeps to its input, so that it is read once per worker."""

    def __init__(self, runs: Iterable[SweepRun]) -> None:
        self._by_input: dict[str, deque[SweepRun]] = {}
        self.count = 0
        for run in runs:
            self.add(run)

    def add(self, run: SweepRun) -> None:
        self._by_input.setdefault(run.input_key, deque()).append(run)
        self.count += 1

    def take(self, last_input: str) -> SweepRun:
        """A run of the input, or of the one with the most runs left."""
        key = last_input
        if key not in self._by_input:
            key = max(self._by_input, key=lambda each: len(self._by_input[each]))
        runs = self._by_input[key]
        self.count -= 1
        run = runs.popleft()
        if not runs:
            del self._by_input[key]
        return run


def dispatch(
    runs: Sequence[SweepRun], crew: Crew, size: int, on_result: Callable[[RunResult], None]
) -> None:
    """Do all runs with at most `size` workers; each result is passed on as it comes.

    A worker that ends is replaced, and its run given to another one; after two such ends the run has failed.
    """
    waiting, busy = _Waiting(runs), dict[int, SweepRun]()
    tries: Counter[str] = Counter()
    last_input: dict[int, str] = {}
    idle: list[int] = []
    while waiting.count or busy:
        while waiting.count and len(busy) < size:
            worker = idle.pop() if idle else crew.start()
            run = waiting.take(last_input.get(worker, ""))
            last_input[worker], busy[worker] = run.input_key, run
            tries[run.id] += 1
            crew.give(worker, run)
        report = crew.next_report()
        if report.worker not in busy:
            idle.remove(report.worker)  # it ended between two runs
            continue
        run = busy.pop(report.worker)
        if report.result is not None:
            idle.append(report.worker)
            on_result(report.result)
        elif tries[run.id] < TRIES:
            waiting.add(run)
        else:
            text = (
                f"expected the worker to finish the run; it ended {TRIES} times, {report.why}; "
                "--retry-failed repeats it"
            )
            on_result(RunResult(id=run.id, error=text))
