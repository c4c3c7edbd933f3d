"""Local workers: workers on this machine, one process each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec

from ..manifests.input_bytes import VARIABLE, input_limit
from .dispatch import WorkerReport
from .sweep_run import SweepRun
from .worker import RunResult

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
        self._reports.put(WorkerReport(number, None, _end(process.wait())))


def _end(code: int) -> str:
    """Exit of a process, in words."""
    return f"killed by signal {-code}" if code < 0 else f"with exit status {code}"


def _limit() -> dict[str, str]:
    """The limit on the size of inputs as a variable of the environment; empty if it was not set."""
    limit = input_limit()
    return {} if limit is None else {VARIABLE: str(limit)}
