"""Driver: a cluster in memory with its scheduler, run round by round.

A round is one attempt to schedule a pod. Between rounds objects may be added and deleted; when no
pod is ready and some are still wanted, time jumps to the next timer.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...api.meta import ObjectMeta
from ...api.node import Node
from ...api.pod import Pod
from ...api.workloads import Namespace
from ...clock import ManualClock, Timers
from ...cluster.memory.admission import admit_namespace
from ...cluster.memory.object_store import MemoryCluster
from ...cluster.objects.object_index import ClusterObject
from ...config.defaults import default_config
from ...config.types import SchedulerConfiguration
from ...scheduler import Attempt, Outcome, Scheduler, SchedulerSettings, build_scheduler
from ...scheduler.collector import rare_collections

PATIENCE_S = 3600
"""Stop waiting for pods when none was placed for this long on the virtual clock."""


class Driver:
    """Adds objects and runs rounds. Deleted pods disappear at once."""

    def __init__(
        self,
        config: SchedulerConfiguration | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        now: Callable[[], int] = time.perf_counter_ns,
        plugins: Iterable[str] = (),
    ) -> None:
        self.now = now
        """The measuring clock, in nanoseconds; `clock` is the cluster's own."""
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self.bound: Counter[str] = Counter()
        """Number of placed pods, by namespace."""
        self.on_bound: Callable[[Pod], None] | None = None
        self.between_rounds: list[Callable[[], None]] = []
        """Called after every round."""
        self.when_idle: list[Callable[[], bool]] = []
        """Called when no pod is ready and some are wanted; returns False if nothing is left to do."""
        self._passing: dict[str, list[Pod]] = {}
        self.scheduler: Scheduler = build_scheduler(
            config or default_config(feature_gates),
            self.cluster,
            SchedulerSettings(
                clock=self.clock,
                timers=Timers(self.clock),
                seed=0,
                feature_gates=feature_gates,
                plugins=plugins,
                ended=self._ended,
                faults_are_fatal=True,
            ),
        )
        self.cluster.watch(self.scheduler)

    @property
    def waiting(self) -> int:
        """Number of unschedulable pods."""
        return len(self.scheduler.queue.unschedulable)

    def add(self, obj: ClusterObject) -> ClusterObject:
        """Add an object to the cluster."""
        added: ClusterObject = self.cluster.add(obj)
        return added

    def add_passing(self, obj: ClusterObject) -> ClusterObject:
        """Add an object to the cluster that will be deleted later; the pods of a node are deleted
        with it."""
        if isinstance(obj, Node):
            self._passing[obj.name] = []
        return self.add(obj)

    def update(self, obj: ClusterObject) -> None:
        """Replace the object of the same name; a pod stays on its node."""
        if isinstance(obj, Pod) and not obj.node_name:
            stored = self.cluster.get("Pod", obj.namespace, obj.name)
            if stored is not None and stored.node_name:
                obj = obj.with_node(stored.node_name)
        self.cluster.update(obj)

    def delete(self, obj: ClusterObject) -> None:
        """Delete an object, and the pods of a temporary node."""
        self.cluster.delete(obj)
        if isinstance(obj, Node):
            for pod in self._passing.pop(obj.name, ()):
                if self.cluster.get("Pod", pod.namespace, pod.name) is not None:
                    self.cluster.delete(pod)

    def need_namespace(self, name: str) -> None:
        """Create a namespace unless it exists."""
        if self.cluster.get("Namespace", "", name) is None:
            self.add(admit_namespace(Namespace(metadata=ObjectMeta(name=name))))

    def run(self, is_done: Callable[[], bool], rounds: array[int] | None = None) -> None:
        """Run rounds until no pod is ready; advance the clock while it is not done and a timer is set.

        The nanoseconds of each round are appended to `rounds`. Raises PluginFaultError when the code of a plugin fails.
        """
        with rare_collections():
            self._run(is_done, rounds)
        self.scheduler.faults.check()

    def _run(self, is_done: Callable[[], bool], rounds: array[int] | None) -> None:
        now, schedule_one, between = self.now, self.scheduler.schedule_one, self.between_rounds
        progress = (self.bound.total(), self.clock.monotonic())
        while True:
            start = now()
            attempt = schedule_one()
            took = now() - start
            if attempt is None:
                self.scheduler.faults.check()
                if is_done() or not (any(action() for action in self.when_idle) or self._go_on()):
                    return
                progress = self._progress_since(*progress)
                if self.clock.monotonic() - progress[1] > PATIENCE_S:
                    return
                continue
            if rounds is not None:
                rounds.append(took)
            for action in between:
                action()

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.clock.advance(seconds)
        self.scheduler.run_timers()

    def _progress_since(self, bound: int, moment: float) -> tuple[int, float]:
        """The number of placed pods, and when it last changed."""
        total = self.bound.total()
        return (bound, moment) if total == bound else (total, self.clock.monotonic())

    def _go_on(self) -> bool:
        """Jump to the next timer; False when there is none."""
        due = self.scheduler.next_timer()
        if due is None or self.scheduler.is_settled:
            return False
        self.sleep(max(due - self.clock.monotonic(), 1e-6))
        return True

    def _ended(self, attempt: Attempt) -> None:
        if attempt.outcome is not Outcome.BOUND:
            return
        pod: Any = attempt.pod
        self.bound[pod.namespace] += 1
        if self.on_bound is not None:
            self.on_bound(pod)
        if attempt.node_name in self._passing:
            self._passing[attempt.node_name].append(pod)
