"""Run measures: all measures of a finished simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...table import Ints
from .amounts import NodeAmounts
from .arrivals import at_full_demand
from .description import measure_of
from .device_use import measure_devices
from .fragmentation import RequestMix, free_and_lost, stranded_share, typical_request
from .group_measures import measure_groups
from .over_time import RunMoves
from .run_record import RunRecord
from .waits import distribution, latencies, slowdowns


def measure_run(
    report: RunRecord,
    mix: RequestMix | None = None,
    typical: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """The measures of a finished run by name; `measure_of` describes each.

    `mix` and `typical` say by which tasks fragmentation is measured; without them by the pods of the run.
    """
    pods = report.pods
    mix = RequestMix.of(each.pod for each in pods) if mix is None else mix
    typical = typical_request(each.pod for each in pods) if typical is None else typical
    moves = RunMoves.of(report.history.moves())
    amounts = NodeAmounts.of_uses(report.nodes)
    nodes_used = moves.nodes_used()
    placed = sum(result.is_placed for result in pods)
    attempts = sum(result.attempts for result in pods)
    used = int(nodes_used[-1]) if len(nodes_used) else 0
    found: dict[str, float] = {
        "placed": placed,
        "pending": len(pods) - placed,
        "preempted": len(report.preempted),
        "emptyNodes": len(amounts) - used,
        "nodesUsed": used,
        "peakNodesUsed": moves.peak(nodes_used),
        "attempts": attempts,
    }
    for name in moves.resources[:-1]:
        found |= _measure_resource(name, moves, amounts, report.time_s)
        share = at_full_demand(pods, report.nodes, name)
        found |= {} if share is None else {f"{name}AtFullDemand": share}
        found |= _measure_fragments(name, amounts, mix, report.parts.get(name))
    found |= measure_devices(report.devices)
    found["fragmentation"] = stranded_share(amounts, typical)
    if report.groups:
        found |= measure_groups(report)
    found |= distribution("Latency", latencies(pods))
    if any(result.finished_s is not None for result in pods):
        found |= distribution("Slowdown", slowdowns(pods))
    found["secondsPerDecision"] = report.seconds / attempts if attempts else 0.0
    return found


def measure_rows(found: Mapping[str, float]) -> list[dict[str, Any]]:
    """One row per measure: name, value, unit and which direction is better."""
    return [
        {**measure_of(name).to_dict(), "value": round(value, 6)} for name, value in found.items()
    ]


def _measure_resource(
    name: str, moves: RunMoves, amounts: NodeAmounts, end_s: float
) -> dict[str, float]:
    """Use of one resource at the end, and over time where time passed."""
    shares = amounts.shares(name)
    requested = moves.share(moves.used + moves.waiting, name)
    found = {
        f"{name}Allocated": int(amounts.used[name].sum()),
        f"{name}Utilisation": amounts.total_share(name),
        f"{name}Requested": float(requested[-1]) if len(requested) else 0.0,
        f"{name}Spread": float(shares.std()) if len(shares) else 0.0,
    }
    if end_s and len(requested):
        in_use = moves.share(moves.used, name)
        lengths = np.diff(np.append(moves.times_s, end_s))
        found[f"{name}MeanUtilisation"] = float((in_use * lengths).sum()) / end_s
        found[f"{name}PeakUtilisation"] = moves.peak(in_use)
        found[f"{name}PeakRequested"] = moves.peak(requested)
    return found


def _measure_fragments(
    name: str, amounts: NodeAmounts, mix: RequestMix, parts: Ints | None
) -> dict[str, float]:
    """What is lost of one resource, and what is of use."""
    free, lost = free_and_lost(amounts, mix, name, parts)
    offered = int(amounts.offered[name].sum())
    return {
        f"{name}Fragmentation": lost / free if free else 0.0,
        f"{name}Usable": (free - lost) / offered if offered else 0.0,
    }
