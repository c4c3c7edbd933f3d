"""Cron: valid and invalid schedules of a CronJob, and their times."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bayplan.api.text.cron import parse_cron

NEW_YORK = ZoneInfo("America/New_York")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "since", "expected"),
    [
        pytest.param(
            "*/15 * * * *", "2026-01-01T00:00:00", "2026-01-01T00:15:00", id="strictly later"
        ),
        pytest.param(
            "*/15 * * * *", "2026-01-01T00:14:59", "2026-01-01T00:15:00", id="a second before"
        ),
        pytest.param(
            "30 8-18/5 * * *", "2026-01-01T09:00:00", "2026-01-01T13:30:00", id="range with step"
        ),
        pytest.param(
            "5/20 * * * *", "2026-01-01T00:26:00", "2026-01-01T00:45:00", id="number with step"
        ),
        pytest.param(
            "0 0 31 * *", "2026-01-31T00:00:00", "2026-03-31T00:00:00", id="months without the day"
        ),
        pytest.param("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00", id="leap year"),
        pytest.param("0 0 * jan-mar MON", "2026-03-31T00:00:00", "2027-01-04T00:00:00", id="names"),
        pytest.param(
            "0 0 13 * 5", "2026-01-01T00:00:00", "2026-01-02T00:00:00", id="either of two days"
        ),
        pytest.param(
            "0 0 */2 * 5",
            "2026-01-01T00:00:00",
            "2026-01-02T00:00:00",
            id="a star with a step is not a star",
        ),
        pytest.param("0 0 ? * 0", "2026-01-01T00:00:00", "2026-01-04T00:00:00", id="question mark"),
        pytest.param("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00", id="a word"),
        pytest.param("@every 90m", "2026-01-01T00:00:30", "2026-01-01T01:30:30", id="every"),
    ],
)
def test_next_time(schedule: str, since: str, expected: str) -> None:
    assert parse_cron(schedule).next_after(at(since)) == at(expected)


def test_a_schedule_that_is_never_due() -> None:
    assert parse_cron("0 0 30 2 *").next_after(at("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    ("schedule", "since", "expected"),
    [
        pytest.param("0 9 * * *", "2026-01-01T00:00:00", ["2026-01-01T14:00:00"], id="winter"),
        pytest.param("0 9 * * *", "2026-07-01T00:00:00", ["2026-07-01T13:00:00"], id="summer"),
        pytest.param(
            "30 2 * * *",
            "2026-03-08T00:00:00",
            ["2026-03-09T06:30:00"],
            id="an hour that is left out",
        ),
        pytest.param(
            "30 1 * * *",
            "2026-11-01T00:00:00",
            ["2026-11-01T05:30:00", "2026-11-01T06:30:00"],
            id="an hour that comes twice",
        ),
    ],
)
def test_time_zones(schedule: str, since: str, expected: list[str]) -> None:
    found, moment = [], at(since)
    for _ in expected:
        following = parse_cron(schedule).next_after(moment, NEW_YORK)
        assert following is not None
        found.append(following)
        moment = following

    assert found == [at(text) for text in expected]


@pytest.mark.parametrize(
    ("schedule", "since", "expected"),
    [
        pytest.param(
            "0 * * * *", "2026-01-01T00:30:00", "2026-01-05T12:00:00", id="the last of many"
        ),
        pytest.param("0 0 1 * *", "2025-06-15T00:00:00", "2026-01-01T00:00:00", id="days ago"),
        pytest.param("0 0 1 7 *", "2023-01-01T00:00:00", "2025-07-01T00:00:00", id="months ago"),
        pytest.param("0 0 1 7 *", "2025-08-01T00:00:00", None, id="none since then"),
    ],
)
def test_last_time(schedule: str, since: str, expected: str | None) -> None:
    found = parse_cron(schedule).last_until(at("2026-01-05T12:10:00"), at(since))

    assert found == (at(expected) if expected is not None else None)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("", "expected exactly 5 fields, found 0: []"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 0 * * * *", "expected exactly 5 fields, found 6: [0 0 * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("0 0 L * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("TZ=UTC 0 0 * * *", "expected no time zone, which is spec.timeZone"),
    ],
)
def test_a_schedule_that_kubernetes_does_not_take_is_refused(schedule: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_cron(schedule)


def test_all_times_of_a_year_are_found() -> None:
    schedule, moment, count = parse_cron("0 */6 1,15 * *"), at("2026-01-01T00:00:00"), 0
    while (moment := schedule.next_after(moment) or at("2030-01-01T00:00:00")) < at(
        "2027-01-01T00:00:00"
    ):
        count += 1

    assert count == 12 * 2 * 4 - 1
    assert moment - at("2027-01-01T00:00:00") == timedelta(0)
