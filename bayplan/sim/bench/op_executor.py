"""Op executor: run the ops of a workload in order, and measure those that request it.

Mirrors test/integration/scheduler_perf/executor.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec import structs

from ...api.pod import Pod
from ...api.selectors import matches_map
from ...api.text.durations import EXPECTED, parse_duration
from ...cluster.objects.object_index import ClusterObject
from ...config.decode import decode
from ...config.problems import Problems
from ...errors import ConflictError, InputError, NotFoundError
from .cases import WorkloadStep
from .driver import Driver
from .end_to_end import run_end_to_end, run_plan
from .measurement import Measurement
from .measurements import EventRun, PlanRun, Run
from .op_objects import Maker, any_templates, make_maker
from .ops import (
    AskQuestion,
    Barrier,
    Churn,
    CountedOp,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    DeletePods,
    Op,
    PlanNodes,
    Simulate,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
)
from .workload import CLOCKS, BenchWorkload, Now


def execute(workload: BenchWorkload, now: Now = CLOCKS["wall"]) -> list[Run]:
    """Run a workload in this process; raises InputError where its file is invalid.

    One that ends with `simulate`, `ask` or `plan` runs the commands in processes of their own.
    """
    plans = [step for step in workload.case.steps if isinstance(step.op, PlanNodes)]
    if plans:
        return [_plan(workload, step) for step in plans]
    if any(isinstance(step.op, Simulate | AskQuestion) for step in workload.case.steps):
        return list(run_end_to_end(workload))
    return WorkloadExecutor(workload, now).run()


def _plan(workload: BenchWorkload, step: WorkloadStep) -> PlanRun:
    op = step.op
    assert isinstance(op, PlanNodes), "the caller selects them"
    return run_plan(workload.name, op, workload.number(op.count, op.count_param, step.place))


class WorkloadExecutor:
    """Runs the ops of one workload on its own cluster."""

    def __init__(self, workload: BenchWorkload, now: Now = CLOCKS["wall"]) -> None:
        self._workload = workload
        self._driver = Driver(
            workload.case.config, workload.feature_gates, now, plugins=workload.plugins
        )
        self._created: Counter[str] = Counter()
        """Pods to be placed, by namespace."""
        self._measurement: Measurement | None = None
        self._runs: list[Run] = []

    def run(self) -> list[Run]:
        """Run all ops and return the measurements."""
        for number, step in enumerate(self._workload.case.steps):
            try:
                self._do(step, step.op, number)
            except (ConflictError, NotFoundError) as error:
                raise InputError(f"{step.place}: expected names that fit; {error}") from None
        return self._runs

    def _do(self, step: WorkloadStep, op: Op, number: int) -> None:
        match op:
            case CreateNodes() | CreateNamespaces():
                maker = make_maker(self._workload, step, op, number)
                self._let_happen(step, op, self._driver.add, maker)
            case CreatePods():
                self._create_pods(step, op, op.namespace or f"namespace-{number}", number)
            case CreatePodSets():
                self._create_pod_sets(step, op, number)
            case CreateAny():
                self._create_any(step, op, number)
            case DeletePods():
                self._delete_pods(step, op)
            case Churn():
                self._churn(step, op, number)
            case Barrier():
                self._wait(op.namespaces, op.stage_requirement == "Attempted")
            case Sleep():
                self._driver.sleep(self._duration(step, op))
            case StartCollectingMetrics():
                self._start(step, op)
            case StopCollectingMetrics():
                self._stop(step)

    # Adding objects

    def _create_any(self, step: WorkloadStep, op: CreateAny, number: int) -> None:
        if op.namespace:
            self._driver.need_namespace(op.namespace)
        templates = any_templates(step.templates["template"], op.namespace, f"{number}-")
        maker = Maker(self._number(step, op), self._workload.params, templates)
        happen = self._driver.update if isinstance(op, UpdateAny) else self._driver.add
        self._let_happen(step, op, happen, maker)

    def _create_pods(self, step: WorkloadStep, op: CreatePods, namespace: str, number: int) -> None:
        self._driver.need_namespace(namespace)
        op = structs.replace(op, namespace=namespace)
        maker = make_maker(self._workload, step, op, number)
        if op.collect_metrics:
            self._begin(step, "", lambda pod: pod.namespace == namespace)
        add: Callable[[ClusterObject], object] = self._driver.add
        if op.time_creation and self._measurement is not None:
            add = self._measurement.timed(add)
        for obj in maker:
            add(obj)
            if isinstance(obj, Pod):
                self._count(obj)
        if not op.skip_wait_to_completion:
            self._wait((namespace,))
        if op.collect_metrics:
            self._end()

    def _create_pod_sets(self, step: WorkloadStep, op: CreatePodSets, number: int) -> None:
        rest = {name: value for name, value in op.create_pods_op.items() if name != "opcode"}
        inner = decode(CreatePods, rest, "", Problems())
        for i in range(self._number(step, op)):
            self._create_pods(step, inner, f"{op.namespace_prefix}-{i}", number)

    def _count(self, pod: Pod) -> None:
        if not pod.node_name:
            self._created[pod.namespace] += 1
        if self._measurement is not None:
            self._measurement.created(pod)

    # Deleting and churning objects

    def _delete_pods(self, step: WorkloadStep, op: DeletePods) -> None:
        pods = [
            pod
            for pod in self._driver.cluster.list("Pod", op.namespace)
            if matches_map(op.label_selector, pod.labels)
        ]
        if op.skip_wait_to_completion and op.delete_pods_per_second:
            every = max(1000 // op.delete_pods_per_second, 1)
            deleting = Deleting(self._driver, pods, every)
            self._driver.between_rounds.append(deleting.step)
            self._driver.when_idle.append(deleting.delete_one)
        else:
            self._let_happen(step, op, self._driver.delete, pods)

    def _churn(self, step: WorkloadStep, op: Churn, number: int) -> None:
        namespace = op.namespace or f"namespace-{number}"
        self._driver.need_namespace(namespace)
        makers = [
            Maker(0, self._workload.params, any_templates(source, namespace, f"{number}-{i}-"))
            for i, source in enumerate(step.templates.values())
        ]
        churning = Churning(self._driver, op, makers, lambda: self._measurement)
        self._driver.between_rounds.append(churning.step)

    def _let_happen(
        self,
        step: WorkloadStep,
        op: CountedOp | DeletePods,
        happen: Callable[[Any], object],
        objects: Iterable[ClusterObject],
    ) -> None:
        """Apply the op to each of `objects`; the time is measured if a measurement runs."""
        if getattr(op, "collect_metrics", False):
            self._measure_events(step, getattr(op, "name", ""), happen, objects)
            return
        if self._measurement is not None:
            happen = self._measurement.timed(happen)
        for obj in objects:
            happen(obj)

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

    def _start(self, step: WorkloadStep, op: StartCollectingMetrics) -> None:
        def counts(pod: Pod) -> bool:
            return pod.namespace in op.namespaces and matches_map(op.label_selector, pod.labels)

        self._begin(step, op.name, counts)

    def _begin(self, step: WorkloadStep, name: str, counts: Callable[[Pod], bool]) -> None:
        if self._measurement is not None:
            raise InputError(f"{step.place}: expected one measurement at a time; got a second")
        full_name = f"{self._workload.name}: {name}" if name else self._workload.name
        threshold = self._workload.threshold
        self._measurement = Measurement(full_name, self._driver, counts, threshold)
        self._driver.on_bound = self._measurement.bound

    def _stop(self, step: WorkloadStep) -> None:
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
        step: WorkloadStep,
        name: str,
        happen: Callable[[ClusterObject], object],
        objects: Iterable[ClusterObject],
    ) -> None:
        """Measure the cost of each event, and how many pods it requeues; these are tried before the next."""
        driver = self._driver
        nodes, waiting = driver.cluster.count("Node"), driver.waiting
        events = ns = moved = 0
        for obj in objects:
            before, start = driver.waiting, driver.now()
            happen(obj)
            ns += driver.now() - start
            moved += before - driver.waiting
            events += 1
            driver.run(lambda: True)
        if not events:
            raise InputError(f"{step.place}: expected at least one event; got none")
        self._runs.append(
            EventRun(
                workload=self._workload.name,
                event=name or step.op.opcode,
                nodes=nodes,
                waiting=waiting,
                events=events,
                us_per_event=round(ns / events / 1e3, 1),
                moved_per_event=round(moved / events, 1),
            )
        )

    # Numbers

    def _number(self, step: WorkloadStep, op: CountedOp) -> int:
        return self._workload.number(op.count, op.count_param, step.place)

    def _duration(self, step: WorkloadStep, op: Sleep) -> float:
        if not op.duration_param:
            return op.duration
        value = self._workload.params.get(op.duration_param[1:])
        seconds = parse_duration(str(value))
        if seconds is None:
            raise InputError(f"{step.place}.durationParam: {EXPECTED}; got {value}")
        return seconds


class Churning:
    """Add, or delete, an object of each template after every `every` rounds."""

    def __init__(
        self,
        driver: Driver,
        op: Churn,
        makers: Sequence[Maker],
        measurement: Callable[[], Measurement | None],
    ) -> None:
        self._driver = driver
        self._makers = makers
        self._measurement = measurement
        self._every = op.interval_pods or max(op.interval_milliseconds, 1)
        self._limit = op.number
        self._recreates = op.mode == "recreate"
        self._rounds = 0
        self._ticks = 0
        self._there: dict[tuple[int, int], ClusterObject] = {}

    def step(self) -> None:
        """Handle the end of a round."""
        self._rounds += 1
        if self._rounds % self._every == 0:
            self._tick()
            self._ticks += 1

    def _tick(self) -> None:
        if not self._recreates:
            if not self._limit or self._ticks < self._limit:
                for obj in self._make():
                    self._driver.add(obj)
            return
        place = self._ticks % self._limit
        if (0, place) in self._there:
            for i in range(len(self._makers)):
                self._driver.delete(self._there.pop((i, place)))
            return
        for i, obj in enumerate(self._make()):
            self._there[i, place] = self._driver.add_passing(obj)

    def _make(self) -> list[ClusterObject]:
        """Make one object of each template, without advancing the clock."""
        measurement = self._measurement()
        with nullcontext() if measurement is None else measurement.left_out():
            return [obj for maker in self._makers for obj in maker.make(self._ticks)]


class Deleting:
    """Delete one more pod after every `every` rounds, and whenever no pod is ready."""

    def __init__(self, driver: Driver, pods: Iterable[Pod], every: int) -> None:
        self._driver = driver
        self._pods = iter(pods)
        self._every = every
        self._rounds = 0

    def step(self) -> None:
        """Handle the end of a round."""
        self._rounds += 1
        if self._rounds % self._every == 0:
            self.delete_one()

    def delete_one(self) -> bool:
        """Delete the next pod; False when there is none."""
        for pod in self._pods:
            if self._driver.cluster.get("Pod", pod.namespace, pod.name):
                self._driver.delete(pod)
                return True
        return False
