"""Durations: seconds in the notation `90s`, `5m`, `1h30m`.

The form is that of Go's time.ParseDuration, and of the durations in Kubernetes configurations; days
(`d`) are accepted, too.
"""

from __future__ import annotations

import re

_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)")
_WHOLE = re.compile(f"0|(?:{_PART.pattern})+")
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
}
LONGEST_S = 1000 * 365 * 86400.0
EXPECTED = "expected a duration such as 90s, 5m or 1h30m"


def parse_duration(text: str) -> float | None:
    """The duration in seconds, to the microsecond; None when the text is no duration, or out of
    range."""
    if not _WHOLE.fullmatch(text):
        return None
    seconds = _sum(text)
    return round(seconds, 6) if seconds <= LONGEST_S else None


def parse_go_duration(text: str) -> float | None:
    """The duration in seconds as Go reads it, which may be negative and has no days; None when it is no duration."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if "d" in unsigned or not _WHOLE.fullmatch(unsigned):
        return None
    seconds = _sum(unsigned)
    return -seconds if text[0] == "-" else seconds


def _sum(text: str) -> float:
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: float) -> str:
    """The duration in short form: `0s`, `1.5s`, `1m30s`, `1h30m`, `26h`."""
    whole, fraction = divmod(round(seconds, 3), 1)
    minutes, rest = divmod(int(whole), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h"] if hours else []
    if minutes or (hours and (rest or fraction)):
        parts.append(f"{minutes}m")
    if rest or fraction or not parts:
        parts.append(f"{rest + fraction:g}s" if fraction else f"{rest}s")
    return "".join(parts)


_NANO = 10**9
_SMALL_UNITS = ((10**6, "ms"), (10**3, "µs"), (1, "ns"))


def format_go_duration(seconds: float) -> str:
    """Return `seconds` as Go prints durations."""
    nanos = round(seconds * _NANO)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos == 0:
        return "0s"
    for size, unit in _SMALL_UNITS:
        if size <= nanos < _NANO:
            return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, nanos = divmod(nanos, 60 * _NANO)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}h" if hours else ""
    if hours or minutes:
        start += f"{minutes}m"
    return f"{sign}{start}{_decimal(nanos, _NANO)}s"


def _decimal(value: int, one: int) -> str:
    """Return `value / one` exactly, without trailing zeros."""
    whole, rest = divmod(value, one)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(one)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
