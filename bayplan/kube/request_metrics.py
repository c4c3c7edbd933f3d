"""RequestMetrics: requests to API servers, under the names of client-go.

Mirrors k8s.io/component-base/metrics/prometheus/restclient/metrics.go, and client-go/rest/request.go for what is
counted: each attempt of a request that is repeated as the server asks for it, but the time to its last response. The
event loop of the connection counts; another thread may read, and then misses at most what is being counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from urllib.parse import urlsplit

from ..observe.families import CounterFamily, Family, HistogramFamily, ReadCounter, ReadGauge
from ..observe.series import CounterSeries, Histogram, Tally

DURATION_S = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]
SIZE_BYTES = [
    float(64 * factor) for factor in (1, 4, 8, 16, 64, 256, 1024, 4096, 16384, 65536, 262144)
]
NO_RESPONSE = 0
"""In place of a status code."""


class RequestMetrics:
    """The metrics of all connections of a process."""

    def __init__(self) -> None:
        self.requests = CounterFamily(
            "rest_client_requests_total{code,method,host}",
            "Requests to the API server, by status code of the response; '<error>' without one.",
        )
        self.duration = HistogramFamily(
            "rest_client_request_duration_seconds{verb,host}",
            "Time from a request to its last response, with repetitions that the server asked for.",
            DURATION_S,
        )
        self.limited = HistogramFamily(
            "rest_client_rate_limiter_duration_seconds{verb,host}",
            "Time for which the client's own rate limit held a request.",
            DURATION_S,
        )

        self.retries = CounterFamily(
            "rest_client_request_retries_total{code,verb,host}",
            "Attempts of requests after the first, by status code of the response.",
        )
        self.sent = HistogramFamily(
            "rest_client_request_size_bytes{verb,host}",
            "Size of the bodies of requests.",
            SIZE_BYTES,
        )
        self.received = HistogramFamily(
            "rest_client_response_size_bytes{verb,host}",
            "Size of the bodies of responses.",
            SIZE_BYTES,
        )
        self.plugin_calls = ReadCounter(
            "rest_client_exec_plugin_call_total{code,call_status}",
            "Calls of the credential plugin, by its exit status and what came of them.",
        )
        self.certificate_ttl = ReadGauge(
            "rest_client_exec_plugin_ttl_seconds",
            "Time until the client certificate from a credential plugin expires; +Inf without one.",
            lambda: {(): math.inf},
        )

    @property
    def families(self) -> list[Family]:
        """Metrics to expose."""
        return list(vars(self).values())

    def of(self, server: str) -> HostRequests:
        """The part of one server, by its address."""
        return HostRequests(self, urlsplit(server).netloc or "none")


class HostSeries(NamedTuple):
    """Series of one method."""

    duration: Histogram
    sent: Histogram
    received: Histogram


class HostRequests:
    """Counts the requests to one server, without a look-up by labels for each."""

    def __init__(self, metrics: RequestMetrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._codes: dict[tuple[str, int], CounterSeries] = {}
        self._series: dict[str, HostSeries] = {}
        self._waits: dict[str, tuple[Histogram, Tally]] = {}

    def answered(self, method: str, code: int, *, is_retry: bool = False) -> None:
        """Count a response, or NO_RESPONSE, to one attempt."""
        counter = self._codes.get((method, code))
        if counter is None:
            counter = self._metrics.requests.labels(_shown(code), method, self._host)
            self._codes[method, code] = counter
        counter.count += 1
        if is_retry:
            self._metrics.retries.labels(_shown(code), method, self._host).count += 1

    def sent(self, method: str, size: int) -> None:
        """Record the size of the body that one attempt sends."""
        self._find(method).sent.observe(size)

    def attempted(self, method: str, code: int, size: int, *, is_retry: bool = False) -> None:
        """Count an attempt that has ended: the body that it sent, and its response or NO_RESPONSE."""
        (self._series.get(method) or self._find(method)).sent.observe(size)
        self.answered(method, code, is_retry=is_retry)

    def ended(self, method: str, seconds: float, received: int | None) -> None:
        """Record how long a request took with all its attempts, and the size of the response, if there was one."""
        series = self._series.get(method) or self._find(method)
        series.duration.observe(seconds)
        if received is not None:
            series.received.observe(received)

    def _find(self, method: str) -> HostSeries:
        found = self._series.get(method)
        if found is None:
            metrics, labels = self._metrics, (method, self._host)
            families = (metrics.duration, metrics.sent, metrics.received)
            found = HostSeries(*(family.labels(*labels) for family in families))
            self._series[method] = found
        return found

    def waited(self, method: str, seconds: float) -> None:
        """Record how long the rate limit holds a request, which is usually 0."""
        found = self._waits.get(method)
        if found is None:
            family, labels = self._metrics.limited, (method, self._host)
            found = self._waits[method] = family.labels(*labels), family.together([labels])
        if seconds:
            found[0].observe(seconds)
        else:
            found[1].count += 1


def _shown(code: int) -> str:
    return str(code) if code != NO_RESPONSE else "<error>"
