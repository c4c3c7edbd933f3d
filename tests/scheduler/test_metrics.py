"""Metrics of a running scheduler."""

from collections.abc import Mapping
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import ApiError
from bayplan.framework import (
    SKIP,
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
    failure,
    unresolvable,
    unschedulable,
    wait,
)
from bayplan.observe.scheduler_metrics import SchedulerMetrics
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import DelayedResult, Scenario, Scripted

PROFILE = "default-scheduler"
SOME_NODES = {"percentageOfNodesToScore": 50}
"""With this, points are run plugin by plugin, and timed."""
SCRIPTED = {
    "plugins": {
        "multiPoint": {"enabled": [{"name": "Scripted"}]},
        "bind": {"enabled": [{"name": "Scripted"}]},  # before DefaultBinder
    }
}


class Told(Scripted):
    name = "Scripted"


def attempts_of(metrics: SchedulerMetrics) -> dict[str, float]:
    """Attempts by result."""
    metrics.fold()
    return {result: count for (result, _), count in metrics.schedule_attempts.read().items()}


def points_of(metrics: SchedulerMetrics) -> dict[str, list[str]]:
    """The statuses each extension point came to, without PreEnqueue."""
    metrics.fold()
    found: dict[str, list[str]] = {}
    for (point, status, _), count in metrics.point_duration.counts().items():
        if point != "PreEnqueue":
            found.setdefault(point, []).extend([status] * int(count))
    return found


def test_a_pod_that_is_placed_passes_every_point_once() -> None:
    scenario = Scenario(make_node("a"), make_node("b"))
    scenario.add(make_pod("p"))
    scenario.run()
    metrics = scenario.scheduler.metrics

    assert attempts_of(metrics) == {"scheduled": 1}
    assert points_of(metrics) == {
        "PreFilter": ["Success"],
        "Filter": ["Success"],
        "PreScore": ["Success"],
        "Score": ["Success"],
        "Reserve": ["Success"],
        "Permit": ["Success"],
        "PreBindPreFlight": ["Skip"],
        "PreBind": ["Success"],
        "Bind": ["Success"],
        "PostBind": ["Success"],
    }
    assert metrics.algorithm.read().count == 1
    assert metrics.pod_attempts.read().sum == 1


def test_pods_like_those_before_pass_every_point_too() -> None:
    scenario = Scenario(make_node("a"), make_node("b"))
    scenario.add(*(make_pod(f"p{i}") for i in range(9)))
    scenario.run()

    points = points_of(scenario.scheduler.metrics)

    assert {point: len(statuses) for point, statuses in points.items()} == dict.fromkeys(points, 9)
    assert len(points) == 10


def test_a_single_node_is_taken_unscored() -> None:
    scenario = Scenario(make_node("a"), make_node("b", cpu="1"), profile=SOME_NODES)
    scenario.add(make_pod("p", cpu="1500m"))
    scenario.run()

    points = points_of(scenario.scheduler.metrics)

    assert "Score" not in points
    assert points["Filter"] == ["Success"]


def test_a_pod_that_fits_nowhere_gets_as_far_as_post_filter() -> None:
    scenario = Scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()
    metrics = scenario.scheduler.metrics

    assert attempts_of(metrics) == {"unschedulable": 1}
    assert points_of(metrics) == {
        "PreFilter": ["Success"],
        "Filter": ["Success"],
        "PostFilter": ["Unschedulable"],
    }
    assert metrics.preemption_attempts.count == 1
    assert metrics.preemption_victims.read().count == 0
    assert metrics.unschedulable_pods.read() == {("NodeResourcesFit", PROFILE): 1}


def test_the_time_a_pod_waited_is_that_of_the_scheduler() -> None:
    scenario = Scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()
    scenario.clock.advance(100)
    scenario.add(make_node("b", cpu="4"))
    scenario.run()
    metrics = scenario.scheduler.metrics

    assert attempts_of(metrics) == {"scheduled": 1, "unschedulable": 1}
    assert {label: seen.sum for label, seen in metrics.sli_duration.read().items()} == {
        ("2",): 100.0
    }
    assert metrics.attempt_duration.read()["scheduled", PROFILE].sum < 100  # that of the machine


def test_a_pod_that_only_time_brought_back_is_counted() -> None:
    scenario = Scenario(make_node("a"), profile=SCRIPTED, plugins=(Told,))
    told = scenario.plugin(Told)
    told.answers["reserve"] = unschedulable("not now")
    scenario.add(make_pod("p"))
    scenario.run()
    told.answers.clear()
    scenario.advance(400)

    assert scenario.pod("p").node_name == "a"
    assert scenario.scheduler.metrics.after_flush.count == 1


