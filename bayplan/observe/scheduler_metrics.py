"""SchedulerMetrics: what a scheduler counts and times, under the names that dashboards for kube-scheduler know.

Mirrors pkg/scheduler/metrics/metrics.go: names, labels and buckets are those of v1.36. Durations of work are seconds of
the machine's clock, also in a simulation; how long a pod waited is seconds of the scheduler's clock.

Left out, because nothing here does what they measure: batch_*, get_node_hint_* and store_schedule_results_* (kept
answers take the place of opportunistic batching), async_api_call_*, pending_async_api_calls and podgroup_* (off by
default in v1.36), and volume_binder_cache_requests_total (which upstream does not count, either).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from itertools import cycle
from time import perf_counter
from typing import TypeVar

from .families import (
    CounterFamily,
    Family,
    GaugeFamily,
    HistogramFamily,
    ReadCounter,
    ReadGauge,
)
from .profile_metrics import AttemptHistograms, ProfileMetrics
from .series import exponential_buckets

SAMPLED_ONE_IN = 10
"""In this share of attempts and events each plugin is timed."""
SAMPLES = 1000

ATTEMPT_S = exponential_buckets(0.001, 2, 15)
POINT_S = exponential_buckets(0.0001, 2, 12)
PLUGIN_S = exponential_buckets(0.00001, 1.5, 20)
WAITING_S = exponential_buckets(0.01, 2, 20)

F = TypeVar("F", bound=Family)


class SchedulerMetrics:
    """All metrics of one scheduler. `profile` has what is recorded for every pod; the rest is on the way of few.

    What others count anyway is read when it is shown: whoever builds the scheduler sets the `source` of those.
    """

    def __init__(self) -> None:
        self.families: list[Family] = []
        """Everything there is to show, in order."""
        self._add_attempts()
        self._add_pods()
        self._add_plugins()
        self._add_preemption()
        self._add_queue()
        self._add_events()
        self._add_devices()
        self._shared = AttemptHistograms(
            attempts=self.attempt_duration,
            algorithm=self.algorithm,
            points=self.point_duration,
            waited=self.sli_duration,
            pod_attempts=self.pod_attempts,
        )
        self._profiles: dict[str, ProfileMetrics] = {}
        self.is_sampled: Callable[[], bool] = cycle(_sampling(SAMPLED_ONE_IN)).__next__
        """Whether to time each plugin this time."""

    def profile(self, name: str) -> ProfileMetrics:
        """What is recorded for the pods of one profile; always the same object."""
        if name not in self._profiles:
            self._profiles[name] = ProfileMetrics(
                name, self._shared, self.plugin_evaluation, self.after_flush
            )
        return self._profiles[name]

    def plugin_ended(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """A plugin has answered, in an attempt that is sampled."""
        self.plugin_duration.labels(plugin, point, status).observe(seconds)

    def evicting(self) -> Callable[[bool], None]:
        """The victims of a pod are about to be deleted; the answer is to be called with whether that went well."""
        started = perf_counter()

        def over(is_success: bool) -> None:
            result = "success" if is_success else "error"
            self.evictions.labels(result).observe(perf_counter() - started)

        return over

    def add(self, family: F) -> F:
        """Show one more metric; for plugins that bring their own."""
        self.families.append(family)
        return family

    def fold(self) -> None:
        """Sort the times that were gathered into the histograms."""
        for profile in self._profiles.values():
            profile.fold()

    def render(self, *, process: bool = False) -> str:
        """Everything in the text format of Prometheus; `process` adds the metrics of this very process."""
        from .exposition import render  # loads prometheus_client, which only those need who look

        self.fold()
        return render(self.families, process=process)

    # What there is

    def _add_attempts(self) -> None:
        self.schedule_attempts = self.add(
            ReadCounter(
                "scheduler_schedule_attempts_total",
                "Attempts to schedule a pod, by how they ended. 'unschedulable': no node can take the pod; "
                "'error': the scheduler, or what it depends on, failed.",
                ("result", "profile"),
                lambda: self.attempt_duration.counts(),
            )
        )
        self.attempt_duration = self.add(
            HistogramFamily(
                "scheduler_scheduling_attempt_duration_seconds",
                "Time of an attempt, from the queue to the binding or the refusal.",
                ATTEMPT_S,
                ("result", "profile"),
            )
        )
        self.algorithm = self.add(
            HistogramFamily(
                "scheduler_scheduling_algorithm_duration_seconds",
                "Time to find a node for a pod, or to see that there is none and try to make room.",
                ATTEMPT_S,
            )
        ).labels()
        self.bindings = self.add(
            GaugeFamily(
                "scheduler_goroutines",
                "Work under way beside the scheduling of the next pods, by kind.",
                ("operation",),
            )
        ).labels("binding")
        self.permit_wait = self.add(
            HistogramFamily(
                "scheduler_permit_wait_duration_seconds",
                "Time for which Permit plugins held a pod back, by what came of it.",
                ATTEMPT_S,
                ("result",),
            )
        )

    def _add_pods(self) -> None:
        self.sli_duration = self.add(
            HistogramFamily(
                "scheduler_pod_scheduling_sli_duration_seconds",
                "Time from a pod's entry into the active queue to its binding, by the attempts it took.",
                WAITING_S,
                ("attempts",),
            )
        )
        self.pod_attempts = self.add(
            HistogramFamily(
                "scheduler_pod_scheduling_attempts",
                "Attempts it took to schedule a pod.",
                exponential_buckets(1, 2, 5),
            )
        ).labels()
        self.after_flush = self.add(
            CounterFamily(
                "scheduler_pod_scheduled_after_flush_total",
                "Pods that no event brought back, that were tried again because they had waited too long, and that "
                "then found a node. Many of them mean that events or hints are missing.",
            )
        ).labels()

    def _add_plugins(self) -> None:
        self.point_duration = self.add(
            HistogramFamily(
                "scheduler_framework_extension_point_duration_seconds",
                "Time that all plugins of an extension point took together.",
                POINT_S,
                ("extension_point", "status", "profile"),
            )
        )
        self.plugin_duration = self.add(
            HistogramFamily(
                "scheduler_plugin_execution_duration_seconds",
                "Time that one plugin took at an extension point, in a tenth of the attempts in which plugins are "
                "asked.",
                PLUGIN_S,
                ("plugin", "extension_point", "status"),
            )
        )
        self.plugin_evaluation = self.add(
            CounterFamily(
                "scheduler_plugin_evaluation_total",
                "Attempts in which a plugin had a say at PreFilter, Filter, PreScore or Score.",
                ("plugin", "extension_point", "profile"),
            )
        )
        self.volume_errors = self.add(
            CounterFamily(
                "scheduler_volume_scheduling_stage_error_total",
                "Errors while the volumes of a pod were looked for, reserved or bound.",
                ("operation",),
            )
        )

    def _add_preemption(self) -> None:
        self.preemption_attempts = self.add(
            CounterFamily(
                "scheduler_preemption_attempts_total",
                "Attempts to make room for a pod by pushing out others.",
            )
        ).labels()
        self.preemption_victims = self.add(
            HistogramFamily(
                "scheduler_preemption_victims",
                "Pods that were chosen to make room for one.",
                exponential_buckets(1, 2, 7),
            )
        ).labels()
        self.evictions = self.add(
            HistogramFamily(
                "scheduler_preemption_goroutines_duration_seconds",
                "Time it took to have the victims of one pod deleted, by what came of it.",
                WAITING_S,
                ("result",),
            )
        )
        self.add(
            ReadCounter(
                "scheduler_preemption_goroutines_execution_total",
                "Pods whose victims were deleted, by what came of it.",
                ("result",),
                self.evictions.counts,
            )
        )

    def _add_queue(self) -> None:
        self.pending_pods = self.add(
            ReadGauge(
                "scheduler_pending_pods",
                "Pods that wait. 'active': for their turn; 'backoff': for the end of their backoff; "
                "'unschedulable': after a failed attempt, for something to happen; 'gated': held back, never tried.",
                ("queue",),
            )
        )
        self.incoming_pods = self.add(
            ReadCounter(
                "scheduler_queue_incoming_pods_total",
                "Pods that entered a part of the queue, by the event that brought them there.",
                ("queue", "event"),
            )
        )
        self.unschedulable_pods = self.add(
            ReadGauge(
                "scheduler_unschedulable_pods",
                "Waiting pods that a plugin refused. A pod counts for each of them, so the sum means nothing.",
                ("plugin", "profile"),
            )
        )
        self.cache_size = self.add(
            ReadGauge(
                "scheduler_cache_size",
                "Nodes that are known, pods on them, and pods that are assumed to be on them.",
                ("type",),
            )
        )

    def _add_events(self) -> None:
        self.inflight_events = self.add(
            ReadGauge(
                "scheduler_inflight_events",
                "Events that are remembered for pods being scheduled; PodPopped counts those pods.",
                ("event",),
            )
        )
        self.event_handling = self.add(
            HistogramFamily(
                "scheduler_event_handling_duration_seconds",
                "Time to bring back the pods that a change in the cluster matters to.",
                POINT_S,
                ("event",),
            )
        )
        self.hint_duration = self.add(
            HistogramFamily(
                "scheduler_queueing_hint_execution_duration_seconds",
                "Time that a plugin took to say whether an event is worth a new attempt, a tenth of the times.",
                PLUGIN_S,
                ("plugin", "event", "hint"),
            )
        )

    def _add_devices(self) -> None:
        self.claim_creates = self.add(
            CounterFamily(
                "scheduler_resourceclaim_creates_total",
                "ResourceClaims that were made for extended resources, by what came of it.",
                ("status",),
            )
        )
        self.device_allocations = self.add(
            CounterFamily(
                "scheduler_dra_bindingconditions_allocations_total",
                "Devices that had to be made ready before a pod could be bound, by what came of it.",
                ("profile", "driver", "status"),
            )
        )
        self.device_wait = self.add(
            HistogramFamily(
                "scheduler_dra_bindingconditions_wait_duration_seconds",
                "Time that PreBind waited for the devices of a pod to be ready, for each of them.",
                exponential_buckets(0.1, 2, 14),
                ("profile", "driver", "status"),
            )
        )


@lru_cache
def _sampling(one_in: int) -> tuple[bool, ...]:
    """True once in `one_in` times on average, in no order that work could fall in step with."""
    answers = [number % one_in == 0 for number in range(SAMPLES)]
    random.Random(0).shuffle(answers)
    return tuple(answers)
