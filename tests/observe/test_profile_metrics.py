import math

import pytest

from bayplan.observe.profile_metrics import ERROR, FOLD_AFTER, UNSCHEDULABLE, ProfileMetrics
from bayplan.observe.scheduler_metrics import SchedulerMetrics
from bayplan.observe.series import Distribution
from bayplan.observe.times import (
    BINDING,
    DECIDED,
    ENDED,
    FILTERED,
    NEVER,
    PRE_FILTERED,
    PRE_SCORED,
    PRE_SCORING,
    SCORED,
    STARTED,
    Times,
)

PROFILE = "default-scheduler"


def make_times(**moments: float) -> Times:
    """The times of an attempt that began at 100 s, with the elapsed seconds at each of `moments`."""
    positions = {
        "pre_filtered": PRE_FILTERED,
        "filtered": FILTERED,
        "pre_scoring": PRE_SCORING,
        "pre_scored": PRE_SCORED,
        "scored": SCORED,
        "decided": DECIDED,
        "binding": BINDING,
        "ended": ENDED,
    }
    times = NEVER.copy()
    times[STARTED] = 100.0
    for name, seconds in moments.items():
        times[positions[name]] = 100.0 + seconds
    return times


def make_metrics() -> tuple[SchedulerMetrics, ProfileMetrics]:
    metrics = SchedulerMetrics()
    return metrics, metrics.profile(PROFILE)


def point_sums(metrics: SchedulerMetrics) -> dict[tuple[str, str], float]:
    """Seconds at each extension point, by its name and status."""
    metrics.fold()
    found = metrics.point_duration.read()
    return {(point, status): round(seen.sum, 9) for (point, status, _), seen in found.items()}


ROAD = make_times(
    pre_filtered=1,
    filtered=3,
    pre_scoring=4,  # extenders ran between
    pre_scored=7,
    scored=11,
    decided=12,
    binding=20,
    ended=25,
)


def test_a_scheduled_pod_is_timed_at_every_step() -> None:
    metrics, profile = make_metrics()

    profile.scheduled(ROAD.copy(), 1, 0.5)

    assert point_sums(metrics) == {
        ("PreFilter", "Success"): 1,
        ("Filter", "Success"): 2,
        ("PreScore", "Success"): 3,
        ("Score", "Success"): 4,
        ("Bind", "Success"): 5,
    }
    assert metrics.algorithm.read().sum == 12
    assert metrics.attempt_duration.read()["scheduled", PROFILE].sum == 25
    assert metrics.schedule_attempts.read() == {("scheduled", PROFILE): 1}


def test_a_skipped_step_is_not_counted() -> None:
    metrics, profile = make_metrics()

    profile.scheduled(make_times(pre_filtered=1, filtered=3, decided=4, ended=5), 1, 0.0)

    assert point_sums(metrics) == {("PreFilter", "Success"): 1, ("Filter", "Success"): 2}


@pytest.mark.parametrize("result", [UNSCHEDULABLE, ERROR])
def test_a_failed_attempt_is_timed_but_no_pod_was_scheduled(result: str) -> None:
    metrics, profile = make_metrics()

    profile.failed(make_times(pre_filtered=1, filtered=3, decided=7, binding=8, ended=9), result)

    # Bind began but did not succeed: the caller that ran it records its status.
    assert point_sums(metrics) == {("PreFilter", "Success"): 1, ("Filter", "Success"): 2}
    assert metrics.algorithm.read().sum == 7
    assert metrics.schedule_attempts.read() == {(result, PROFILE): 1}
    assert metrics.pod_attempts.read().count == 0
    assert metrics.sli_duration.read() == {}


@pytest.mark.parametrize(
    ("attempts", "label"),
    [
        pytest.param(1, "1", id="the first attempt"),
        pytest.param(14, "14", id="the last that is shown alone"),
        pytest.param(15, "15+", id="many"),
        pytest.param(40, "15+", id="very many"),
    ],
)
def test_waiting_time_is_labelled_by_attempts(attempts: int, label: str) -> None:
    metrics, profile = make_metrics()

    profile.scheduled(ROAD.copy(), attempts, 12.5)
    metrics.fold()

    assert {values: seen.sum for values, seen in metrics.sli_duration.read().items()} == {
        (label,): 12.5
    }
    assert metrics.pod_attempts.read().sum == attempts


