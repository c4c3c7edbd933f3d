"""Duration option: the duration after an option."""

from __future__ import annotations

from ...api.text.durations import EXPECTED, parse_duration
from ...errors import InputError


def parse_seconds(option: str, text: str) -> float:
    """The duration after `option`; raises InputError when it is invalid."""
    seconds = parse_duration(text)
    if seconds is None:
        raise InputError(f'{option}: {EXPECTED}; got "{text}"')
    return seconds


def seconds_if_given(option: str, text: str | None) -> float | None:
    """The same, or None for an option that is not given."""
    return None if text is None else parse_seconds(option, text)
