"""ProfileMetrics: preallocated series recorded for every pod of one profile.

Mirrors pkg/scheduler/metrics/profile_metrics.go. An attempt costs its timestamps (`times.py`), one
call of `scheduled` or `failed`, and a tally for the extension points without work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from .families import HistogramFamily
from .series import Histogram, Tally
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

if TYPE_CHECKING:
    from .scheduler_metrics import SchedulerMetrics

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


class ProfileMetrics:
    """The metrics of the pods of the profile `name`."""

    def __init__(self, name: str, shared: SchedulerMetrics) -> None:
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
