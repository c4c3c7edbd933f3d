"""Clock: real and manual time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from bayplan.clock import FastClock, ManualClock, SystemClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(NOON)

    assert clock.now() == clock.now() == NOON
    assert clock.monotonic() == clock.monotonic() == 0.0


def test_manual_clock_advances_both_of_its_times() -> None:
    clock = ManualClock(NOON)

    clock.advance(1.5)
    clock.set(NOON + timedelta(seconds=10))

    assert clock.now() == NOON + timedelta(seconds=10)
    assert clock.timestamp() == NOON.timestamp() + 10
    assert clock.monotonic() == 10.0


def test_manual_clock_converts_to_utc() -> None:
    clock = ManualClock(datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2))))

    assert clock.now() == NOON
    assert clock.now().tzinfo is UTC


def test_manual_clock_refuses_to_go_back() -> None:
    clock = ManualClock(NOON)

    with pytest.raises(ValueError, match="step forward"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="or later"):
        clock.set(NOON - timedelta(seconds=1))


def test_manual_clock_refuses_a_time_without_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        ManualClock(datetime(2026, 3, 1))


def test_system_clock_is_utc_and_never_goes_back() -> None:
    clock = SystemClock()
    before = clock.monotonic()

    assert clock.now().tzinfo is UTC
    assert clock.timestamp() == pytest.approx(clock.now().timestamp(), abs=60)
    assert clock.monotonic() >= before


def test_a_fast_clock_runs_ahead_of_the_machine() -> None:
    machine = ManualClock(NOON)
    machine.advance(5)
    clock = FastClock(60, machine)

    machine.advance(2)

    assert clock.now() == NOON + timedelta(seconds=5 + 120)
    assert clock.monotonic() == 120
    assert clock.wait_s(180) == 1, "a minute of this clock is a second of the machine"
    assert clock.wait_s(60) == 0


def test_a_fast_clock_needs_a_speed() -> None:
    with pytest.raises(ValueError, match="speed above 0; got 0"):
        FastClock(0)
