"""Exposition: metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .families import Family, GaugeFamily, HistogramFamily, ReadGauge
from .series import Distribution


class FamilyCollector(Collector):
    """Exposes our families to a registry of prometheus_client."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """All current metrics."""
        return map(_as_metric, self._families)


def render(families: Sequence[Family], *, process: bool = False) -> str:
    """The families as text; `process` adds memory, processor time and open files of this process."""
    registry = CollectorRegistry()
    registry.register(FamilyCollector(families))
    if process:
        ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


def _as_metric(family: Family) -> Metric:
    labels = family.label_names
    if isinstance(family, HistogramFamily):
        histogram = HistogramMetricFamily(family.name, family.help, labels=labels)
        for values, seen in family.read().items():
            histogram.add_metric(values, _buckets(family.bounds, seen), seen.sum)
        return histogram
    is_gauge = isinstance(family, GaugeFamily | ReadGauge)
    metric = (GaugeMetricFamily if is_gauge else CounterMetricFamily)(
        family.name, family.help, labels=labels
    )
    for values, count in family.read().items():
        metric.add_metric(values, count)
    return metric


def _buckets(bounds: Iterable[float], seen: Distribution) -> list[tuple[str, float]]:
    """Cumulative number of observations per bucket limit."""
    # Formatted as Go does: 1 rather than 1.0. Rules that name a bucket use that form.
    limits = [str(bound).removesuffix(".0") for bound in bounds]
    return list(zip((*limits, "+Inf"), accumulate(seen.counts), strict=True))
