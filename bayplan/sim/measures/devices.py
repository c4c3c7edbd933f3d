"""Devices: how many devices each driver offers, and how many of them claims have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...api.devices import ResourceSlice
from ...api.dra import ResourceClaim


class DriverDevices(NamedTuple):
    """The devices of a driver."""

    offered: int
    allocated: int


def count_devices(
    slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]
) -> dict[str, DriverDevices]:
    """The devices by driver. The newest generation of a pool counts; devices for admin access are not in use."""
    newest: dict[tuple[str, str], int] = {}
    offered: Counter[tuple[str, str, int]] = Counter()
    for each in slices:
        spec = each.spec
        pool = (spec.driver, spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), spec.pool.generation)
        offered[(*pool, spec.pool.generation)] += len(spec.devices or ())
    used = {
        (result.driver, result.pool, result.device)
        for claim in claims
        if claim.allocation is not None
        for result in claim.allocation.devices.results or ()
        if not result.admin_access
    }
    total: Counter[str] = Counter()
    for (driver, name), generation in newest.items():
        total[driver] += offered[(driver, name, generation)]
    taken = Counter(driver for driver, _, _ in used)
    return {driver: DriverDevices(count, taken[driver]) for driver, count in total.items()}


def measure_devices(devices: Mapping[str, DriverDevices]) -> dict[str, float]:
    """The measures of each driver's devices, which are named like a resource: `gpu.example.com/devicesUtilisation`."""
    found: dict[str, float] = {}
    for driver, use in devices.items():
        found[f"{driver}/devicesAllocated"] = use.allocated
        found[f"{driver}/devicesUtilisation"] = use.allocated / use.offered if use.offered else 0.0
    return found
