"""Processes: when jobs arrive: a Poisson process, by the time of day, and in bursts."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from math import cos, pi
from random import Random

import msgspec

from .distributions import draw_geometric

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class DayCurve(msgspec.Struct, frozen=True):
    """A rate that follows the day: 1 + swing at `peak_s`, 1 - swing half a period later."""

    swing: float
    peak_s: float = 0.0
    period_s: float = DAY_S

    def factor(self, at_s: float) -> float:
        """The rate at a time, as a multiple of its mean."""
        return 1 + self.swing * cos(2 * pi * (at_s - self.peak_s) / self.period_s)


class Bursts(msgspec.Struct, frozen=True):
    """Groups of jobs that arrive together; their size is geometric."""

    per_hour: float
    mean_jobs: float
    within_s: float


class ArrivalProcess(msgspec.Struct, frozen=True):
    """Jobs per hour in the mean, besides bursts; by the time of day if there is a curve, which bursts follow, too."""

    per_hour: float
    curve: DayCurve | None = None
    bursts: Bursts | None = None

    def times(self, until_s: float, random: Random) -> Iterator[float]:
        """The times of arrival before `until_s`, ascending."""
        single = self._poisson(self.per_hour, until_s, random)
        if self.bursts is None:
            return single
        return merge(list(single), sorted(self._in_bursts(self.bursts, until_s, random)))

    def _poisson(self, per_hour: float, until_s: float, random: Random) -> Iterator[float]:
        """A Poisson process, thinned by the curve."""
        curve = self.curve
        highest = 1.0 if curve is None else 1 + curve.swing
        rate = per_hour * highest / HOUR_S
        at_s = random.expovariate(rate) if rate else until_s
        while at_s < until_s:
            if curve is None or random.random() * highest < curve.factor(at_s):
                yield at_s
            at_s += random.expovariate(rate)

    def _in_bursts(self, bursts: Bursts, until_s: float, random: Random) -> Iterator[float]:
        for begin_s in list(self._poisson(bursts.per_hour, until_s, random)):
            for _ in range(int(draw_geometric(random, bursts.mean_jobs))):
                at_s = begin_s + random.random() * bursts.within_s
                if at_s < until_s:
                    yield at_s
