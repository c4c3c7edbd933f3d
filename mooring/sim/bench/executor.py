"""Executor: do the ops of a workload, one after the other, and measure those that ask for it.

Mirrors test/integration/scheduler_perf/executor.go.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from ...api.durations import EXPECTED, parse_duration
from ...api.pod import Pod
from ...api.selectors import matches_map
from ...cluster.memory import ClusterObject
from ...config.decode import decode
from ...config.problems import Problems
from ...errors import ConflictError, InputError
from .cases import Step
from .churning import Churning, Deleting
from .driver import Driver
from .making import Maker, any_templates, namespace_templates, node_templates, pod_templates
from .measuring import Measurement
from .ops import (
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    DeletePods,
    Op,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
)
from .results import EventRun, Run
from .workload import Workload


def execute(workload: Workload) -> list[Run]:
    """Run a workload in this process; InputError where its file asks for what cannot be."""
    return Executor(workload).run()


class Executor:
    """Does the ops of one workload on a cluster of its own."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._driver = Driver(workload.case.config, workload.feature_gates)
        self._created: Counter[str] = Counter()
        """Pods that are to be placed, by namespace."""
        self._measurement: Measurement | None = None
        self._runs: list[Run] = []

    def run(self) -> list[Run]:
        """Do all ops and return what was measured."""
        for number, step in enumerate(self._workload.case.steps):
            try:
                self._do(step, step.op, number)
            except ConflictError as error:
                raise InputError(f"{step.place}: expected names that are free; {error}") from None
        return self._runs

    def _do(self, step: Step, op: Op, number: int) -> None:
        match op:
            case CreateNodes():
                self._create_nodes(step, op, number)
            case CreateNamespaces():
                templates = namespace_templates(step.templates.get("namespace_template"), op.prefix)
                self._add_all(Maker(self._number(step, op), self._workload.params, templates))
            case CreatePods():
                self._create_pods(step, op, op.namespace or f"namespace-{number}", number)
            case CreatePodSets():
                self._create_pod_sets(step, op, number)
            case CreateAny():
                if op.namespace:
                    self._driver.need_namespace(op.namespace)
                templates = any_templates(step.templates["template"], op.namespace, f"{number}-")
                self._add_all(Maker(self._number(step, op), self._workload.params, templates))
            case DeletePods():
                self._delete_pods(step, op)
            case Churn():
                self._churn(step, op, number)
            case Barrier():
                self._wait(op.namespaces, op.stage_requirement == "Attempted")
            case Sleep():
                self._driver.sleep(self._duration(step, op))
            case StartCollectingMetrics():
                self._start(op)
            case StopCollectingMetrics():
                self._stop(step)

    # Objects come

    def _create_nodes(self, step: Step, op: CreateNodes, number: int) -> None:
        templates = node_templates(step, op, number)
        maker = Maker(self._number(step, op), self._workload.params, *templates)
        if op.collect_metrics:
            self._measure_events(step, op.name, self._driver.add, maker)
        else:
            self._add_all(maker)

    def _create_pods(self, step: Step, op: CreatePods, namespace: str, number: int) -> None:
        self._driver.need_namespace(namespace)
        templates = pod_templates(step, namespace, number)
        maker = Maker(self._number(step, op), self._workload.params, *templates)
        if op.collect_metrics:
            self._begin(step, step.op.opcode, lambda pod: pod.namespace == namespace)
        if op.time_creation and self._measurement is not None:
            with self._measurement.running():
                self._add_all(maker)
        else:
            self._add_all(maker)
        if not op.skip_wait_to_completion:
            self._wait((namespace,))
        if op.collect_metrics:
            self._end()

    def _create_pod_sets(self, step: Step, op: CreatePodSets, number: int) -> None:
        rest = {name: value for name, value in op.create_pods_op.items() if name != "opcode"}
        inner = decode(CreatePods, rest, "", Problems())
        for i in range(self._number(step, op)):
            self._create_pods(step, inner, f"{op.namespace_prefix}-{i}", number)

    def _add_all(self, maker: Iterable[ClusterObject]) -> None:
        for obj in maker:
            added = self._driver.add(obj)
            if isinstance(added, Pod):
                self._count(added)

    def _count(self, pod: Pod) -> None:
        if not pod.node_name:
            self._created[pod.namespace] += 1
        if self._measurement is not None:
            self._measurement.created(pod)

    # Objects go, or come and go

    def _delete_pods(self, step: Step, op: DeletePods) -> None:
        pods = [
            pod
            for pod in self._driver.cluster.list("Pod", op.namespace)
            if matches_map(op.label_selector, pod.labels)
        ]
        if op.collect_metrics:
            self._measure_events(step, op.name, self._driver.delete, pods)
        elif op.skip_wait_to_completion and op.delete_pods_per_second:
            every = max(1000 // op.delete_pods_per_second, 1)
            self._driver.between_rounds.append(Deleting(self._driver, pods, every).step)
        else:
            for pod in pods:
                self._driver.delete(pod)

    def _churn(self, step: Step, op: Churn, number: int) -> None:
        namespace = op.namespace or f"namespace-{number}"
        self._driver.need_namespace(namespace)
        makers = [
            Maker(0, self._workload.params, any_templates(source, namespace, f"{number}-{i}-"))
            for i, source in enumerate(step.templates.values())
        ]
        churning = Churning(self._driver, op, makers, lambda: self._measurement)
        self._driver.between_rounds.append(churning.step)

    # Scheduling

    def _wait(self, namespaces: Iterable[str], only_tried: bool = False) -> None:
        """Schedule until the pods of these namespaces, or of all, are placed or at least tried."""
        waited_for = tuple(namespaces) or tuple(self._created)
        bound, created = self._driver.bound, self._created

        def is_done() -> bool:
            return only_tried or all(bound[name] >= created[name] for name in waited_for)

        if self._measurement is None:
            self._driver.run(is_done)
            return
        with self._measurement.running():
            self._driver.run(is_done, self._measurement.rounds)

    # Measuring

    def _start(self, op: StartCollectingMetrics) -> None:
        def counts(pod: Pod) -> bool:
            return pod.namespace in op.namespaces and matches_map(op.label_selector, pod.labels)

        self._measurement = self._new_measurement(op.name, counts)
        self._driver.on_bound = self._measurement.bound

    def _begin(self, step: Step, name: str, counts: Callable[[Pod], bool]) -> None:
        if self._measurement is not None:
            raise InputError(f"{step.place}: expected one measurement at a time; got a second")
        self._measurement = self._new_measurement("", counts)
        self._driver.on_bound = self._measurement.bound

    def _new_measurement(self, name: str, counts: Callable[[Pod], bool]) -> Measurement:
        full_name = f"{self._workload.name}: {name}" if name else self._workload.name
        return Measurement(full_name, self._driver.cluster.count("Node"), counts)

    def _stop(self, step: Step) -> None:
        if self._measurement is None:
            raise InputError(f"{step.place}: expected startCollectingMetrics before it; got none")
        self._wait(())
        self._end()

    def _end(self) -> None:
        assert self._measurement is not None
        self._runs.append(self._measurement.result())
        self._measurement = self._driver.on_bound = None

    def _measure_events(
        self,
        step: Step,
        name: str,
        happen: Callable[[ClusterObject], object],
        objects: Iterable[ClusterObject],
    ) -> None:
        """Let one event after the other happen; pods that it brings back are tried before the next."""
        driver = self._driver
        nodes, waiting = driver.cluster.count("Node"), driver.waiting
        count, spent_ns, moved = 0, 0, 0
        for obj in objects:
            before, start = driver.waiting, time.perf_counter_ns()
            happen(obj)
            spent_ns += time.perf_counter_ns() - start
            moved += before - driver.waiting
            count += 1
            driver.run(lambda: True)
        if not count:
            raise InputError(f"{step.place}: expected at least one event; got none")
        self._runs.append(
            EventRun(
                workload=self._workload.name,
                event=name or step.op.opcode,
                nodes=nodes,
                waiting=waiting,
                events=count,
                us_per_event=round(spent_ns / count / 1e3, 1),
                moved_per_event=round(moved / count, 1),
            )
        )

    # Numbers

    def _number(
        self,
        step: Step,
        op: CreateNodes | CreateNamespaces | CreatePods | CreatePodSets | CreateAny,
    ) -> int:
        return self._workload.number(op.count, op.count_param, step.place)

    def _duration(self, step: Step, op: Sleep) -> float:
        if not op.duration_param:
            return op.duration
        value = self._workload.params.get(op.duration_param[1:])
        seconds = parse_duration(str(value))
        if seconds is None:
            raise InputError(f"{step.place}.durationParam: {EXPECTED}; got {value}")
        return seconds
