"""Metric: a measure over several seeds: its mean with a confidence interval, and whether two differ.

Intervals are those of Student's t distribution with 95 percent. Two schedulers are compared in pairs: run by run with
the same seed, so that the effect of a seed on both does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, pi, sin, sqrt
from statistics import fmean, pstdev, stdev
from typing import Any

import msgspec

from ..plain_part import PlainPart
from .description import Measure, measure_of

CONFIDENCE = 0.95
ROUNDING = 1e-9
"""Tolerance for sums of floats; not a difference between schedulers."""


class Metric(msgspec.Struct, frozen=True):
    """One measure of a scheduler, over several seeds."""

    name: str
    values: tuple[float, ...]

    @property
    def measure(self) -> Measure:
        return measure_of(self.name)

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation over the runs."""
        return pstdev(self.values)

    @property
    def margin(self) -> float | None:
        """Half of the length of the confidence interval of the mean; None with one run."""
        return margin_of(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.measure.to_dict(),
            "mean": round(self.mean, 6),
            "deviation": round(self.deviation, 6),
            "interval": interval(self.mean, self.margin),
            "values": [round(value, 6) for value in self.values],
        }


class PairedDifference(PlainPart, msgspec.Struct, frozen=True):
    """The difference of a measure between two schedulers, run by run with the same seeds."""

    PLAIN = "mean~ interval significant=is_significant comparable=is_comparable"

    name: str
    mean: float
    margin: float | None
    """Half of the length of its confidence interval; None with one run."""
    is_comparable: bool = True
    """Whether the measure means the same for both."""

    @staticmethod
    def of(metric: Metric, first: Metric, same_filters: bool = True) -> PairedDifference:
        """The difference of `metric` from `first`, of schedulers with the same filters or not."""
        pairs = zip(metric.values, first.values, strict=True)
        differences = [mine - other for mine, other in pairs]
        is_comparable = same_filters or metric.measure.is_comparable
        return PairedDifference(
            metric.name, fmean(differences), margin_of(differences), is_comparable
        )

    @property
    def is_significant(self) -> bool:
        """Whether the measure means the same, and the interval does not contain 0."""
        is_apart = self.margin is not None and abs(self.mean) > self.margin + ROUNDING
        return is_apart and self.is_comparable

    @property
    def mark(self) -> str:
        """The mark in a table: a star where it is significant, a dagger where the measure means something else."""
        return "*" if self.is_significant else "" if self.is_comparable else "†"

    @property
    def gain(self) -> float:
        """The difference, positive where it is better and negative where it is worse; 0 where it depends on the aim."""
        return measure_of(self.name).direction * self.mean

    @property
    def interval(self) -> list[float] | None:
        return interval(self.mean, self.margin)


def other_filters(mine: Sequence[str], first: Sequence[str]) -> str:
    """The filters in which two schedulers differ, in words; empty when they are the same, or not known of one."""
    if not mine or not first:
        return ""
    more, less = sorted({*mine} - {*first}), sorted({*first} - {*mine})
    texts = (("with", more), ("without", less))
    return " and ".join(f"{word} {', '.join(names)}" for word, names in texts if names)


def interval(mean: float, margin: float | None) -> list[float] | None:
    """Both ends of an interval around a mean, to the millionth."""
    return None if margin is None else [round(mean - margin, 6), round(mean + margin, 6)]


def margin_of(values: Sequence[float]) -> float | None:
    """Half of the length of the confidence interval of the mean; None with one value."""
    if len(values) < 2:
        return None
    return t_quantile(len(values) - 1) * stdev(values) / sqrt(len(values))


@lru_cache
def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t within which a variable of Student's distribution lies with this probability, to both sides of 0."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        below = t_probability(middle, freedom) < confidence
        low, high = (middle, high) if below else (low, middle)
    return high


def t_probability(t: float, freedom: int) -> float:
    """The probability that a variable of Student's distribution lies between -t and t; exact for whole `freedom`."""
    angle = atan(t / sqrt(freedom))
    is_odd = freedom % 2
    term = cos(angle) if is_odd else 1.0
    total = 0.0
    for i in range(1 + is_odd, freedom, 2):
        total += term
        term *= cos(angle) ** 2 * i / (i + 1)
    if not is_odd:
        return sin(angle) * total
    return 2 / pi * (angle + sin(angle) * total)
