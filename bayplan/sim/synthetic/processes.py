"""Processes: when jobs arrive, by a Poisson process, the time of day and bursts, and when nodes and zones fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from math import cos, pi
from random import Random
from typing import Any

import msgspec

from ...api.node import ZONE
from ...api.text.durations import format_duration
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
    """Mean number of jobs per hour, without bursts; with a curve it depends on the time of day, as bursts do."""

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


class FailureRate(msgspec.Struct, frozen=True):
    """Exponential times: of work between repair and failure, and of repair."""

    mtbf_s: float
    repair_s: float

    def outages(self, until_s: float, random: Random) -> Iterator[tuple[float, float]]:
        """The beginning and the end of each outage that begins before `until_s`."""
        at_s = random.expovariate(1 / self.mtbf_s)
        while at_s < until_s:
            back_s = at_s + random.expovariate(1 / self.repair_s)
            yield at_s, back_s
            at_s = back_s + random.expovariate(1 / self.mtbf_s)


def failure_events(
    nodes: Sequence[Mapping[str, Any]],
    rates: tuple[FailureRate | None, FailureRate | None],
    until_s: float,
    random: Random,
) -> list[dict[str, Any]]:
    """Events of a Timeline in which nodes go and come back; `rates` are those of a node and of a zone.

    A node is away while it or its zone is; its pods are gone, and it comes back empty.
    """
    of_nodes, of_zones = rates
    zones = dict.fromkeys(node["metadata"]["labels"].get(ZONE, "") for node in nodes)
    by_zone = {
        zone: list(of_zones.outages(until_s, random)) if of_zones is not None and zone else []
        for zone in zones
    }
    events: list[tuple[float, dict[str, Any]]] = []
    for node in nodes:
        own = [] if of_nodes is None else list(of_nodes.outages(until_s, random))
        zone = node["metadata"]["labels"].get(ZONE, "")
        for begin_s, end_s in joined([*own, *by_zone[zone]]):
            name = node["metadata"]["name"]
            gone = {"at": format_duration(begin_s), "remove": [f"node/{name}"]}
            events.append((begin_s, gone))
            events.append((end_s, {"at": format_duration(end_s), "add": [node]}))
    return [event for _, event in sorted(events, key=lambda each: each[0])]


def joined(outages: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The outages in order, those that overlap or are less than a second apart as one."""
    found: list[tuple[float, float]] = []
    for begin_s, end_s in sorted(outages):
        end_s = max(end_s, begin_s + 1)
        if found and begin_s < found[-1][1] + 1:
            found[-1] = (found[-1][0], max(end_s, found[-1][1]))
        else:
            found.append((begin_s, end_s))
    return found
