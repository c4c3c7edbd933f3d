"""CronJobs: their next run in virtual time, their policies, and the remarks."""

from typing import Any

import pytest

from bayplan.answers.what_if import Cordon, ask_what_if
from bayplan.errors import DecodeError
from bayplan.sim import Simulation, SimulationReport
from bayplan.testing.builders import make_node, make_object

HOUR = 3600.0


def make_template(duration: str = "60s") -> Any:
    resources = {"requests": {"cpu": "1"}}
    return {
        "metadata": {"annotations": {"bayplan.dev/duration": duration}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


def make_cron_job(schedule: str = "0 * * * *", duration: str = "60s", **spec: Any) -> Any:
    job: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"parallelism": 2, "completions": 2},
    }
    job["spec"]["template"] = make_template(duration)
    metadata = spec.pop("metadata", {})
    status = spec.pop("status", {})
    fields = {"schedule": schedule, "jobTemplate": job, **spec}
    return make_object("CronJob", "c", metadata=metadata, spec=fields, status=status)


def run(*objects: Any, until_s: float | None = None) -> SimulationReport:
    return Simulation([make_node("n", cpu="64"), *objects]).run(until_s=until_s)


def times(report: SimulationReport) -> list[float]:
    return sorted(result.created_s for result in report.pods)


def test_the_pods_of_the_next_run_come_at_its_time_with_a_remark() -> None:
    report = run(make_cron_job())

    assert times(report) == [HOUR, HOUR]
    assert {result.pod.labels["job-name"] for result in report.pods} == {"c-15778140"}
    assert report.is_complete
    assert report.notices == ["cronjob default/c: next run at 2000-01-01T01:00:00Z, in 1h"]


def test_with_an_end_all_runs_until_then() -> None:
    report = run(make_cron_job(), until_s=3.5 * HOUR)

    assert times(report) == [HOUR, HOUR, 2 * HOUR, 2 * HOUR, 3 * HOUR, 3 * HOUR]


@pytest.mark.parametrize(
    ("spec", "remark"),
    [
        pytest.param({"suspend": True}, "suspended, does not run", id="suspended"),
        pytest.param(
            {"schedule": "0 0 30 2 *"}, "its schedule, 0 0 30 2 *, is never due", id="never due"
        ),
        pytest.param(
            {"schedule": "@monthly"},
            "next run at 2000-02-01T00:00:00Z, in 744h, not simulated without --until",
            id="far away",
        ),
    ],
)
def test_those_that_do_not_run_are_named(spec: Any, remark: str) -> None:
    report = run(make_cron_job(**spec))

    assert report.pods == []
    assert report.notices == [f"cronjob default/c: {remark}"]


def test_a_cron_job_that_comes_later_runs_after_that() -> None:
    late = make_cron_job(metadata={"annotations": {"bayplan.dev/created-at": "90m"}})

    report = run(late)

    assert times(report) == [2 * HOUR, 2 * HOUR]
    assert report.notices == ["cronjob default/c: next run at 2000-01-01T02:00:00Z, in 30m"]


def test_the_time_zone_counts() -> None:
    report = run(make_cron_job("0 9 * * *", timeZone="Asia/Tokyo"), until_s=24 * HOUR)

    assert times(report) == [
        24 * HOUR,
        24 * HOUR,
    ]  # 2000-01-01T00:00Z is 9:00 there, and has passed


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("Allow", [1.0, 2.0, 3.0], id="Allow: beside the one before"),
        pytest.param("Forbid", [1.0, 2.5], id="Forbid: when the one before has ended"),
        pytest.param("Replace", [1.0, 2.0, 3.0], id="Replace: instead of the one before"),
    ],
)
def test_a_run_that_takes_longer_than_the_schedule(policy: str, expected: list[float]) -> None:
    report = run(make_cron_job(duration="90m", concurrencyPolicy=policy), until_s=3 * HOUR)

    assert times(report) == [hour * HOUR for hour in expected for _ in range(2)]
    deleted = {result.deleted_s for result in report.pods} - {None}
    assert deleted == ({2 * HOUR + 30} if policy == "Replace" else set())


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [
        pytest.param(None, [0.0], id="a run that was missed is made up for"),
        pytest.param(60, [1800.0], id="unless it is too late for it"),
    ],
)
def test_missed_runs(deadline: int | None, expected: list[float]) -> None:
    later = make_object("Namespace", "x", metadata={"creationTimestamp": "2026-01-01T12:30:00Z"})
    old = {"creationTimestamp": "2026-01-01T09:30:00Z"}

    report = run(later, make_cron_job(metadata=old, startingDeadlineSeconds=deadline))

    assert times(report) == [seconds for seconds in expected for _ in range(2)]


def test_a_run_that_has_happened_is_not_repeated() -> None:
    later = make_object("Namespace", "x", metadata={"creationTimestamp": "2026-01-01T12:30:00Z"})

    report = run(later, make_cron_job(status={"lastScheduleTime": "2026-01-01T12:00:00Z"}))

    assert times(report) == [1800.0, 1800.0]


def test_a_question_has_no_run_and_says_so() -> None:
    answer = ask_what_if([make_node("n"), make_cron_job()], [Cordon(("n",))])

    assert answer.pods == []
    assert answer.settled.notices == [
        "cronjob default/c: next run at 2000-01-01T01:00:00Z, in 1h, not part of this question"
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"schedule": "0 25 * * *"},
            r"spec.schedule: end of range \(25\) above maximum \(23\): 25",
            id="hour",
        ),
        pytest.param(
            {"timeZone": "Mars/X"}, "spec.timeZone: expected the name of a time zone", id="zone"
        ),
    ],
)
def test_bad_schedules_are_errors(spec: Any, expected: str) -> None:
    with pytest.raises(DecodeError, match=expected):
        make_cron_job(**spec)
