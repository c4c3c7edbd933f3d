"""ApiCalls: bindings and writes of pod statuses, under the names of kube-scheduler's dispatcher of API calls.

Mirrors the metrics of pkg/scheduler/backend/api_dispatcher, which exist with feature gate SchedulerAsyncAPICalls.
Without it kube-scheduler waits for the write of a status before the next pod; here no write ever holds up another pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from ..observe.families import CounterFamily, Family, HistogramFamily, ReadGauge
from ..observe.series import exponential_buckets

STATUS_PATCH, BINDING = "pod_status_patch", "pod_binding"
LABELS = ("call_type", "result")


class ApiCalls:
    """Counts calls; `pending` has the number of calls that wait for an earlier one of the same pod, by type."""

    def __init__(self, pending: Callable[[], Mapping[tuple[str], int]]) -> None:
        self.executed = CounterFamily(
            "scheduler_async_api_call_execution_total", "Writes about pods, by type.", LABELS
        )
        self.duration = HistogramFamily(
            "scheduler_async_api_call_execution_duration_seconds",
            "Time from a write about a pod to the response.",
            exponential_buckets(0.001, 2, 15),
            LABELS,
        )
        self.pending = ReadGauge(
            "scheduler_pending_async_api_calls",
            "Writes that wait for an earlier one about the same pod.",
            ("call_type",),
            pending,
        )

    @property
    def families(self) -> list[Family]:
        """Metrics to expose."""
        return [self.executed, self.duration, self.pending]

    def count(self, call_type: str, future: asyncio.Future[Any]) -> None:
        """Count a call that was begun when its `future` has a result."""
        started = perf_counter()

        def done(ended: asyncio.Future[Any]) -> None:
            is_failed = ended.cancelled() or ended.exception() is not None
            labels = (call_type, "error" if is_failed else "success")
            self.executed.labels(*labels).count += 1
            self.duration.labels(*labels).observe(perf_counter() - started)

        future.add_done_callback(done)
