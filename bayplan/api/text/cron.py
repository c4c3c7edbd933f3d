"""Cron: schedules such as `*/15 8-18 * * mon-fri`, and when they are due.

Mirrors ParseStandard and Next of github.com/robfig/cron/v3, which define the schedules of a CronJob: five fields or a
word; no seconds, no 7 for Sunday, no `L`, `W` or `#`. Where the clocks of a time zone go back, a time comes twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from .durations import parse_duration

YEARS = 5
"""A schedule without a due time within this period is never due."""
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: i for i, name in enumerate(_NAMES, start=1)}
_DAYS = {name: i for i, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY = "@every "
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


class _Bounds(NamedTuple):
    name: str
    least: int
    most: int
    words: Mapping[str, int]


_BOUNDS = (
    _Bounds("minute", 0, 59, {}),
    _Bounds("hour", 0, 23, {}),
    _Bounds("day of month", 1, 31, {}),
    _Bounds("month", 1, 12, _MONTHS),
    _Bounds("day of week", 0, 6, _DAYS),
)


class _Field(NamedTuple):
    values: frozenset[int]
    is_star: bool


class CronSchedule(NamedTuple):
    """The times of a schedule; with `every_s`, all times of that distance."""

    fields: tuple[_Field, ...] = ()
    every_s: float = 0

    def next_after(self, moment: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The first time after `moment`, in UTC; None when there is none within five years."""
        if self.every_s:
            return moment.replace(microsecond=0) + timedelta(seconds=self.every_s)
        minutes, hours, _, months, _ = self.fields
        found = moment.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        end = found + timedelta(days=366 * YEARS)
        while found < end:
            local = found.astimezone(zone)
            if local.month not in months.values:
                later = (local.replace(day=1) + 32 * _DAY).replace(day=1)
                found = _midnight(later, found)
            elif not self._is_day(local):
                found = _midnight(local + _DAY, found)
            elif local.hour not in hours.values:
                found += (60 - local.minute) * _MINUTE
            elif local.minute not in minutes.values:
                found += _MINUTE
            else:
                return found
        return None

    def last_until(self, moment: datetime, since: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The last time after `since` that is not after `moment`; None when there is none."""
        for days in (1, 32, 366 * YEARS):
            found, due = None, max(since, moment - timedelta(days=days))
            while (following := self.next_after(due, zone)) is not None and following <= moment:
                found = due = following
            if found is not None or since >= moment - timedelta(days=days):
                return found
        return None

    def _is_day(self, local: datetime) -> bool:
        """Whether the day of the month and the day of the week match; one of them is enough if neither is a star."""
        days, weekdays = self.fields[2], self.fields[4]
        is_day = local.day in days.values
        is_weekday = (local.weekday() + 1) % 7 in weekdays.values
        if days.is_star or weekdays.is_star:
            return is_day and is_weekday
        return is_day or is_weekday


def _midnight(local: datetime, before: datetime) -> datetime:
    """The beginning of a day, which is later than `before`."""
    found = local.replace(hour=0, minute=0, fold=0).astimezone(UTC)
    return max(found, before + _MINUTE)


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> CronSchedule:
    """Parse a schedule; raises ValueError with the problem if a CronJob may not have it."""
    text = text.strip()
    if text.startswith(EVERY):
        seconds = parse_duration(text.removeprefix(EVERY))
        if seconds is None:
            given = text.removeprefix(EVERY)
            raise ValueError(f'failed to parse duration {text}: time: invalid duration "{given}"')
        return CronSchedule(every_s=max(int(seconds), 1))
    if text.startswith("@") and text not in _WORDS:
        raise ValueError(f"unrecognized descriptor: {text}")
    parts = _WORDS.get(text, text).split()
    if "TZ=" in text:
        raise ValueError(f'expected no time zone, which is spec.timeZone; got "{text}"')
    if len(parts) != len(_BOUNDS):
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    return CronSchedule(tuple(map(_field, parts, _BOUNDS)))


def _field(text: str, bounds: _Bounds) -> _Field:
    values: set[int] = set()
    is_star = False
    for part in text.split(","):
        if part:
            found, star = _range(part, bounds)
            values |= found
            is_star |= star
    return _Field(frozenset(values), is_star)


def _range(text: str, bounds: _Bounds) -> tuple[set[int], bool]:
    """The values of `5`, `1-5`, `*`, `*/2`, `1-5/2` or `5/2`, and whether it stands for all."""
    span, *steps = text.split("/")
    low, *high = span.split("-")
    if len(high) > 1:
        raise ValueError(f"too many hyphens: {text}")
    is_star = low in ("*", "?")
    first = bounds.least if is_star else _number(low, bounds.words)
    last = bounds.most if is_star else _number(high[0], bounds.words) if high else first
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not high:
        last = bounds.most
    if first < bounds.least:
        raise ValueError(f"beginning of range ({first}) below minimum ({bounds.least}): {text}")
    if last > bounds.most:
        raise ValueError(f"end of range ({last}) above maximum ({bounds.most}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")
    return set(range(first, last + 1, step)), is_star and step == 1


def _number(text: str, words: Mapping[str, int]) -> int:
    named = words.get(text.lower())
    if named is not None:
        return named
    if not (text.isascii() and text.isdecimal()):
        problem = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {problem}")
    return int(text)