def test_a_pod_requeued_only_by_the_flush_is_counted() -> None:
    metrics, profile = make_metrics()

    profile.scheduled(ROAD.copy(), 2, 400.0, was_flushed=True)
    profile.scheduled(ROAD.copy(), 1, 0.0)

    assert metrics.after_flush.count == 1


def test_buffered_times_are_flushed_in_batches() -> None:
    metrics, profile = make_metrics()

    for _ in range(FOLD_AFTER + 5):
        profile.scheduled(ROAD.copy(), 1, 0.0)
        profile.failed(make_times(decided=1, ended=1), ERROR)

    folded = metrics.attempt_duration.counts()
    assert folded["scheduled", PROFILE] >= FOLD_AFTER
    metrics.fold()
    assert set(metrics.attempt_duration.counts().values()) == {FOLD_AFTER + 5}


def test_profiles_have_separate_series() -> None:
    metrics = SchedulerMetrics()

    metrics.profile("a").scheduled(ROAD.copy(), 1, 0.0)
    metrics.profile("b").failed(ROAD.copy(), UNSCHEDULABLE)
    metrics.fold()

    assert metrics.schedule_attempts.read() == {("scheduled", "a"): 1, ("unschedulable", "b"): 1}
    assert metrics.profile("a") is metrics.profile("a")


def test_an_extension_point_is_timed_by_status() -> None:
    metrics, profile = make_metrics()
    reserve = profile.point("Reserve")

    reserve.success.observe(1)
    reserve.ended("Unschedulable", 2)
    profile.idle(["Reserve", "Permit"]).count += 1

    found = metrics.point_duration.read()
    assert found["Reserve", "Success", PROFILE].count == 2
    assert found["Reserve", "Unschedulable", PROFILE] == Distribution([0] * 12 + [1], 2.0)
    assert found["Permit", "Success", PROFILE] == Distribution([1] + [0] * 12, 0.0)


def test_an_idle_pre_flight_is_a_skip() -> None:
    metrics, profile = make_metrics()

    profile.idle(["PreBindPreFlight", "PreBind"]).count += 1

    assert metrics.point_duration.counts() == {
        ("PreBindPreFlight", "Skip", PROFILE): 1,
        ("PreBind", "Success", PROFILE): 1,
    }


def test_a_pod_placed_without_running_plugins_counts_zero_durations() -> None:
    metrics, profile = make_metrics()

    profile.scheduled(make_times(decided=1, binding=2, ended=3), 1, 0.0)
    profile.scheduled(ROAD.copy(), 1, 0.0)

    assert point_sums(metrics)["Filter", "Success"] == 2
    counts = metrics.point_duration.counts()
    asked = ("PreFilter", "Filter", "PreScore", "Score")
    assert {counts[point, "Success", PROFILE] for point in asked} == {2}


@pytest.mark.parametrize(
    ("times", "errors"),
    [
        pytest.param(make_times(), {("PreFilter", "Error"): 9}, id="in the first step"),
        pytest.param(make_times(pre_filtered=2), {("Filter", "Error"): 7}, id="in the second"),
        pytest.param(
            make_times(pre_filtered=2, filtered=3), {}, id="between steps, as in PostFilter"
        ),
        pytest.param(
            make_times(pre_filtered=2, filtered=3, pre_scoring=4, pre_scored=5),
            {("Score", "Error"): 4},
            id="in the last",
        ),
        pytest.param(ROAD.copy(), {}, id="not on the way to a decision"),
    ],
)
def test_a_plugin_that_fails_ends_its_extension_point(
    times: Times, errors: dict[tuple[str, str], float]
) -> None:
    metrics, profile = make_metrics()

    profile.broke_off(times, 109.0)

    assert point_sums(metrics) == errors


def test_plugins_that_run_for_the_same_pods_are_counted_together() -> None:
    metrics, profile = make_metrics()

    profile.evaluations({"PreFilter": ["A"], "Filter": ["A", "B"]}).count += 2
    profile.evaluations({"Filter": ["B"]}).count += 1

    assert metrics.plugin_evaluation.read() == {
        ("A", "PreFilter", PROFILE): 2,
        ("A", "Filter", PROFILE): 2,
        ("B", "Filter", PROFILE): 3,
    }


def test_a_new_attempt_has_no_timestamps() -> None:
    assert all(math.isnan(moment) for moment in NEVER)
    assert NEVER.copy() is not NEVER
