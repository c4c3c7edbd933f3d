"""SchedulerMetrics: the names, labels and buckets of kube-scheduler v1.36, and the Prometheus text."""

import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bayplan.observe.families import CounterFamily
from bayplan.observe.profile_metrics import UNSCHEDULABLE
from bayplan.observe.scheduler_metrics import SAMPLES, SchedulerMetrics
from bayplan.observe.times import DECIDED, ENDED, NEVER, STARTED

COUNTERS = {
    "schedule_attempts_total": ("result", "profile"),
    "preemption_attempts_total": (),
    "pod_scheduled_after_flush_total": (),
    "queue_incoming_pods_total": ("queue", "event"),
    "plugin_evaluation_total": ("plugin", "extension_point", "profile"),
    "preemption_goroutines_execution_total": ("result",),
    "volume_scheduling_stage_error_total": ("operation",),
    "resourceclaim_creates_total": ("status",),
    "dra_bindingconditions_allocations_total": ("profile", "driver", "status"),
}
GAUGES = {
    "pending_pods": ("queue",),
    "inflight_events": ("event",),
    "goroutines": ("operation",),
    "cache_size": ("type",),
    "unschedulable_pods": ("plugin", "profile"),
}
HISTOGRAMS: dict[str, tuple[tuple[str, ...], str, str, int]] = {
    # labels, first and second limit as in the `le` label, number of limits
    "scheduling_attempt_duration_seconds": (("result", "profile"), "0.001", "0.002", 15),
    "scheduling_algorithm_duration_seconds": ((), "0.001", "0.002", 15),
    "event_handling_duration_seconds": (("event",), "0.0001", "0.0002", 12),
    "preemption_victims": ((), "1", "2", 7),
    "pod_scheduling_sli_duration_seconds": (("attempts",), "0.01", "0.02", 20),
    "pod_scheduling_attempts": ((), "1", "2", 5),
    "framework_extension_point_duration_seconds": (
        ("extension_point", "status", "profile"),
        "0.0001",
        "0.0002",
        12,
    ),
    "plugin_execution_duration_seconds": (
        ("plugin", "extension_point", "status"),
        "1e-05",
        "1.5000000000000002e-05",
        20,
    ),
    "queueing_hint_execution_duration_seconds": (
        ("plugin", "event", "hint"),
        "1e-05",
        "1.5000000000000002e-05",
        20,
    ),
    "permit_wait_duration_seconds": (("result",), "0.001", "0.002", 15),
    "preemption_goroutines_duration_seconds": (("result",), "0.01", "0.02", 20),
    "dra_bindingconditions_wait_duration_seconds": (
        ("profile", "driver", "status"),
        "0.1",
        "0.2",
        14,
    ),
}


def make_full_metrics() -> SchedulerMetrics:
    """Metrics with data in every family; the label values are the label names."""
    metrics = SchedulerMetrics()
    times = NEVER.copy()
    times[STARTED], times[DECIDED], times[ENDED] = 100.0, 100.001, 100.0015
    metrics.profile("profile").failed(times, UNSCHEDULABLE)
    for family in metrics.families:
        labels = family.label_names
        if hasattr(family, "source"):
            if family is not metrics.schedule_attempts and "goroutines" not in family.name:
                family.source = lambda labels=labels: {labels: 7}
            continue
        series = family.labels(*labels)  # type: ignore[attr-defined]
        match type(series).__name__:
            case "CounterSeries":
                series.count += 3
            case "Gauge":
                series.value += 2
            case "Histogram":
                series.observe(0.0015)
    return metrics


def samples_of(text: str) -> dict[str, list[Sample]]:
    """The samples by the name of their family, as Prometheus would parse them."""
    return {
        family.name: list(family.samples)
        for family in text_string_to_metric_families(text)
        if family.documentation and family.name
    }


EMPTY = {
    "batch_attempts_total",
    "batch_cache_flushed_total",
    "get_node_hint_duration_seconds",
    "store_schedule_results_duration_seconds",
}
"""Registered, and without data."""


def test_every_metric_is_in_the_tables() -> None:
    names = {family.name.removeprefix("scheduler_") for family in SchedulerMetrics().families}

    assert names == {
        *COUNTERS,
        *GAUGES,
        *HISTOGRAMS,
        *EMPTY,
        "bayplan_cache_events_total",
        "bayplan_engine_failures_total",
        "bayplan_reference_decisions_total",
        "bayplan_unreadable_objects_total",
    }


