"""Driver: a cluster in memory and a scheduler at work in it, round by round.

A round is one attempt to schedule a pod. Between rounds objects may come and go; when no pod is ready and some are
still wanted, time jumps to the next moment at which something is due.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ...api.meta import ObjectMeta
from ...api.node import Node
from ...api.pod import Pod
from ...api.workloads import Namespace
from ...clock import ManualClock, Timers
from ...cluster.memory import ClusterObject, MemoryCluster, admit_namespace
from ...config import SchedulerConfiguration, default_config
from ...scheduler import Attempt, Outcome, Scheduler, build_scheduler
from ...scheduler.collector import rare_collections

PATIENCE_S = 3600
"""When no pod was placed for so long, on the virtual clock, none is waited for any longer."""


class Driver:
    """Objects go in, rounds are done. Deleted pods go at once."""

    def __init__(
        self,
        config: SchedulerConfiguration | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        now: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.now = now
        """The nanoseconds on the clock by which is measured; `clock` is the cluster's own."""
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self.bound: Counter[str] = Counter()
        """How many pods were placed, by namespace."""
        self.on_bound: Callable[[Pod], None] | None = None
        self.between_rounds: list[Callable[[], None]] = []
        """What is done after every round."""
        self.when_idle: list[Callable[[], bool]] = []
        """What is done when no pod is ready and some are wanted; False: there is nothing left to do."""
        self._passing: dict[str, list[Pod]] = {}
        self.scheduler: Scheduler = build_scheduler(
            config or default_config(),
            self.cluster,
            clock=self.clock,
            timers=Timers(self.clock),
            seed=0,
            feature_gates=feature_gates,
            ended=self._ended,
        )
        self.cluster.watch(self.scheduler)

    @property
    def waiting(self) -> int:
        """How many pods wait for something to happen."""
        return len(self.scheduler.queue.unschedulable)

    def add(self, obj: ClusterObject) -> ClusterObject:
        """Put an object into the cluster."""
        added: ClusterObject = self.cluster.add(obj)
        return added

    def add_passing(self, obj: ClusterObject) -> ClusterObject:
        """Put an object into the cluster that will go again; the pods of a node will go with it."""
        if isinstance(obj, Node):
            self._passing[obj.name] = []
        return self.add(obj)

    def update(self, obj: ClusterObject) -> None:
        """Put an object in the place of the one of its name; a pod stays on its node."""
        if isinstance(obj, Pod) and not obj.node_name:
            stored = self.cluster.get("Pod", obj.namespace, obj.name)
            if stored is not None and stored.node_name:
                obj = obj.with_node(stored.node_name)
        self.cluster.update(obj)

    def delete(self, obj: ClusterObject) -> None:
        """Take an object away, and the pods of a node that was to go again."""
        self.cluster.delete(obj)
        if isinstance(obj, Node):
            for pod in self._passing.pop(obj.name, ()):
                if self.cluster.get("Pod", pod.namespace, pod.name) is not None:
                    self.cluster.delete(pod)

    def need_namespace(self, name: str) -> None:
        """Make a namespace unless it is there."""
        if self.cluster.get("Namespace", "", name) is None:
            self.add(admit_namespace(Namespace(metadata=ObjectMeta(name=name))))

    def run(self, is_done: Callable[[], bool], rounds: array[int] | None = None) -> None:
        """Do rounds until no pod is ready; go on in time while it is not done and something is due.

        The nanoseconds of each round go into `rounds`.
        """
        with rare_collections():
            self._run(is_done, rounds)

    def _run(self, is_done: Callable[[], bool], rounds: array[int] | None) -> None:
        now, schedule_one, between = self.now, self.scheduler.schedule_one, self.between_rounds
        progress = (self.bound.total(), self.clock.monotonic())
        while True:
            start = now()
            attempt = schedule_one()
            took = now() - start
            if attempt is None:
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
        """Let time pass."""
        self.clock.advance(seconds)
        self.scheduler.run_timers()

    def _progress_since(self, bound: int, moment: float) -> tuple[int, float]:
        """How many pods are placed, and when that was different last."""
        total = self.bound.total()
        return (bound, moment) if total == bound else (total, self.clock.monotonic())

    def _go_on(self) -> bool:
        """Jump to the next moment at which something is due; False when there is none."""
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
