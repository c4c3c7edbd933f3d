import math

import pytest

from mooring.observe import ERROR, UNSCHEDULABLE, ProfileMetrics, SchedulerMetrics
from mooring.observe.profile_metrics import FOLD_AFTER
from mooring.observe.series import Distribution
from mooring.observe.times import (
    BINDING,
    DECIDED,
    ENDED,
    FILTERED,
    NEVER,
    PRE_FILTERED,
    PRE_SCORED,
    SCORED,
    STARTED,
    Times,
)

PROFILE = "default-scheduler"


def make_times(**moments: float) -> Times:
    """The times of an attempt that began at 100 s and was so many seconds under way at each of `moments`."""
    positions = {
        "pre_filtered": PRE_FILTERED,
        "filtered": FILTERED,
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
    pre_filtered=1, filtered=3, pre_scored=6, scored=10, decided=11, binding=20, ended=25
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
    assert metrics.algorithm.read().sum == 11
    assert metrics.attempt_duration.read()["scheduled", PROFILE].sum == 25
    assert metrics.schedule_attempts.read() == {("scheduled", PROFILE): 1}


def test_a_step_that_did_not_happen_is_not_counted() -> None:
    metrics, profile = make_metrics()

    profile.scheduled(make_times(pre_filtered=1, filtered=3, decided=4, ended=5), 1, 0.0)

    assert point_sums(metrics) == {("PreFilter", "Success"): 1, ("Filter", "Success"): 2}


@pytest.mark.parametrize("result", [UNSCHEDULABLE, ERROR])
def test_a_failed_attempt_is_timed_but_no_pod_was_scheduled(result: str) -> None:
    metrics, profile = make_metrics()

    profile.failed(make_times(pre_filtered=1, filtered=3, decided=7, binding=8, ended=9), result)

    # Bind began but did not succeed: whoever ran it says what it came to.
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
def test_waiting_is_shown_by_attempts(attempts: int, label: str) -> None:
    metrics, profile = make_metrics()

    profile.scheduled(ROAD.copy(), attempts, 12.5)
    metrics.fold()

    assert {values: seen.sum for values, seen in metrics.sli_duration.read().items()} == {
        (label,): 12.5
    }
    assert metrics.pod_attempts.read().sum == attempts


def test_a_pod_that_nobody_woke_is_counted() -> None:
    metrics, profile = make_metrics()

    profile.scheduled(ROAD.copy(), 2, 400.0, was_flushed=True)
    profile.scheduled(ROAD.copy(), 1, 0.0)

    assert metrics.after_flush.count == 1


def test_times_are_folded_now_and_then() -> None:
    metrics, profile = make_metrics()

    for _ in range(FOLD_AFTER + 5):
        profile.scheduled(ROAD.copy(), 1, 0.0)
        profile.failed(make_times(decided=1, ended=1), ERROR)

    folded = metrics.attempt_duration.counts()
    assert folded["scheduled", PROFILE] >= FOLD_AFTER
    metrics.fold()
    assert set(metrics.attempt_duration.counts().values()) == {FOLD_AFTER + 5}


def test_profiles_are_told_apart() -> None:
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


def test_plugins_with_a_say_about_the_same_pods_are_counted_together() -> None:
    metrics, profile = make_metrics()

    profile.evaluations({"PreFilter": ["A"], "Filter": ["A", "B"]}).count += 2
    profile.evaluations({"Filter": ["B"]}).count += 1

    assert metrics.plugin_evaluation.read() == {
        ("A", "PreFilter", PROFILE): 2,
        ("A", "Filter", PROFILE): 2,
        ("B", "Filter", PROFILE): 3,
    }


def test_an_attempt_begins_with_no_moment_at_all() -> None:
    assert all(math.isnan(moment) for moment in NEVER)
    assert NEVER.copy() is not NEVER
