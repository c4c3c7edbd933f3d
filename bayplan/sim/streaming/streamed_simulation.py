"""Streamed simulation: objects come from an iterator, and the results of pods go to a sink as they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ...api.pod import Pod
from ...api.workloads import Job
from ...clock import SystemClock
from ...cluster.memory.object_store import MemoryCluster
from ...cluster.objects.object_index import ClusterObject, WatchHandler
from ...config.types import SchedulerConfiguration
from ...errors import InputError
from ...manifests.timeline import InputObject, Timeline, created_at
from ..agenda import Agenda
from ..simulation import OnProgress, Simulation
from .stream_report import StreamReport
from .stream_results import RowSink, StreamedResults


class StreamedSimulation(Simulation):
    """A simulation whose memory depends on the number of pods at a time, not on their total.

    `stream` yields objects in the order of their times (the annotation bayplan.dev/created-at): first the initial
    ones, with the `objects` that are given as a whole. Each pod's row is passed to `sink` when it ends.
    Decisions are those of an ordinary simulation of all objects. Finished pods leave the cluster, and so do
    jobs whose last pod has finished.
    """

    def __init__(
        self,
        stream: Iterable[InputObject],
        sink: RowSink,
        objects: Sequence[InputObject] = (),
        config: SchedulerConfiguration | None = None,
        **more: Any,
    ) -> None:
        self._sink = sink
        present, later = split_arrivals(stream)
        super().__init__([*objects, *present], config, **more)
        self._arrivals = Arrivals(later, self._world.agenda, self._world.arrive)
        self._leaving = LeavingPods(self.cluster, self._world.remove_done_job)
        self._world.after_settling = self._leaving.run

    def _make_results(self) -> StreamedResults:
        self._streamed = StreamedResults(self.clock, self.cluster, self._sink)
        return self._streamed

    def begin(self, until_s: float | None = None) -> None:
        """Start, with finished pods leaving."""
        if not self._has_begun:
            super().begin(until_s)
            self.cluster.watch(self._leaving, replay=False)

    def run_stream(
        self, on_progress: OnProgress | None = None, until_s: float | None = None
    ) -> StreamReport:
        """Schedule until nothing but retries is left to happen, or exactly until the clock shows `until_s`."""
        started = SystemClock().monotonic()
        self.proceed(on_progress, until_s)
        report = self._streamed.stream_report(self.scheduler, SystemClock().monotonic() - started)
        report.refused, report.remarks = self.refusals, self.remarks
        return report


class LeavingPods(WatchHandler):
    """Removes finished pods, and jobs whose last pod has finished (`remove_job`). Watches the cluster.

    To the scheduler a finished pod is gone already, and its controller has counted it.
    """

    def __init__(self, cluster: MemoryCluster, remove_job: Callable[[Pod], None]) -> None:
        self._cluster = cluster
        self._remove_job = remove_job
        self._finished: list[Pod] = []
        self._deleted: list[Pod | Job] = []

    def on_update(self, old: Any, new: Any) -> None:
        """Record a pod that finished."""
        if isinstance(new, Pod) and new.is_finished and not old.is_finished:
            self._finished.append(new)

    def on_delete(self, obj: Any) -> None:
        """Record a deleted pod or job."""
        if isinstance(obj, Pod | Job):
            self._deleted.append(obj)

    def run(self) -> None:
        """Remove the pods that finished, and forget deleted ones."""
        if self._finished:
            finished, self._finished = self._finished, []
            for pod in finished:
                stored = self._cluster.get("Pod", pod.namespace, pod.name)
                if stored is not None and stored.uid == pod.uid:
                    self._cluster.delete(stored)
                    if pod.controller is not None:
                        self._remove_job(pod)
        if self._deleted:
            deleted, self._deleted = self._deleted, []
            for obj in deleted:
                self._cluster.forget(obj)


def split_arrivals(
    objects: Iterable[InputObject],
) -> tuple[list[InputObject], Iterator[ClusterObject]]:
    """Objects that exist at the start, and those that are added later, sorted by time."""
    rest = iter(objects)
    present: list[InputObject] = []
    for obj in rest:
        if not isinstance(obj, Timeline) and created_at(obj):
            return present, _later(chain([obj], rest))
        present.append(obj)
    return present, iter(())


def _later(objects: Iterable[InputObject]) -> Iterator[ClusterObject]:
    for obj in objects:
        if isinstance(obj, Timeline):
            raise InputError("stream: expected a Timeline before the first object with a time")
        yield obj


class Arrivals:
    """Adds each object at its time; only the next one is in memory.

    Arrivals come before all other events of the same time, as in a simulation that has all objects from the start.
    """

    def __init__(
        self,
        objects: Iterator[ClusterObject],
        agenda: Agenda,
        add: Callable[[ClusterObject], None],
    ) -> None:
        self._objects = objects
        self._agenda = agenda
        self._add = add
        self._next: ClusterObject | None = None
        self._at_s = 0.0
        self._advance()

    def _advance(self) -> None:
        """Take the next object, and set a timer for it; raises InputError when it comes too late."""
        obj = self._next = next(self._objects, None)
        if obj is None:
            return
        at_s = created_at(obj)
        if at_s < self._at_s:
            problem = f"expected objects sorted by time; got {at_s:g} s after {self._at_s:g} s"
            raise InputError(f"stream: {obj.kind} {obj.key}: {problem}")
        self._at_s = at_s
        self._agenda.first_at(at_s, self._arrive)

    def _arrive(self) -> None:
        obj = self._next
        assert obj is not None, "a timer is set for the next object only"
        self._add(obj)
        self._advance()
