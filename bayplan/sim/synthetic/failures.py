"""Failures: nodes that fail by their mean time between failures, and zones that fail as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from ...api.node import ZONE
from ...api.text.durations import format_duration


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
