"""Agenda: scheduled actions of the cluster, as opposed to the scheduler's own timers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from ..api.pod import Pod
from ..clock import EPOCH, Clock, Timers
from ..cluster.objects.object_index import ClusterObject
from ..cluster.objects.pod_life import moment_of


class Agenda:
    """Sets timers of a simulation and counts those that have not fired."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self.pending = 0
        """Number of pending actions."""

    def first_at(self, at_s: float, action: Callable[[], None]) -> None:
        """Run `action` at `at_s`, before everything else at that time; only one such action may be pending."""
        self._timers.first_at(at_s, self._counted(action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run `action` in `seconds`."""
        # The clock counts microseconds; a sum of floats may exceed one by a rounding error.
        self._timers.at(round(self._clock.monotonic() + seconds, 6), self._counted(action))

    def _counted(self, action: Callable[[], None]) -> Callable[[], None]:
        self.pending += 1

        def happen() -> None:
            self.pending -= 1
            action()

        return happen


def start_time(objects: Iterable[ClusterObject]) -> datetime:
    """The start of the simulation: the latest time in the input, so that all of its times are past."""
    newest = ""
    for obj in objects:
        created = obj.creation_timestamp
        if created and created > newest:
            newest = created
        if isinstance(obj, Pod):
            started = obj.status.start_time
            if started and started > newest:
                newest = started
    return (moment_of(newest) or EPOCH).replace(microsecond=0)
