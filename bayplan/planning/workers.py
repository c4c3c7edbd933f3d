"""Workers: copies of this process that simulate fleets in parallel, one on each further core. They are forked, so they
have the same workload and plugins, and nothing is loaded again. Their answers equal those of this process: they save
time and change no result. There are none outside of Linux: libraries of other systems may fail in a forked process.

Of their processor time only that is counted for which this process has to wait: what a task took beyond the processor
time that this process spent since it was sent.
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
from typing import Any, NamedTuple

from .fleet import Fleet

MOST_WORKERS = 7


class FleetTask(NamedTuple):
    """A fleet to verify, or to simulate with one more seed."""

    fleet: Fleet
    further_seed: int = 0
    """The additional seed; 0 if the fleet is to be verified."""

    def key(self) -> object:
        """Equal for the same simulations."""
        return self.fleet.key(), self.further_seed


class FleetWorker:
    """One process."""

    def __init__(self, work: Callable[[FleetTask], Any]) -> None:
        context = get_context("fork")
        self._connection, end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(end, self._connection, work), daemon=True
        )
        self._process.start()
        end.close()
        self.task: FleetTask | None = None
        """The task under way."""
        self.is_gone = False
        self._sent_s = 0.0

    def send(self, task: FleetTask) -> None:
        """Give it work; it must be idle. The work of a process that was killed is not done."""
        assert self.task is None, "a worker has one task at a time"
        try:
            self._connection.send(task)
        except OSError:
            self.is_gone = True
            return
        self.task, self._sent_s = task, time.process_time()

    def is_ready(self) -> bool:
        """Whether there is an answer."""
        return self.task is not None and self._connection.poll()

    def receive(self) -> tuple[Any, float]:
        """Wait for the answer; None if it failed, or the process was killed. Also returns how much processor time it
        took beyond that of this process since it was sent.
        """
        self.task = None
        try:
            answer, cpu_s = self._connection.recv()
        except (EOFError, OSError):
            self.is_gone = True
            return None, 0.0
        return answer, max(cpu_s - (time.process_time() - self._sent_s), 0.0)

    def end(self) -> None:
        """Stop it at once."""
        self._process.terminate()
        self._process.join()
        self._connection.close()


def _serve(end: Connection, other_end: Connection, work: Callable[[FleetTask], Any]) -> None:
    """Answer until the parent ends. Ctrl-C is handled by the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    other_end.close()
    while True:
        try:
            task = end.recv()
        except EOFError:
            return
        before_s = time.process_time()
        try:
            answer = work(task)
        except Exception:  # reported by the parent, see below
            answer = None  # the parent fails in the same way
        end.send((answer, time.process_time() - before_s))


@dataclass(slots=True)
class WorkerPool:
    """All workers, and the tasks that wait for one."""

    work: Callable[[FleetTask], Any]
    size: int
    count_time: Callable[[float], None] = lambda seconds: None
    """Takes the processor time of workers for which this process waited."""
    answers: dict[object, Any] = field(default_factory=dict)
    """By the key of a task; they are taken out once."""
    _backlog: list[FleetTask] = field(default_factory=list)
    _workers: list[FleetWorker] = field(default_factory=list)

    def announce(self, tasks: list[FleetTask]) -> None:
        """Begin with tasks whose answers are needed soon, in this order. The first are left to this process."""
        begun = {worker.task.key() for worker in self._workers if worker.task is not None}
        begun |= self.answers.keys()
        self._backlog = [*tasks[:1], *(one for one in tasks[1:] if one.key() not in begun)]
        self._follow()

    def take(self, task: FleetTask) -> Any:
        """The answer to a task, if a worker has computed it or computes it; else None."""
        self._follow()
        key = task.key()
        for worker in self._workers:
            if worker.task is not None and worker.task.key() == key:
                self._receive(worker)
        self._backlog = [one for one in self._backlog if one.key() != key]
        self._follow()
        return self.answers.pop(key, None)

    def end(self) -> None:
        """Stop all, and drop their answers."""
        for worker in self._workers:
            worker.end()
        self._workers, self._backlog = [], []
        self.answers.clear()

    def forsake(self) -> None:
        """In a worker: forget the workers of the parent process."""
        self._workers, self._backlog, self.size = [], [], 0

    def _receive(self, worker: FleetWorker) -> None:
        assert worker.task is not None, "there is an answer to a task only"
        key = worker.task.key()
        self.answers[key], waited_s = worker.receive()
        self.count_time(waited_s)

    def _follow(self) -> None:
        """Collect answers, and give idle workers the last tasks of the backlog."""
        for worker in self._workers:
            if worker.is_ready():
                self._receive(worker)
        while len(self._backlog) > 1:
            idle = self._idle()
            if idle is None:
                return
            idle.send(self._backlog.pop())

    def _idle(self) -> FleetWorker | None:
        for worker in self._workers:
            if worker.task is None and not worker.is_gone:
                return worker
        if len(self._workers) < self.size:
            self._workers.append(FleetWorker(self.work))
            return self._workers[-1]
        return None


def count_workers() -> int:
    """Number of workers that can run in addition to this process."""
    if sys.platform != "linux":
        return 0
    return min(len(os.sched_getaffinity(0)) - 1, MOST_WORKERS)
