"""The scheduler's metrics have the names, types, labels and buckets of kube-scheduler's."""

from pathlib import Path

import pytest

from bayplan.observe.families import (
    CounterFamily,
    Family,
    GaugeFamily,
    HistogramFamily,
    ReadCounter,
    ReadGauge,
)
from bayplan.observe.scheduler_metrics import SHOWN_WITH, SchedulerMetrics, follow_release
from bayplan.observe.series import exponential_buckets
from bayplan.releases.release import DEFAULT_RELEASE

UPSTREAM = Path(__file__).with_name("kube_scheduler_metrics.txt")
OURS = {
    "bayplan_cache_events_total",
    "bayplan_engine_failures_total",
    "bayplan_reference_decisions_total",
    "bayplan_unreadable_objects_total",
}


def upstream() -> dict[str, list[str]]:
    lines = [line for line in UPSTREAM.read_text().splitlines() if not line.startswith("#")]
    return {name: rest for name, *rest in (line.split() for line in lines)}


def type_of(family: Family) -> str:
    if isinstance(family, HistogramFamily):
        return "histogram"
    is_gauge = isinstance(family, GaugeFamily | ReadGauge)
    return "gauge" if is_gauge else "counter"


def with_pod_groups() -> SchedulerMetrics:
    metrics = SchedulerMetrics()
    for _ in range(2):  # schedulers may share their metrics
        metrics.add_pod_groups(has_placements=True)
    follow_release(metrics, DEFAULT_RELEASE.missing_metrics)
    return metrics


@pytest.mark.parametrize("name", upstream())
def test_a_metric_is_as_upstream(name: str) -> None:
    kind, labels, *buckets = upstream()[name]
    (family,) = [one for one in with_pod_groups().families if one.name == name]

    assert type_of(family) == kind
    assert family.label_names == (() if labels == "-" else tuple(labels.split(",")))
    assert isinstance(family, HistogramFamily | CounterFamily | GaugeFamily | ReadCounter)
    if buckets:
        first, factor, number = buckets[0].split(",")
        expected = exponential_buckets(float(first), float(factor), int(number))
        assert isinstance(family, HistogramFamily)
        assert family.bounds == expected


def test_nothing_else_has_a_name_of_the_scheduler() -> None:
    names = {family.name for family in with_pod_groups().families}
    assert names - OURS == set(upstream())


def test_metrics_of_pod_groups_need_their_gate() -> None:
    names = {family.name for family in SchedulerMetrics().families}
    assert not [name for name in names if "podgroup" in name]


@pytest.mark.parametrize("gate", SHOWN_WITH)
def test_metrics_of_a_gate_need_it(gate: str) -> None:
    metrics = SchedulerMetrics()
    metrics.follow_gates(lambda name: name != gate)

    names = {family.name for family in metrics.families}
    assert names.isdisjoint(SHOWN_WITH[gate])
    assert names >= {name for other in SHOWN_WITH if other != gate for name in SHOWN_WITH[other]}


@pytest.mark.parametrize(
    ("is_on", "counted"),
    [
        pytest.param(True, {("p", "no_hint"): 1}, id="on: attempts count, without a hint"),
        pytest.param(False, {}, id="off: nothing counts"),
    ],
)
def test_attempts_that_could_be_batched(is_on: bool, counted: dict[tuple[str, str], float]) -> None:
    metrics = SchedulerMetrics()
    metrics.follow_gates(lambda name: is_on)
    metrics.point_duration.labels("PreFilter", "Success", "p").observe(0.1)
    metrics.point_duration.labels("PreFilter", "Unschedulable", "p").observe(0.1)

    assert metrics.batch_attempts.read() == counted
