"""RequestMetrics: requests to API servers, under the names of client-go.

Mirrors k8s.io/component-base/metrics/prometheus/restclient/metrics.go, and client-go/rest/request.go for what is
counted: a request that is repeated as the server asks for it counts once, with its last response. The event loop of the
connection counts; another thread may read, and then misses at most what is being counted.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ...observe.families import CounterFamily, Family, HistogramFamily
from ...observe.series import CounterSeries, Histogram, Tally

DURATION_S = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]
NO_RESPONSE = 0
"""In place of a status code."""


class RequestMetrics:
    """The metrics of all connections of a process."""

    def __init__(self) -> None:
        self.requests = CounterFamily(
            "rest_client_requests_total",
            "Requests to the API server, by status code of the response; '<error>' without one.",
            ("code", "method", "host"),
        )
        self.duration = HistogramFamily(
            "rest_client_request_duration_seconds",
            "Time from a request to its last response, with repetitions that the server asked for.",
            DURATION_S,
            ("verb", "host"),
        )
        self.limited = HistogramFamily(
            "rest_client_rate_limiter_duration_seconds",
            "Time for which the client's own rate limit held a request.",
            DURATION_S,
            ("verb", "host"),
        )

    @property
    def families(self) -> list[Family]:
        """What is exposed."""
        return [self.requests, self.duration, self.limited]

    def of(self, server: str) -> HostRequests:
        """The part of one server, by its address."""
        return HostRequests(self, urlsplit(server).netloc or "none")


class HostRequests:
    """Counts the requests to one server, without a look-up by labels for each."""

    def __init__(self, metrics: RequestMetrics, host: str) -> None:
        self._metrics = metrics
        self._host = host
        self._series: dict[tuple[str, int], tuple[CounterSeries, Histogram]] = {}
        self._waits: dict[str, tuple[Histogram, Tally]] = {}

    def answered(self, method: str, code: int) -> None:
        """Count a response, or NO_RESPONSE."""
        self._find(method, code)[0].count += 1

    def ended(self, method: str, code: int, seconds: float) -> None:
        """Count a response, or NO_RESPONSE, and the time it took."""
        counter, durations = self._series.get((method, code)) or self._find(method, code)
        counter.count += 1
        durations.observe(seconds)

    def _find(self, method: str, code: int) -> tuple[CounterSeries, Histogram]:
        found = self._series.get((method, code))
        if found is None:
            metrics, shown = self._metrics, str(code) if code != NO_RESPONSE else "<error>"
            counter = metrics.requests.labels(shown, method, self._host)
            found = counter, metrics.duration.labels(method, self._host)
            self._series[method, code] = found
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