def test_preemption_counts_victims_and_evictions() -> None:
    scenario = Scenario(make_node("a", cpu="2"))
    scenario.add(make_pod("v1", cpu="1"), make_pod("v2", cpu="1"))
    scenario.run()
    scenario.add(make_pod("p", cpu="2", priority=10))
    scenario.run()
    metrics = scenario.scheduler.metrics

    assert metrics.preemption_attempts.count == 1
    assert metrics.preemption_victims.read().sum == 2
    assert metrics.evictions.counts() == {("success",): 1}


@pytest.mark.parametrize(
    ("point", "answer", "expected", "result"),
    [
        pytest.param(
            "reserve",
            unschedulable("no"),
            {"Reserve": ["Unschedulable"], "Unreserve": ["Success"]},
            "unschedulable",
            id="Reserve refuses",
        ),
        pytest.param(
            "permit",
            failure("oh no"),
            {"Reserve": ["Success"], "Permit": ["Error"], "Unreserve": ["Success"]},
            "error",
            id="Permit fails",
        ),
        pytest.param(
            "pre_bind",
            failure("oh no"),
            {
                "Reserve": ["Success"],
                "Permit": ["Success"],
                "PreBindPreFlight": ["Success"],
                "PreBind": ["Error"],
                "Unreserve": ["Success"],
            },
            "error",
            id="PreBind fails",
        ),
        pytest.param(
            "bind",
            failure("oh no"),
            {
                "Reserve": ["Success"],
                "Permit": ["Success"],
                "PreBindPreFlight": ["Success"],
                "PreBind": ["Success"],
                "Bind": ["Error"],
                "Unreserve": ["Success"],
            },
            "error",
            id="Bind fails",
        ),
    ],
)
def test_a_step_of_the_binding_that_fails_is_timed_by_its_status(
    point: str, answer: Status, expected: Mapping[str, list[str]], result: str
) -> None:
    profile = {**SCRIPTED, **SOME_NODES}
    scenario = Scenario(make_node("a"), make_node("b"), profile=profile, plugins=(Told,))
    scenario.plugin(Told).answers[point] = answer
    scenario.add(make_pod("p"))
    scenario.scheduler.schedule_one()
    metrics = scenario.scheduler.metrics

    points = points_of(metrics)
    for asked in ("PreFilter", "Filter", "PreScore", "Score"):
        assert points.pop(asked) == ["Success"]
    assert points == expected
    assert attempts_of(metrics) == {result: 1}


def test_a_binding_under_way_is_shown_until_it_ends() -> None:
    scenario = Scenario(make_node("a"), profile=SCRIPTED, plugins=(Told,))
    scenario.plugin(Told).answers["bind"] = DelayedResult(5)
    metrics = scenario.scheduler.metrics
    scenario.add(make_pod("p"))
    scenario.run()
    under_way = metrics.bindings.value

    scenario.advance(5)

    assert (under_way, metrics.bindings.value) == (1, 0)
    assert points_of(metrics)["Bind"] == ["Success"]
    assert attempts_of(metrics) == {"scheduled": 1}


@pytest.mark.parametrize(
    ("decide", "result"),
    [
        pytest.param(lambda pod: pod.allow("Scripted"), "Success", id="allowed"),
        pytest.param(lambda pod: pod.reject("Scripted", "no"), "Unschedulable", id="refused"),
    ],
)
def test_waiting_on_permit_is_timed_by_the_scheduler(decide: Any, result: str) -> None:
    scenario = Scenario(make_node("a"), profile=SCRIPTED, plugins=(Told,))
    scenario.plugin(Told).answers["permit"] = wait("for others")
    metrics = scenario.scheduler.metrics
    scenario.add(make_pod("p"))
    scenario.run()
    assert metrics.bindings.value == 1

    scenario.clock.advance(3)
    decide(next(iter(scenario.scheduler.waiting_pods)))

    assert {label: seen.sum for label, seen in metrics.permit_wait.read().items()} == {
        (result,): 3.0
    }
    assert points_of(metrics)["Permit"] == ["Wait"]
    assert metrics.bindings.value == 0


def breaking(point: type[Plugin], method: str) -> type[Plugin]:
    def act(self: Plugin, *given: Any) -> Any:
        raise ValueError("oh no")

    return type("Breaking", (point,), {"name": "Breaking", method: act})


@pytest.mark.parametrize(
    ("plugin", "label"),
    [
        pytest.param(breaking(PreFilterPlugin, "pre_filter"), "PreFilter", id="PreFilter"),
        pytest.param(breaking(FilterPlugin, "filter_node"), "Filter", id="Filter"),
        pytest.param(breaking(PreScorePlugin, "pre_score"), "PreScore", id="PreScore"),
        pytest.param(breaking(ScorePlugin, "score_node"), "Score", id="Score"),
    ],
)
def test_a_plugin_that_raises_is_an_error_of_its_point(plugin: type[Plugin], label: str) -> None:
    scenario = Scenario(make_node("a"), make_node("b"), plugins=(plugin,))
    scenario.add(make_pod("p"))
    scenario.scheduler.schedule_one()
    metrics = scenario.scheduler.metrics

    assert attempts_of(metrics) == {"error": 1}
    assert points_of(metrics)[label] == ["Error"]
    assert metrics.algorithm.read().count == 1


