"""Packing: whether pods fit on a fleet when they are packed by size, as a quick test before a simulation.

The scheduler spreads pods and keeps more rules, so a fleet that fails here will hardly pass a simulation.
"""

from __future__ import annotations

import numpy as np

from .fleet import Fleet
from .probing import Probe


def can_pack(fleet: Fleet, probe: Probe) -> bool:
    """Whether first fit in decreasing size places every pod on the nodes."""
    counts = fleet.by_option()
    numbers = [number for number in sorted(counts) for _ in range(counts[number])]
    if not numbers:
        return False
    options = [probe.options[number] for number in numbers]
    room = np.array([one.free for one in options])
    accepts = np.array([one.accepts for one in options])
    caps = np.array([one.caps for one in options])
    size = (probe.requests / np.maximum(room.max(axis=0), 1)).max(axis=1)
    # Nodes that few classes can use are filled first.
    order = np.lexsort((room[:, -1], accepts.sum(axis=1)))
    demand = probe.demand
    for number in np.argsort(-size, kind="stable"):
        need = probe.requests[number]
        used = need > 0
        fits = np.minimum((room[:, used] // need[used]).min(axis=1), caps[:, number])
        fits = np.where(accepts[:, number], fits, 0)[order]
        before = np.cumsum(fits) - fits
        placed = np.clip(demand[number] - before, 0, fits)
        if placed.sum() < demand[number]:
            return False
        room[order] -= placed[:, None] * need
    return True
