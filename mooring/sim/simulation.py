"""Simulation: put objects into a cluster in memory and let the scheduler work until it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from ..api.meta import ObjectMeta
from ..api.node import Node
from ..api.pod import Pod
from ..api.workloads import Namespace
from ..clock import ManualClock, SystemClock
from ..cluster.memory import (
    WORKLOAD_KINDS,
    Admission,
    AdmissionError,
    ClusterObject,
    Controllers,
    MemoryCluster,
    admit_namespace,
)
from ..config import SchedulerConfiguration, default_config
from ..errors import ConflictError, InputError
from ..scheduler import Attempt, Outcome, build_scheduler
from .report import NodeUse, PodResult, SimulationReport

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the pods that are settled and the pods in all."""


class Simulation:
    """One run. `objects` are a cluster and its workload; pods with a node are running already.

    Workloads become pods, in the place of the workload in the order of the input. `place_of` says
    where an object was read, for errors. Raises InputError when an object would be refused by an
    API server, or when there is no node.
    """

    def __init__(
        self,
        objects: Sequence[ClusterObject],
        config: SchedulerConfiguration | None = None,
        *,
        seed: int | None = None,
        plugins: Iterable[str] = (),
        explain: bool = False,
        place_of: Callable[[ClusterObject], str] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self._place_of = place_of or (lambda obj: "")
        self._load(objects)
        self.scheduler = build_scheduler(
            config or default_config(),
            self.cluster,
            clock=self.clock,
            seed=seed,
            plugin_files=tuple(plugins),
            explain=explain,
            ended=self._note,
        )
        self._results: dict[str, PodResult] = {}
        self._seen_evictions = 0

    def run(self, on_progress: OnProgress | None = None) -> SimulationReport:
        """Schedule until nothing more can be placed."""
        started = SystemClock().monotonic()
        waiting = [pod for pod in self.cluster.list("Pod") if _is_waiting(pod)]
        nodes = {node.name: NodeUse(node) for node in self.cluster.list("Node")}
        running = self._add_up(nodes, after=False)
        self.cluster.watch(self.scheduler)
        self._schedule_all(len(waiting), on_progress)
        self._note_untried(waiting)
        self._add_up(nodes, after=True)
        return SimulationReport(
            pods=list(self._results.values()),
            nodes=list(nodes.values()),
            running=running,
            preempted=self.cluster.evictions,
            seconds=SystemClock().monotonic() - started,
        )

    def _schedule_all(self, total: int, on_progress: OnProgress | None) -> None:
        """Try every pod, and the refused ones again as long as that places one more."""
        while True:
            attempt = self.scheduler.schedule_one()
            if attempt is None:
                due = self.scheduler.next_timer()
                if due is None or self.scheduler.is_settled:
                    return
                self.clock.advance(max(due - self.clock.monotonic(), 0))
                self.scheduler.run_timers()
                continue
            total += self._replace_evicted()
            if on_progress is not None:
                on_progress(len(self._results), total)

    def _replace_evicted(self) -> int:
        """Let controllers make up for evicted pods; returns how many they made."""
        made = 0
        while self._seen_evictions < len(self.cluster.evictions):
            victim, _ = self.cluster.evictions[self._seen_evictions]
            self._seen_evictions += 1
            self._results.pop(victim.uid, None)
            made += len(self._controllers.replace(victim))
        return made

    def _note(self, attempt: Attempt) -> None:
        """Keep the attempt as the pod's last."""
        known = self._results.get(attempt.pod.uid)
        attempts = known.attempts + 1 if known else 1
        self._results[attempt.pod.uid] = PodResult(attempt, self.clock.monotonic(), attempts)

    def _note_untried(self, waiting: list[Pod]) -> None:
        """Account for the pods that were never tried: held back, or another scheduler's."""
        for attempt in self.scheduler.gated():
            self._note(attempt)
        for pod in waiting:
            if pod.uid not in self._results:
                message = f'waits for scheduler "{pod.scheduler_name}", which is not configured'
                self._note(Attempt(pod, Outcome.GATED, message=message))

    def _add_up(self, nodes: dict[str, NodeUse], after: bool) -> int:
        """Add up what pods take from each node; returns how many pods are on one."""
        count = 0
        for pod in self.cluster.list("Pod"):
            use = nodes.get(pod.node_name)
            if use is None or pod.is_finished:
                continue
            count += 1
            sums = use.after if after else use.before
            for resource, amount in pod.usage.items():
                sums[resource] = sums.get(resource, 0) + amount
            if after:
                use.pods_after += 1
            else:
                use.pods_before += 1
        return count

    def _load(self, objects: Sequence[ClusterObject]) -> None:
        """Fill the cluster: first everything but pods, then pods that run, then those that wait."""
        if not any(isinstance(obj, Node) for obj in objects):
            raise InputError("input: expected at least one Node; got none")
        try:
            for obj in objects:
                if not isinstance(obj, Pod):
                    self.cluster.add(admit_namespace(obj) if isinstance(obj, Namespace) else obj)
            self._load_pods(objects)
        except AdmissionError as error:
            place = self._place_of(error.obj)
            raise InputError(f"{place}: {error}" if place else str(error)) from None
        except ConflictError as error:
            raise InputError(f"input: expected each name once; {error}") from None

    def _load_pods(self, objects: Sequence[ClusterObject]) -> None:
        admission = Admission(self.cluster)
        admitted = {id(obj): admission.admit(obj) for obj in objects if isinstance(obj, Pod)}
        for pod in admitted.values():
            if pod.node_name or pod.is_finished:
                self.cluster.add(pod)
        present = (pod for pod in admitted.values() if pod.name)
        self._controllers = Controllers(self.cluster, admission, present)
        for obj in objects:
            if isinstance(obj, Pod):
                if _is_waiting(obj):
                    self.cluster.add(admitted[id(obj)])
            elif obj.kind in WORKLOAD_KINDS and not isinstance(obj, Node):
                self._controllers.sync(obj)
        self._add_namespaces()

    def _add_namespaces(self) -> None:
        """Make the namespaces that pods are in but nobody declared, so that selectors find them."""
        for name in dict.fromkeys(pod.namespace for pod in self.cluster.list("Pod")):
            with suppress(ConflictError):
                namespace = Namespace(metadata=ObjectMeta(name=name))
                self.cluster.add(admit_namespace(namespace))


def _is_waiting(pod: Pod) -> bool:
    """Whether the pod needs a node; one that is being deleted before it had one does not."""
    return not pod.node_name and not pod.is_finished and not pod.is_terminating
