"""ProfileMetrics: preallocated series recorded for every pod of one profile.

Mirrors pkg/scheduler/metrics/profile_metrics.go. An attempt costs its timestamps (`times.py`), one
call of `scheduled` or `failed`, and a tally for the extension points without work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from .families import GaugeFamily, HistogramFamily, MetricRegistry
from .series import Histogram, Tally, exponential_buckets
from .times import (
    ATTEMPTS,
    BINDING,
    DECIDED,
    ENDED,
    LENGTH,
    PRE_FILTERED,
    STARTED,
    STRETCHES,
    WAITED_S,
    Floats,
    Times,
    as_rows,
)

ATTEMPT_S = exponential_buckets(0.001, 2, 15)
POINT_S = exponential_buckets(0.0001, 2, 12)
PLUGIN_S = exponential_buckets(0.00001, 1.5, 20)
WAITING_S = exponential_buckets(0.01, 2, 20)

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
"""Result of an attempt."""
SUCCESS, SKIP, FAILURE = "Success", "Skip", "Error"
"""Names of the codes of a Status."""

MANY_ATTEMPTS = 15
"""Pods with at least this many attempts share one label value."""
FOLD_AFTER = 1024
"""Number of attempts buffered before their times are added to the histograms."""


class ExtensionPoint:
    """The durations of one extension point of one profile; `success` is the usual one."""

    __slots__ = ("_family", "_name", "_profile", "success")

    def __init__(self, family: HistogramFamily, name: str, profile: str) -> None:
        self._family = family
        self._name = name
        self._profile = profile
        self.success = family.labels(name, SUCCESS, profile)

    def ended(self, status: str, seconds: float) -> None:
        """Record that all its plugins ran; `status` is the name of the resulting code."""
        self._family.labels(self._name, status, self._profile).observe(seconds)


class AttemptMetrics(MetricRegistry):
    """The metrics of attempts that all profiles share."""

    def __init__(self) -> None:
        super().__init__()
        self._add_attempts()
        self._add_pods()
        self._add_plugins()

    def _add_attempts(self) -> None:
        self.schedule_attempts = self.read_counter(
            "scheduler_schedule_attempts_total{result,profile}",
            "Attempts to schedule a pod, by result. 'unschedulable': no node can take the pod; "
            "'error': the scheduler, or what it depends on, failed.",
            source=lambda: self.attempt_duration.counts(),
        )
        self.attempt_duration = self.histogram(
            "scheduler_scheduling_attempt_duration_seconds{result,profile}",
            "Time of an attempt, from the queue to the binding or the rejection.",
            ATTEMPT_S,
        )
        self.algorithm = self.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time to find a node for a pod, or to fail and attempt preemption.",
            ATTEMPT_S,
        ).labels()
        self.bindings = self.add(
            GaugeFamily(
                "scheduler_goroutines{operation}",
                "Tasks running concurrently with the scheduling of the next pods, by kind.",
            )
        ).labels("binding")
        self.permit_wait = self.histogram(
            "scheduler_permit_wait_duration_seconds{result}",
            "Time for which Permit plugins held a pod, by result.",
            ATTEMPT_S,
        )

    def _add_pods(self) -> None:
        self.sli_duration = self.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds{attempts}",
            "Time from a pod's entry into the active queue to its binding, by the attempts it took.",
            WAITING_S,
        )
        self.pod_attempts = self.histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts it took to schedule a pod.",
            exponential_buckets(1, 2, 5),
        ).labels()
        self.after_flush = self.counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods that no event requeued, that were retried because they exceeded the waiting limit, and that "
            "were then scheduled. Many of them mean that events or hints are missing.",
        ).labels()

    def _add_plugins(self) -> None:
        self.point_duration = self.histogram(
            "scheduler_framework_extension_point_duration_seconds{extension_point,status,profile}",
            "Time that all plugins of an extension point took together.",
            POINT_S,
        )
        self.plugin_duration = self.histogram(
            "scheduler_plugin_execution_duration_seconds{plugin,extension_point,status}",
            "Time that one plugin took at an extension point, in a tenth of the attempts in which plugins "
            "run.",
            PLUGIN_S,
        )
        self.plugin_evaluation = self.counter(
            "scheduler_plugin_evaluation_total{plugin,extension_point,profile}",
            "Attempts in which a plugin ran at PreFilter, Filter, PreScore or Score.",
        )
        self.volume_errors = self.counter(
            "scheduler_volume_scheduling_stage_error_total{operation}",
            "Errors while the volumes of a pod were searched, reserved or bound.",
        )


class ProfileMetrics:
    """The metrics of the pods of the profile `name`."""

    def __init__(self, name: str, shared: AttemptMetrics) -> None:
        self.name = name
        self._shared = shared
        self._scheduled: list[float] = []
        self._failed: dict[str, list[float]] = {UNSCHEDULABLE: [], ERROR: []}
        self._points: dict[str, ExtensionPoint] = {}
        self._unasked = self.idle(STRETCHES)
        """Pods whose best node was found without running plugins."""

    # Before the first pod

    def point(self, name: str) -> ExtensionPoint:
        """The durations of an extension point, by kube-scheduler's name for it: `PreFilter`."""
        if name not in self._points:
            self._points[name] = ExtensionPoint(self._shared.point_duration, name, self.name)
        return self._points[name]

    def idle(self, points: Iterable[str]) -> Tally:
        """One counter for extension points without work, which are not timed."""
        return self._shared.point_duration.together(
            (name, SKIP if name == "PreBindPreFlight" else SUCCESS, self.name) for name in points
        )

    def evaluations(self, plugins: Mapping[str, Iterable[str]]) -> Tally:
        """One counter for the plugins that run for the same pods, by extension point."""
        return self._shared.plugin_evaluation.together(
            (plugin, point, self.name) for point, names in plugins.items() for plugin in names
        )

    # For every pod

    def scheduled(
        self, times: Times, attempts: int, waited_s: float, was_flushed: bool = False
    ) -> None:
        """Record a bound pod: its number of attempts, and the seconds since it was first active.

        `was_flushed`: it exceeded the waiting limit, and no event had requeued it.
        """
        times[ATTEMPTS] = attempts
        times[WAITED_S] = waited_s
        scheduled = self._scheduled
        scheduled += times
        if was_flushed:
            self._shared.after_flush.count += 1
        if len(scheduled) >= FOLD_AFTER * LENGTH:
            self.fold()

    def failed(self, times: Times, result: str) -> None:
        """Record an attempt that ended without a node: UNSCHEDULABLE or ERROR."""
        failed = self._failed[result]
        failed += times
        if len(failed) >= FOLD_AFTER * LENGTH:
            self.fold()

    def broke_off(self, times: Times, moment: float) -> None:
        """Record a plugin failure: the attempt ended with an error at `moment`."""
        for point, (begin, end) in STRETCHES.items():
            if math.isnan(times[end]) and not math.isnan(times[begin]):
                self.point(point).ended(FAILURE, moment - times[begin])
                return

    def fold(self) -> None:
        """Add the buffered times to the histograms."""
        for result, flat in ((SCHEDULED, self._scheduled), *self._failed.items()):
            if flat:
                self._fold(result, flat)
                flat.clear()

    def _fold(self, result: str, flat: list[float]) -> None:
        shared, rows = self._shared, as_rows(flat)
        shared.attempt_duration.labels(result, self.name).observe_all(
            rows[:, ENDED] - rows[:, STARTED]
        )
        shared.algorithm.observe_all(rows[:, DECIDED] - rows[:, STARTED])
        unasked = int(np.isnan(rows[:, PRE_FILTERED]).sum())
        if unasked < len(rows):
            for point, (begin, end) in STRETCHES.items():
                self._succeeded(point).observe_all(rows[:, end] - rows[:, begin])
        if result == SCHEDULED:
            self._unasked.count += unasked
            self._succeeded("Bind").observe_all(rows[:, ENDED] - rows[:, BINDING])
            self._fold_pods(rows[:, ATTEMPTS], rows[:, WAITED_S])

    def _fold_pods(self, attempts: Floats, waited_s: Floats) -> None:
        self._shared.pod_attempts.observe_all(attempts)
        shown = np.minimum(attempts, MANY_ATTEMPTS)
        for number in set(shown.tolist()):
            label = str(int(number)) if number < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
            self._shared.sli_duration.labels(label).observe_all(waited_s[shown == number])

    def _succeeded(self, point: str) -> Histogram:
        return self._shared.point_duration.labels(point, SUCCESS, self.name)
