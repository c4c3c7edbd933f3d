"""Workers: copies of this process that verify fleets beside it, one on each further core.

They are forked, so they have the workload and the plugins as they are here, and nothing is loaded again. Their answers
are those of this process: they save time and change no result. All of their processor time is counted, also that for
answers which are not used. There are none outside of Linux: libraries of other systems may fail in a forked process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from .fleet import Fleet

MOST_WORKERS = 7


class FleetWorker:
    """One process."""

    def __init__(self, work: Callable[[Fleet], Any]) -> None:
        context = get_context("fork")
        self._connection, end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(end, self._connection, work), daemon=True
        )
        self._process.start()
        end.close()
        self.fleet: Fleet | None = None
        """The fleet that it verifies."""
        self.is_gone = False
        self.cpu_s = 0.0
        """Processor time as of the last answer, and of all once it has ended."""

    def send(self, fleet: Fleet) -> None:
        """Give it work; it must be idle. The work of a process that was killed is not done."""
        assert self.fleet is None, "a worker has one fleet at a time"
        try:
            self._connection.send(fleet)
        except OSError:
            self.is_gone = True
            return
        self.fleet = fleet

    def is_ready(self) -> bool:
        """Whether there is an answer."""
        return self.fleet is not None and self._connection.poll()

    def receive(self) -> Any:
        """Wait for the answer; None if it failed, or the process was killed."""
        self.fleet = None
        try:
            answer, self.cpu_s = self._connection.recv()
        except (EOFError, OSError):
            self.is_gone = True
            return None
        return answer

    def end(self) -> None:
        """Stop it at once."""
        before_s = _children_cpu_s()
        self._process.terminate()
        self._process.join()
        self._connection.close()
        self.cpu_s = max(self.cpu_s, _children_cpu_s() - before_s)


def _children_cpu_s() -> float:
    """Processor time of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _serve(end: Connection, other_end: Connection, work: Callable[[Fleet], Any]) -> None:
    """Answer until the parent ends. Ctrl-C is handled by the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    other_end.close()
    while True:
        try:
            fleet = end.recv()
        except EOFError:
            return
        try:
            answer = work(fleet)
        except Exception:  # reported by the parent, see below
            answer = None  # the parent fails in the same way
        end.send((answer, time.process_time()))


@dataclass(slots=True)
class WorkerPool:
    """All workers, and the fleets that wait for one."""

    work: Callable[[Fleet], Any]
    size: int
    count_time: Callable[[float], None] = lambda seconds: None
    """Takes the processor time of workers as they answer and end."""
    answers: dict[object, Any] = field(default_factory=dict)
    """By the key of a fleet; they are taken out once."""
    _backlog: list[Fleet] = field(default_factory=list)
    _workers: list[FleetWorker] = field(default_factory=list)

    def announce(self, fleets: list[Fleet]) -> None:
        """Begin with fleets that are asked for soon, in this order. The first are left to this process."""
        self._backlog = fleets
        self._follow()

    def take(self, fleet: Fleet) -> Any:
        """The result for a fleet, if a worker has computed it or computes it; else None."""
        self._follow()
        key = fleet.key()
        for worker in self._workers:
            if worker.fleet is not None and worker.fleet.key() == key:
                self.answers[key] = self._receive(worker)
        self._backlog = [one for one in self._backlog if one.key() != key]
        self._follow()
        return self.answers.pop(key, None)

    def end(self) -> None:
        """Stop all."""
        for worker in self._workers:
            before_s = worker.cpu_s
            worker.end()
            self.count_time(worker.cpu_s - before_s)
        self._workers, self._backlog = [], []

    def _receive(self, worker: FleetWorker) -> Any:
        before_s = worker.cpu_s
        answer = worker.receive()
        self.count_time(worker.cpu_s - before_s)
        return answer

    def _follow(self) -> None:
        """Collect answers, and give idle workers the last fleets of the backlog."""
        for worker in self._workers:
            if worker.is_ready():
                assert worker.fleet is not None
                key = worker.fleet.key()
                self.answers[key] = self._receive(worker)
        while len(self._backlog) > 1:
            idle = self._idle()
            if idle is None:
                return
            idle.send(self._backlog.pop())

    def _idle(self) -> FleetWorker | None:
        for worker in self._workers:
            if worker.fleet is None and not worker.is_gone:
                return worker
        if len(self._workers) < self.size:
            self._workers.append(FleetWorker(self.work))
            return self._workers[-1]
        return None


def count_workers() -> int:
    """Number of workers that can run beside this process."""
    if sys.platform != "linux":
        return 0
    return min(len(os.sched_getaffinity(0)) - 1, MOST_WORKERS)
