"""Durations: seconds in the notation `1h30m`."""

import pytest

from bayplan.api.text.durations import format_duration, format_go_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
        ("100ms", 0.1),
        ("1m0.25s", 60.25),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "soon", "-5s", "1h 30m", "5 m", "s", "9" * 400 + "h"])
def test_invalid_texts_give_none(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "0.25s"),
        (59, "59s"),
        (60, "1m"),
        (90.5, "1m30.5s"),
        (3600, "1h"),
        (3605, "1h0m5s"),
        (93600, "26h"),
    ],
)
def test_durations_are_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1e-9, "1ns"),
        (0.0005, "500µs"),
        (0.0000015, "1.5µs"),
        (0.5, "500ms"),
        (12.3456789, "12.3456789s"),
        (1.5, "1.5s"),
        (30, "30s"),
        (90, "1m30s"),
        (900, "15m0s"),
        (3600, "1h0m0s"),
    ],
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert format_go_duration(seconds) == text