@pytest.mark.parametrize(("name", "labels"), [*COUNTERS.items(), *GAUGES.items()])
def test_numbers_have_their_names_and_labels(name: str, labels: tuple[str, ...]) -> None:
    text = make_full_metrics().render()

    kind = "counter" if name in COUNTERS else "gauge"
    assert f"# TYPE scheduler_{name} {kind}\n" in text
    samples = samples_of(text)[f"scheduler_{name}".removesuffix("_total")]
    assert {sample.name for sample in samples} == {f"scheduler_{name}"}
    assert all(set(sample.labels) == set(labels) for sample in samples)
    assert all(sample.value > 0 for sample in samples if sample.labels != {"operation": "binding"})


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_have_their_names_labels_and_buckets(name: str) -> None:
    labels, first, second, count = HISTOGRAMS[name]
    text = make_full_metrics().render()

    assert f"# TYPE scheduler_{name} histogram\n" in text
    samples = samples_of(text)[f"scheduler_{name}"]
    one = {label: label for label in labels}
    limits = [
        sample.labels["le"]
        for sample in samples
        if sample.name.endswith("_bucket") and one.items() <= sample.labels.items()
    ]
    assert [*limits[:2], limits[-1], len(limits)] == [first, second, "+Inf", count + 1]
    sums = [sample for sample in samples if sample.name == f"scheduler_{name}_sum"]
    assert all(set(sample.labels) == set(labels) for sample in sums)


def test_buckets_add_up_and_end_with_everything() -> None:
    metrics = SchedulerMetrics()
    for victims in (1, 1, 3, 200):
        metrics.preemption_victims.observe(victims)

    samples = samples_of(metrics.render())["scheduler_preemption_victims"]

    assert [sample.value for sample in samples] == [2, 2, 3, 3, 3, 3, 3, 4, 4, 205]


def test_label_values_are_quoted() -> None:
    metrics = SchedulerMetrics()
    metrics.permit_wait.labels('a"b\\c\nd').observe(1)

    samples = samples_of(metrics.render())["scheduler_permit_wait_duration_seconds"]

    assert samples[0].labels["result"] == 'a"b\\c\nd'


def test_process_metrics_are_added_on_request() -> None:
    metrics = SchedulerMetrics()

    assert "process_cpu_seconds_total" in metrics.render(process=True)
    assert "process_" not in metrics.render()


def test_rendering_twice_gives_the_same_text() -> None:
    metrics = make_full_metrics()

    assert metrics.render() == metrics.render()


def test_evictions_are_timed_and_counted_by_result() -> None:
    metrics = SchedulerMetrics()

    metrics.evicting("pod")(True)
    metrics.evicting("pod")(True)
    metrics.evicting("pod")(False)

    counted = samples_of(metrics.render())["scheduler_preemption_goroutines_execution"]
    assert {sample.labels["result"]: sample.value for sample in counted} == {
        "success": 2,
        "error": 1,
    }


def test_a_plugin_can_bring_its_own_metric() -> None:
    metrics = SchedulerMetrics()

    metrics.add(CounterFamily("my_plugin_calls_total", "Calls.")).labels().count += 1

    assert "\nmy_plugin_calls_total 1.0\n" in metrics.render()


def test_a_tenth_is_sampled_and_not_every_tenth() -> None:
    metrics = SchedulerMetrics()
    answers = [metrics.is_sampled() for _ in range(SAMPLES)]

    assert sum(answers) == SAMPLES // 10
    positions = {i % 10 for i, answer in enumerate(answers) if answer}
    assert len(positions) == 10


def test_prometheus_client_is_imported_only_for_exposition() -> None:
    code = """
import sys
from bayplan.observe.scheduler_metrics import SchedulerMetrics
metrics = SchedulerMetrics()
assert "prometheus_client" not in sys.modules
metrics.render()
assert "prometheus_client" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_hidden_metric_is_hidden_also_when_it_is_added_later() -> None:
    metrics = SchedulerMetrics()
    metrics.hide(["my_plugin_calls_total", "scheduler_cache_size"])
    metrics.add(CounterFamily("my_plugin_calls_total", "Calls."))

    names = {family.name for family in metrics.families}
    assert not names & {"my_plugin_calls_total", "scheduler_cache_size"}
