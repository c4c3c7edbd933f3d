"""WorkQueues: work that is done from time to time, under the names of client-go's work queues.

Mirrors k8s.io/component-base/metrics/prometheus/workqueue/metrics.go. In kube-scheduler these are the queues of
controllers that follow certificates and authentication settings. Here such work has no queue: it is done when it is
due, so that nothing ever waits and the time in the queue is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from .families import CounterFamily, Family, GaugeFamily, HistogramFamily
from .series import exponential_buckets

SERVING_FILES = "DynamicCABundle-serving-cert"
SERVING_CERTIFICATE = "DynamicServingCertificateController"
CLIENT_AUTHORITIES = "DynamicConfigMapCABundle-client-ca"
REQUEST_HEADERS = "RequestHeaderAuthRequestController"
BUCKETS_S = exponential_buckets(10e-9, 10, 10)


class WorkQueues:
    """The metrics of all kinds of work, by name."""

    def __init__(self) -> None:
        self.adds = CounterFamily("workqueue_adds_total{name}", "Pieces of work.")
        self.retries = CounterFamily("workqueue_retries_total{name}", "Work that was tried again.")
        self.depth = GaugeFamily("workqueue_depth{name}", "Work that waits.")
        self.waited = HistogramFamily(
            "workqueue_queue_duration_seconds{name}", "How long work waited.", BUCKETS_S
        )
        self.worked = HistogramFamily(
            "workqueue_work_duration_seconds{name}", "How long work took.", BUCKETS_S
        )
        self.unfinished = GaugeFamily(
            "workqueue_unfinished_work_seconds{name}", "How long running work has taken so far."
        )
        self.longest = GaugeFamily(
            "workqueue_longest_running_processor_seconds{name}",
            "How long the longest running work has taken so far.",
        )

    @property
    def families(self) -> list[Family]:
        """Metrics to expose."""
        return list(vars(self).values())

    @contextmanager
    def working(self, name: str) -> Iterator[None]:
        """Count a piece of work, and how long it takes."""
        for gauge in (self.depth, self.unfinished, self.longest):
            gauge.labels(name)
        self.adds.labels(name).count += 1
        self.waited.labels(name).observe(0)
        started = perf_counter()
        try:
            yield
        finally:
            self.worked.labels(name).observe(perf_counter() - started)

    def retried(self, name: str) -> None:
        """Count that a piece of work is tried again."""
        self.retries.labels(name).count += 1
