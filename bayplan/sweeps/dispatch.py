"""Dispatch: give runs to workers, and again when a worker is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple, Protocol

import msgspec

from ..errors import BayplanError
from ..manifests.input_bytes import VARIABLE, input_limit
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
    """Description of how the worker ended."""


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
    """Do all runs with at most `size` workers; each result is passed on when it arrives.

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


COMMAND = (sys.executable, "-m", "bayplan.sweeps.worker_process")


class ProcessCrew:
    """Workers in processes. They get runs on standard input, and a thread each reads their results.

    Interpreters are started anew, not forked: the caller may be a notebook, or a script without a main guard.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._reports: SimpleQueue[WorkerReport] = SimpleQueue()

    def start(self) -> int:
        """Start a process."""
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **_limit()},
        )
        number = len(self._processes)
        self._processes.append(process)
        Thread(target=self._read, args=(number, process), daemon=True).start()
        return number

    def give(self, worker: int, run: SweepRun) -> None:
        """Write a run to the process; if it has ended, the thread reports that."""
        stdin = self._processes[worker].stdin
        assert stdin is not None, "it was started with a pipe"
        try:
            stdin.write(msgspec.json.encode(run) + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return

    def next_report(self) -> WorkerReport:
        """Wait for one of the threads."""
        return self._reports.get()

    def close(self) -> None:
        """Kill the processes: results of finished runs are written, others are not waited for."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def _read(self, number: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None, "it was started with a pipe"
        for line in process.stdout:
            try:
                result = msgspec.json.decode(line, type=RunResult)
            except msgspec.DecodeError:
                break  # it died while it was writing
            self._reports.put(WorkerReport(number, result))
        process.kill()
        code = process.wait()
        end = f"killed by signal {-code}" if code < 0 else f"with exit status {code}"
        self._reports.put(WorkerReport(number, None, end))


def _limit() -> dict[str, str]:
    """The limit on the size of inputs as a variable of the environment; empty if it was not set."""
    limit = input_limit()
    return {} if limit is None else {VARIABLE: str(limit)}
