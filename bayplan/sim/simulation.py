"""Simulation: run the scheduler on objects in a cluster in memory, in virtual time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Protocol, TypeAlias

from ..api.dra import ResourceClaim
from ..api.pod import Pod
from ..api.storage import PersistentVolumeClaim
from ..api.wire.served_versions import written_as
from ..api.wire.whole import whole
from ..clock import Clock, SystemClock
from ..cluster.memory.default_class import missing_classes
from ..cluster.memory.provisioners import Provisioning
from ..cluster.memory.refusals import AdmissionRefusal
from ..cluster.objects.object_index import WatchHandler
from ..config.defaults import default_config
from ..config.types import SchedulerConfiguration
from ..manifests.timeline import CREATED_AT, InputObject, TimelineEvent
from ..releases.feature_gates import FeatureGates
from ..scheduler import (
    Attempt,
    Outcome,
    PluginSource,
    QueuedPodInfo,
    SchedulerSettings,
    TieBreak,
    build_scheduler,
)
from ..scheduler.collector import rare_collections
from ..scheduler.parts import unobserved
from .agenda import Agenda
from .group_outcomes import GroupOutcome
from .outcomes import PodResult
from .report import SimulationReport
from .results import Results
from .suspended_jobs import suspended_jobs
from .trace import TraceEntry, Tracer
from .world import PlaceOf, World, is_waiting

OnProgress: TypeAlias = Callable[[int, int], None]
"""Progress callback: pods tried and pods in total."""

GOES_ON = (Outcome.WAITING, Outcome.BINDING)
HECTIC_STEP_S = 1.0


class RunWatcher(WatchHandler, Protocol):
    """Follows a run from its first state to its end."""

    def begin(self) -> None:
        """Called after all initial objects were delivered; later events are new."""

    def moment_ends(self) -> None:
        """Called before time advances."""


class RunController(Protocol):
    """Changes the cluster during a run, as an autoscaler does."""

    def begin(self, until_s: float | None) -> None:
        """Called once, after the scheduler and the other controllers were connected."""

    def idle(self) -> None:
        """Called when no pod is ready, before time advances; sets timers with `Simulation.expect`."""

    def conclude(self, report: SimulationReport) -> None:
        """Add its actions to the report."""


class Simulation:
    """One run. `objects` are a cluster, its workload and its timeline; pods with a node are already running.

    Workloads are expanded to pods at their position in the input. `place_of` gives the place of an object, for
    errors. Raises InputError when an API server would reject an object, or when there is no node. `trace` receives
    each event. `provisioning` is used for volumes whose StorageClass does not define it. Without `pods_end`, pods
    with a duration never finish. With `is_recorded`, nothing happens but scheduling and the actions passed to
    `expect`. `ties` chooses between nodes with equal scores; without it a node is drawn, by `seed`. With
    `nodes_come`, there may be no node at the start.
    """

    def __init__(
        self,
        objects: Sequence[InputObject],
        config: SchedulerConfiguration | None = None,
        *,
        seed: int | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        plugins: Iterable[PluginSource] = (),
        explain: bool = False,
        provisioning: Provisioning | None = None,
        place_of: PlaceOf | None = None,
        trace: Callable[[TraceEntry], None] | None = None,
        pods_end: bool = True,
        is_recorded: bool = False,
        ties: TieBreak | None = None,
        nodes_come: bool = False,
    ) -> None:
        config = config or default_config(feature_gates)
        self._pods_end, self._has_begun = pods_end, False
        gates = FeatureGates.of(feature_gates)
        self._world = World(
            objects, place_of or (lambda obj: ""), provisioning, is_recorded, gates, nodes_come
        )
        self.clock, self.cluster = self._world.clock, self._world.cluster
        self.budgets = self._world.budgets
        self._tracer = Tracer(self.clock, trace) if trace is not None else None
        self._results = self._make_results()
        self._progress = Progress(self.clock, self._world.agenda, config.pod_max_backoff_s)
        self.scheduler = build_scheduler(
            config,
            self.cluster,
            SchedulerSettings(
                clock=self.clock,
                timers=self._world.timers,
                seed=seed,
                ties=ties,
                feature_gates=feature_gates,
                plugins=plugins,
                explain=explain,
                faults_are_fatal=True,
                observer=self._tracer.observe if self._tracer is not None else unobserved,
                ended=self._ended,
                bound_by_extender=self.cluster.bind,
            ),
        )
        self._watcher: RunWatcher | None = None
        self._controller: RunController | None = None

    def _make_results(self) -> Results:
        return Results(self.clock, self.cluster)

    def watch(self, watcher: RunWatcher) -> None:
        """Let `watcher` follow the run, which has not started."""
        self._watcher = watcher

    def let_control(self, controller: RunController) -> None:
        """Let `controller` change the cluster during the run, which has not started."""
        self._controller = controller

    def run(
        self, on_progress: OnProgress | None = None, until_s: float | None = None
    ) -> SimulationReport:
        """Schedule until nothing but retries is left to happen, or exactly until the clock shows `until_s`.

        With `until_s` waiting pods are retried until then, as kube-scheduler does. A second call continues from there,
        with the changes made to the cluster since. Raises PluginFaultError when the code of a plugin fails.
        """
        started = SystemClock().monotonic()
        self.proceed(on_progress, until_s)
        report = self._results.report(self.scheduler, SystemClock().monotonic() - started)
        report.refused, report.remarks = self.refusals, self.remarks
        if self._controller is not None:
            self._controller.conclude(report)
        return report

    def proceed(self, on_progress: OnProgress | None = None, until_s: float | None = None) -> None:
        """Run without making a report, which would read all pods and nodes; see `run`."""
        self.begin(until_s)
        with rare_collections():
            self._run(on_progress, until_s)
        self.budgets.run()

    def pod_results(self) -> list[PodResult]:
        """Result of each pod that needed a node, so far; pods that were preempted are not among them."""
        return self._results.pods(self.scheduler)

    def group_outcomes(self) -> list[GroupOutcome]:
        """The pod groups as they are now; empty unless they are scheduled as a whole."""
        return self._results.groups(self.scheduler)

    def message_of(self, pod: Pod) -> str:
        """Reason why the last attempt to place the pod failed; empty when there was none."""
        return self._results.message_of(pod.uid)

    def result_trees(self) -> Iterator[dict[str, Any]]:
        """The cluster as it is now, as manifests, without later objects of its times or a timeline."""
        for kind in sorted(self.cluster.kinds(), key=lambda kind: kind == "Pod"):
            for obj in self.cluster.list(kind):
                tree = written_as(whole(obj), self.scheduler.release.api_versions)
                notes = tree["metadata"].get("annotations") or {}
                if notes.pop(CREATED_AT, None) is not None and not notes:
                    del tree["metadata"]["annotations"]
                yield tree

    def happen(self, event: TimelineEvent, is_replacement: bool = False) -> None:
        """Run an event now rather than at its time; raises InputError when it is invalid.

        Limit ranges and quotas do not refuse the replacement of pods that were removed.
        """
        self._world.happen(event, is_replacement=is_replacement)

    def refusal_of(self, pod: Pod, old: Pod | None = None) -> str:
        """Reason why a limit range or a quota refuses an admitted new pod, or a changed one; empty if none does."""
        return self._world.refusal_of(pod, old)

    @property
    def refusals(self) -> list[AdmissionRefusal]:
        """Pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster."""
        return self._world.refusals()

    @property
    def remarks(self) -> list[str]:
        """Notes on objects of the input that are not simulated as they are, on suspended jobs, and on storage classes
        that waiting pods lack.
        """
        pods = self.cluster.list("Pod")
        waiting = [pod for pod in pods if not pod.node_name and is_waiting(pod)]
        suspended = suspended_jobs(self.cluster)
        return [*self._world.remarks, *suspended, *missing_classes(self.cluster, waiting)]

    def expect(self, at_s: float, action: Callable[[], None]) -> None:
        """Run `action` when the clock shows `at_s`."""
        self._world.agenda.after(at_s - self.clock.monotonic(), action)

    def begin(self, until_s: float | None = None) -> None:
        """Connect the scheduler to the cluster, and start controllers and kubelets; `run` does it by itself.

        A watcher that must come after all of them is added after this.
        """
        if self._has_begun:
            return
        self._has_begun = True
        if self._tracer is not None:
            self._tracer.begin(self.cluster)
        if self._watcher is not None:
            self.cluster.watch(self._watcher)
            self._watcher.begin()
        self.cluster.watch(self._results, replay=False)
        self.cluster.watch(self._progress, replay=False)
        self.cluster.watch(self.scheduler)
        self._results.begin(self.scheduler)
        self._world.begin(self._pods_end, until_s)
        if self._controller is not None:
            self._controller.begin(until_s)

    def next_pod(self, until_s: float | None = None) -> QueuedPodInfo | None:
        """Run until a pod is ready, and pop it for `try_pod`; None at the end."""
        limit_s = math.inf if until_s is None else until_s
        is_hectic = self._progress.is_hectic(self.scheduler.queue)
        if is_hectic and not self._go_on(limit_s, HECTIC_STEP_S):
            return None
        while (queued := self._pop()) is None:
            self._world.settle()
            self.scheduler.faults.check()
            if self._controller is not None:
                self._controller.idle()
            if not self._go_on(limit_s):
                return None
        return queued

    def try_pod(self, queued: QueuedPodInfo) -> Attempt | None:
        """Try to place a pod that was taken from the queue; None when it needs no node any more."""
        attempt = self.scheduler.schedule_popped(queued)
        self._world.settle()
        self.scheduler.faults.check()
        if attempt is not None:
            self._attempted(attempt)
        return attempt

    def _run(self, on_progress: OnProgress | None, until_s: float | None) -> None:
        while (queued := self.next_pod(until_s)) is not None:
            self.try_pod(queued)
            if on_progress is not None:
                on_progress(len(self._results), self._results.pods_seen)

    def _pop(self) -> QueuedPodInfo | None:
        """The next pod. Daemons of new nodes are first: in a cluster other pods avoid a node until they run."""
        while (daemon := self._world.next_daemon()) is not None:
            queued = self.scheduler.queue.pop_specific(daemon)
            if queued is not None:
                return queued
        return self.scheduler.pop()

    def _go_on(self, limit_s: float, longest_s: float = math.inf) -> bool:
        """Jump to the next timer, at most to the limit; False when the end is reached."""
        now, due = self.clock.monotonic(), self.scheduler.next_timer()
        if limit_s == math.inf and self._is_over(longest_s):
            return False
        moment = min(math.inf if due is None else due, now + longest_s)
        if moment > limit_s:
            self._advance(limit_s)
            return False
        self._advance(moment)
        self._progress.moment_passed()
        self.scheduler.run_timers()
        self._world.settle()
        return True

    def _is_over(self, longest_s: float) -> bool:
        """Whether a run without a limit ends: at most retries are left, which never end."""
        is_settled = longest_s == math.inf and (
            self.scheduler.next_timer() is None or self.scheduler.is_settled
        )
        return is_settled or self._progress.is_stuck

    def _advance(self, moment: float) -> None:
        """Move the clock forward to `moment`, to the microsecond."""
        missing = moment - self.clock.monotonic()
        if missing > 0:
            if self._watcher is not None:
                self._watcher.moment_ends()
            self.budgets.run()
            micros = max(math.ceil(round(missing * 1e6, 3)), 1)
            self.clock.advance(micros / 1e6)

    def _attempted(self, first: Attempt) -> None:
        if first.group is None:
            self._note_attempt(first)
            return
        for attempt in first.group.attempts:
            self._note_attempt(attempt)

    def _note_attempt(self, attempt: Attempt) -> None:
        goes_on = attempt.outcome in GOES_ON
        self._progress.attempted(attempt.pod.uid, goes_on)
        if goes_on:
            self._results.note(attempt)

    def _ended(self, attempt: Attempt) -> None:
        self._progress.ended(attempt.pod.uid)
        self._results.note(attempt)


PATIENCE_S = 60.0
PATIENCE_BACKOFFS = 6
SPARE_ATTEMPTS = 100
PATIENCE_CHANGES = 100


class Progress:
    """Watches the cluster for progress: objects added, deleted, bound or finished.

    A plugin that always fails, or pods that preempt each other, would be retried without end. So the run stops when
    only retries happened for a while. A claim that changes repeatedly and still has no volume does not count as
    progress: its provisioner fails. Claims for devices that change while nothing else does are not progress either: a
    pod whose binding fails creates and deletes one per attempt.
    """

    def __init__(self, clock: Clock, agenda: Agenda, max_backoff_s: float) -> None:
        self._clock = clock
        self._agenda = agenda
        self._patience_s = max(PATIENCE_S, PATIENCE_BACKOFFS * max_backoff_s)
        self._last_s = 0.0
        self._attempts = 0
        self._under_way: dict[str, float] = {}
        self._changes: Counter[str] = Counter()
        self._claim_changes = 0
        """Changes of claims for devices since something else changed."""

    def attempted(self, uid: str, goes_on: bool) -> None:
        """Record an attempt; `goes_on` when the pod waits on Permit or is being bound."""
        self._attempts += 1
        if goes_on:
            self._under_way[uid] = self._clock.monotonic()

    def ended(self, uid: str) -> None:
        """Record the end of a pod's attempt."""
        self._under_way.pop(uid, None)

    def is_hectic(self, waiting: Sized) -> bool:
        """Whether more failed attempts were made at this moment than there are pending pods."""
        return self._attempts > SPARE_ATTEMPTS and self._attempts > len(waiting) + SPARE_ATTEMPTS

    def moment_passed(self) -> None:
        """Record that time advanced."""
        self._attempts = 0

    @property
    def is_stuck(self) -> bool:
        """Whether only retries happened for long, and no other timer is set.

        A pod that has been binding for as long (a slow PreBind, a long Permit) may still arrive.
        """
        limit = self._clock.monotonic() - self._patience_s
        if self._agenda.pending or self._last_s >= limit:
            return False
        return not any(since <= limit for since in self._under_way.values())

    def on_add(self, obj: Any) -> None:
        self._move(isinstance(obj, ResourceClaim))

    def on_update(self, old: Any, new: Any) -> None:
        if isinstance(new, Pod):
            if (
                old.node_name != new.node_name
                or old.is_terminating != new.is_terminating
                or old.is_finished != new.is_finished
            ):
                self._move()
            return
        if isinstance(new, PersistentVolumeClaim) and not new.spec.volume_name:
            self._changes[new.uid] += 1
            if self._changes[new.uid] > PATIENCE_CHANGES:
                return
        self._move(isinstance(new, ResourceClaim))

    def on_delete(self, obj: Any) -> None:
        self._move(isinstance(obj, ResourceClaim))

    def _move(self, is_claim: bool = False) -> None:
        self._claim_changes = self._claim_changes + 1 if is_claim else 0
        if self._claim_changes > PATIENCE_CHANGES:
            return
        self._last_s = self._clock.monotonic()
        self._attempts = 0