def test_post_filter_that_raises_is_an_error_of_its_point() -> None:
    plugin = breaking(PostFilterPlugin, "post_filter")
    profile = {
        "plugins": {
            "postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "Breaking"}]},
        }
    }
    scenario = Scenario(make_node("a", cpu="1"), plugins=(plugin,), profile=profile)
    scenario.add(make_pod("p", cpu="2"))
    scenario.scheduler.schedule_one()

    assert points_of(scenario.scheduler.metrics)["PostFilter"] == ["Error"]


def test_pre_filter_that_refuses_is_timed_by_its_status() -> None:
    class Never(PreFilterPlugin):
        name = "Never"

        def pre_filter(self, state: Any, pod: Pod, table: Any) -> Status:
            return unresolvable("never") if pod.name == "p" else SKIP

    scenario = Scenario(make_node("a"), plugins=(Never,))
    scenario.add(make_pod("p"))
    scenario.scheduler.schedule_one()

    points = points_of(scenario.scheduler.metrics)
    assert points["PreFilter"] == ["UnschedulableAndUnresolvable"]
    assert "Filter" not in points


def test_pre_enqueue_is_timed_by_status() -> None:
    scenario = Scenario(make_node("a"))
    scenario.add(make_pod("p"), make_pod("held", gates=["later"]))

    points = scenario.scheduler.metrics.point_duration.counts()

    assert points["PreEnqueue", "Success", PROFILE] == 1
    assert points["PreEnqueue", "UnschedulableAndUnresolvable", PROFILE] == 1


def test_the_queue_is_shown_as_it_is() -> None:
    scenario = Scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("big", cpu="2"))
    scenario.run()
    scenario.add(make_pod("held", gates=["later"]), make_pod("ready"))
    metrics = scenario.scheduler.metrics

    assert metrics.pending_pods.read() == {
        ("active",): 1,
        ("backoff",): 0,
        ("unschedulable",): 1,
        ("gated",): 1,
    }
    assert metrics.incoming_pods.read() == {
        ("active", "UnschedulablePodAdd"): 2,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("unschedulable", "UnschedulablePodAdd"): 1,
    }


def test_pods_in_flight_and_their_events_are_shown() -> None:
    scenario = Scenario(make_node("a"))
    scenario.add(make_pod("p"))
    scheduler = scenario.scheduler
    queued = scheduler.queue.pop()
    assert queued is not None
    scenario.add(make_node("b"))

    shown = scheduler.metrics.inflight_events.read()
    scheduler.queue.done(queued.pod.uid)

    assert shown == {("PodPopped",): 1, ("NodeAdd",): 1}
    assert scheduler.metrics.inflight_events.read() == {("PodPopped",): 0}


def test_the_cache_is_shown_as_it_is() -> None:
    scenario = Scenario(make_node("a"), make_node("b"), profile=SCRIPTED, plugins=(Told,))
    scenario.add(make_pod("there", node_name="a"))
    scenario.plugin(Told).answers["permit"] = wait("for others")
    scenario.add(make_pod("p"))
    scenario.run()

    assert scenario.scheduler.metrics.cache_size.read() == {
        ("assumed_pods",): 1,
        ("pods",): 2,
        ("nodes",): 2,
    }


def test_events_are_counted_whether_a_pod_waits_for_them_or_not() -> None:
    scenario = Scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()
    scenario.add(make_node("b", cpu="1"))
    handled = scenario.scheduler.metrics.event_handling.read()["NodeAdd",]

    assert handled.count == 2
    assert handled.sum > 0


def test_a_tenth_of_the_hints_is_timed() -> None:
    scenario = Scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()
    for i in range(1000):
        scenario.add(make_node(f"n{i}", cpu="1"))

    assert scenario.scheduler.metrics.hint_duration.counts() == {
        ("NodeResourcesFit", "NodeAdd", "QueueSkip"): 100
    }


def test_metrics_may_be_brought_along() -> None:
    metrics = SchedulerMetrics()
    scenario = Scenario(make_node("a"), metrics=metrics)
    scenario.add(make_pod("p"))
    scenario.run()

    assert attempts_of(metrics) == {"scheduled": 1}


def test_a_bind_that_the_cluster_refuses_is_an_error() -> None:
    scenario = Scenario(make_node("a"), profile=SCRIPTED, plugins=(Told,))
    scenario.plugin(Told).answers["bind"] = ApiError("no", 500)
    scenario.add(make_pod("p"))
    scenario.scheduler.schedule_one()

    assert points_of(scenario.scheduler.metrics)["Bind"] == ["Error"]
