"""SchedulerMetrics: the scheduler's metrics under kube-scheduler's names.

Mirrors pkg/scheduler/metrics/metrics.go: names, labels and buckets are those of v1.36. Durations of
work are seconds of the machine's clock, also in a simulation; waiting times of pods are seconds of
the scheduler's clock.

batch_cache_*, get_node_hint_* and store_schedule_results_* are registered and stay empty: the engine's
views of classes replace opportunistic batching. podgroup_* are registered with feature gate
GenericWorkload. Left out: async_api_call_* and pending_async_api_calls (off by default in v1.36), and
volume_binder_cache_requests_total (which upstream does not count, either). `follow_release` shows the
metrics that only other releases have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import cycle
from time import perf_counter

from ..stamped_cache import NOTHING, read_counts
from .families import (
    CounterFamily,
    Family,
    HistogramFamily,
    ReadCounter,
    ReadGauge,
    Values,
)
from .group_metrics import PlacementMetrics, PreemptionMetrics
from .profile_metrics import ATTEMPT_S, PLUGIN_S, POINT_S, WAITING_S, AttemptMetrics, ProfileMetrics
from .series import exponential_buckets

SAMPLED_ONE_IN = 10
"""Share of attempts and events in which each plugin is timed."""
SAMPLES = 1000


SHOWN_WITH = {
    "SchedulerAsyncPreemption": (
        "scheduler_preemption_goroutines_duration_seconds",
        "scheduler_preemption_goroutines_execution_total",
    ),
    "DRAExtendedResource": ("scheduler_resourceclaim_creates_total",),
    "DRADeviceBindingConditions": (
        "scheduler_dra_bindingconditions_allocations_total",
        "scheduler_dra_bindingconditions_wait_duration_seconds",
    ),
}
"""Metrics that exist only while a feature gate is on."""


class SchedulerMetrics(AttemptMetrics):
    """All metrics of one scheduler. `profile` has the metrics that are recorded for every pod; the rest is off the hot
    path.

    Values maintained elsewhere are read when exposed: the code that builds the scheduler sets their
    `source`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._has_groups = False
        self.queued_entities: Callable[[], Values] = dict
        """Sources of metrics that only some releases have; set when the scheduler is built."""
        self.incoming_entities: Callable[[], Values] = dict
        self.preemptions: PreemptionMetrics | None = None
        """None without pod groups."""
        self.placements: PlacementMetrics | None = None
        """None unless pod groups have placements."""
        self._add_preemption()
        self._add_engine()
        self._add_queue()
        self._add_events()
        self._add_devices()
        self._add_batching()
        self._profiles: dict[str, ProfileMetrics] = {}
        self.is_sampled: Callable[[], bool] = cycle(_sampling(SAMPLED_ONE_IN)).__next__
        """Whether to time each plugin this time."""

    def profile(self, name: str) -> ProfileMetrics:
        """The metrics for pods of one profile; always the same object."""
        if name not in self._profiles:
            self._profiles[name] = ProfileMetrics(name, self)
        return self._profiles[name]

    def plugin_ended(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record the duration of a plugin, in a sampled attempt."""
        self.plugin_duration.labels(plugin, point, status).observe(seconds)

    def evicting(self, preemptor: str, is_async: bool = True) -> Callable[[bool], None]:
        """Start timing the deletion of victims of a pod or a group; call the result with whether it succeeded."""
        started = perf_counter()

        def over(is_success: bool) -> None:
            result, seconds = "success" if is_success else "error", perf_counter() - started
            if is_async:
                self.evictions.labels(result).observe(seconds)
            if self.preemptions is not None:
                self.preemptions.execution.labels(preemptor, result).observe(seconds)

        return over

    def follow_gates(self, is_on: Callable[[str], bool]) -> None:
        """Count and show the metrics that kube-scheduler has with these feature gates."""
        if is_on("OpportunisticBatching"):
            self.batch_attempts.source = self._count_without_hint
        for gate, names in SHOWN_WITH.items():
            if not is_on(gate):
                self.hide(names)

    def _count_without_hint(self) -> dict[tuple[str, str], float]:
        """The attempts of each profile that reached the choice of nodes; none had a hint."""
        return {
            (profile, "no_hint"): count
            for (point, status, profile), count in self.point_duration.counts().items()
            if (point, status) == ("PreFilter", "Success")
        }

    def fold(self) -> None:
        """Add the buffered times to the histograms."""
        for profile in self._profiles.values():
            profile.fold()

    def render(self, *, process: bool = False) -> str:
        """Everything in the text format of Prometheus; `process` adds the metrics of this very process."""
        from .exposition import render  # imports prometheus_client, which only exposition needs

        self.fold()
        return render(self.families, process=process)

    # Families

    def add_pod_groups(self, has_placements: bool) -> None:
        """Register the metrics of pod groups, once; those that the release does not have are hidden."""
        if self._has_groups:
            return
        self._has_groups = True
        self.group_duration = self.histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds{result,profile}",
            "Time of a cycle of a pod group, from the queue to the result.",
            ATTEMPT_S,
        )
        self.group_attempts = self.read_counter(
            "scheduler_podgroup_schedule_attempts_total{result,profile}",
            "Cycles of pod groups, by result. 'waiting_on_preemption': the group fits once its victims are gone.",
            source=lambda: self.group_duration.counts(),
        )
        self.group_algorithm = self.histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Time it took to find nodes for the members of a pod group.",
            ATTEMPT_S,
        ).labels()
        self.preemptions = PreemptionMetrics(self)
        if has_placements:
            self.placements = PlacementMetrics(self)

    def _add_engine(self) -> None:
        self.engine_failures = self.counter(
            "bayplan_engine_failures_total",
            "Attempts in which a plugin failed in the engine, so that the reference decided.",
        ).labels()
        self.reference_decisions = self.counter(
            "bayplan_reference_decisions_total{profile,reason}",
            "Decisions for which the plugins were called one after the other, by reason.",
        )
        self._caches_before = read_counts()
        self.read_counter(
            "bayplan_cache_events_total{cache,event}",
            "Look-ups in caches of this process with an answer (hit) and without (miss), and drops.",
            source=self._count_caches,
        )
        self.unreadable_objects = self.read_counter(
            "bayplan_unreadable_objects_total{kind}",
            "Fields of objects that could not be read: once per object and problem.",
        )

    def _count_caches(self) -> dict[tuple[str, str], float]:
        """The counts of this process since these metrics were made."""
        found: dict[tuple[str, str], float] = {}
        for name, counts in read_counts().items():
            since = counts.minus(self._caches_before.get(name, NOTHING))
            found[name, "hit"], found[name, "miss"] = since.hits, since.misses
            found[name, "drop"] = since.drops
        return found

    def _add_preemption(self) -> None:
        self.preemption_attempts = self.counter(
            "scheduler_preemption_attempts_total", "Attempts to preempt pods for a pod."
        ).labels()
        self.preemption_victims = self.histogram(
            "scheduler_preemption_victims",
            "Victims selected by a preemption.",
            exponential_buckets(1, 2, 7),
        ).labels()
        self.evictions = self.histogram(
            "scheduler_preemption_goroutines_duration_seconds{result}",
            "Time to delete the victims of one pod, by result.",
            WAITING_S,
        )
        self.read_counter(
            "scheduler_preemption_goroutines_execution_total{result}",
            "Pods whose victims were deleted, by result.",
            source=self.evictions.counts,
        )

    def _add_queue(self) -> None:
        self.pending_pods = self.read_gauge(
            "scheduler_pending_pods{queue}",
            "Pending pods. 'active': ready; 'backoff': until the end of their backoff; "
            "'unschedulable': after a failed attempt, until an event; 'gated': held by PreEnqueue.",
        )
        self.incoming_pods = self.read_counter(
            "scheduler_queue_incoming_pods_total{queue,event}",
            "Pods that entered a part of the queue, by event.",
        )
        self.unschedulable_pods = self.read_gauge(
            "scheduler_unschedulable_pods{plugin,profile}",
            "Pending pods that a plugin rejected. A pod counts once per plugin, so the sum is meaningless.",
        )
        self.cache_size = self.read_gauge(
            "scheduler_cache_size{type}", "Nodes, pods and assumed pods in the cache."
        )

    def _add_events(self) -> None:
        self.inflight_events = self.read_gauge(
            "scheduler_inflight_events{event}",
            "Events recorded for pods in flight; PodPopped counts those pods.",
        )
        self.event_handling = self.histogram(
            "scheduler_event_handling_duration_seconds{event}",
            "Time to requeue the pods affected by a cluster event.",
            POINT_S,
        )
        self.hint_duration = self.histogram(
            "scheduler_queueing_hint_execution_duration_seconds{plugin,event,hint}",
            "Time that a plugin took for a queueing hint, in a tenth of the calls.",
            PLUGIN_S,
        )

    def _add_devices(self) -> None:
        self.claim_creates = self.counter(
            "scheduler_resourceclaim_creates_total{status}",
            "ResourceClaims created for extended resources, by result.",
        )
        self.device_allocations = self.counter(
            "scheduler_dra_bindingconditions_allocations_total{profile,driver,status}",
            "Devices that had to become ready before a pod could be bound, by result.",
        )
        self.device_wait = self.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds{profile,driver,status}",
            "Time that PreBind waited for the devices of a pod to be ready, for each of them.",
            exponential_buckets(0.1, 2, 14),
        )

    def _add_batching(self) -> None:
        """Metrics of opportunistic batching, in place of which the engine caches views: no attempt uses the hint of
        another.
        """
        self.batch_attempts = self.read_counter(
            "scheduler_batch_attempts_total{profile,result}",
            "Attempts that could have used a hint of an equal pod before them: none does here.",
        )
        self.counter(
            "scheduler_batch_cache_flushed_total{profile,reason}",
            "How often such results were dropped, by reason; always empty here.",
        )
        bounds = exponential_buckets(0.00001, 2, 12)
        self.histogram(
            "scheduler_get_node_hint_duration_seconds{hinted,profile}",
            "Time to look for such a result; always empty here.",
            bounds,
        )
        self.histogram(
            "scheduler_store_schedule_results_duration_seconds{profile}",
            "Time to store such a result; always empty here.",
            bounds,
        )


@lru_cache
def _sampling(one_in: int) -> tuple[bool, ...]:
    """True once in `one_in` times on average, in an irregular order, so that periodic work is not missed."""
    answers = [number % one_in == 0 for number in range(SAMPLES)]
    random.Random(0).shuffle(answers)
    return tuple(answers)


def follow_release(metrics: SchedulerMetrics, missing: Collection[str]) -> None:
    """Show the metrics of a release, and hide those that are `missing` in it."""
    shown = {family.name for family in metrics.families}
    for family in _families(metrics):
        if family.name not in missing and family.name not in shown:
            metrics.add(family)
    metrics.hide(missing)


def _families(metrics: SchedulerMetrics) -> Iterator[Family]:
    """The metrics that v1.36 does not have."""
    yield ReadGauge(
        "scheduler_scheduler_cache_size{type}",
        "Nodes, pods and assumed pods in the cache.",
        source=lambda: metrics.cache_size.source(),
    )
    yield ReadGauge(
        "scheduler_queued_entities{queue,type}",
        "Entries of the queue by its part: pods that are not in a pod group, and pod groups.",
        source=lambda: metrics.queued_entities(),
    )
    yield ReadCounter(
        "scheduler_queue_incoming_entities_total{queue,event,type}",
        "Entries that entered a part of the queue, by event.",
        source=lambda: metrics.incoming_entities(),
    )
    yield CounterFamily(
        "scheduler_pre_queueing_hint_evaluations_total{plugin,result}",
        "How often an event was narrowed to the pods it concerns before the hints; always empty here.",
    )
    yield CounterFamily(
        "scheduler_batch_rescore_attempts_total{profile}",
        "How often the node of an equal pod before was scored again; always empty here.",
    )
    yield HistogramFamily(
        "scheduler_batch_rescore_duration_seconds{profile}",
        "Time to score such a node again; always empty here.",
        exponential_buckets(0.00001, 2, 12),
    )
    yield ReadCounter(
        "dynamic_resource_allocation_resourceclaim_creates_total{status,admin_access,owner_api_group,owner_api_kind}",
        "ResourceClaims created for extended resources, by result.",
        source=lambda: {
            (*labels, "false", "", "Pod"): n for labels, n in metrics.claim_creates.read().items()
        },
    )
