"""Streamed simulation: objects come from an iterator, and the results of pods go to a sink as they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...clock import SystemClock
from ...config import SchedulerConfiguration
from ...manifests.timeline import InputObject
from ..simulation import OnProgress, Simulation
from .ended_pods import LeavingPods
from .stream_report import StreamReport
from .stream_results import RowSink, StreamedResults
from .timed_objects import Arrivals, split_arrivals


class StreamedSimulation(Simulation):
    """A simulation in memory for the pods that are there at a time, however many there are in all.

    `stream` yields objects in the order of their times (the annotation bayplan.dev/created-at): first those that are
    there at the start, with the `objects` that are given as a whole. Each pod's row is passed to `sink` when it ends.
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
        """Schedule until nothing can change any more, or until this many seconds have passed on the clock."""
        started = SystemClock().monotonic()
        self.proceed(on_progress, until_s)
        report = self._streamed.stream_report(self.scheduler, SystemClock().monotonic() - started)
        report.refused, report.remarks = self.refusals, self.remarks
        return report
