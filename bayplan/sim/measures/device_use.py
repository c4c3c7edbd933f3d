"""Device use: how many devices each driver offers, and how many claims have, by driver and by device class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...api.devices import ResourceSlice
from ...api.dra import ResourceClaim

CLASS = "deviceClass/"
"""Before the name of a class, which may be that of a driver."""


class DriverDevices(NamedTuple):
    """The devices of a driver or of a device class."""

    offered: int | None
    """None for a class: its selectors pick the devices that belong to it."""
    allocated: int


def count_devices(
    slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]
) -> dict[str, DriverDevices]:
    """The devices by driver, and by class as requests name it.

    The newest generation of a pool counts; devices for admin access are not in use.
    """
    newest: dict[tuple[str, str], int] = {}
    offered: Counter[tuple[str, str, int]] = Counter()
    for each in slices:
        spec = each.spec
        pool = (spec.driver, spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), spec.pool.generation)
        offered[(*pool, spec.pool.generation)] += len(spec.devices or ())
    used: dict[tuple[str, str, str], str] = {}
    for claim in claims:
        results = claim.allocation.devices.results if claim.allocation is not None else None
        for result in results or ():
            if not result.admin_access:
                used[result.driver, result.pool, result.device] = _class_of(claim, result.request)
    total: Counter[str] = Counter()
    for (driver, name), generation in newest.items():
        total[driver] += offered[(driver, name, generation)]
    taken = Counter(driver for driver, _, _ in used)
    by_class = Counter(name for name in used.values() if name)
    return {
        **{driver: DriverDevices(count, taken[driver]) for driver, count in total.items()},
        **{f"{CLASS}{name}": DriverDevices(None, count) for name, count in by_class.items()},
    }


def _class_of(claim: ResourceClaim, request: str) -> str:
    """The device class of a request, or of one of its alternatives: `request/alternative`; empty when it is unknown."""
    name, _, alternative = request.partition("/")
    for each in claim.spec.devices.requests or ():
        if each.name != name:
            continue
        if each.exactly is not None:
            return each.exactly.device_class_name
        for sub in each.first_available or ():
            if sub.name == alternative:
                return sub.device_class_name
    return ""


def measure_devices(devices: Mapping[str, DriverDevices]) -> dict[str, float]:
    """The measures of devices, which are named like a resource: `gpu.example.com/devicesUtilisation` by driver.

    By class: how many are allocated, `deviceClass/gpu.example.com/devicesAllocated`.
    """
    found: dict[str, float] = {}
    for driver, use in devices.items():
        found[f"{driver}/devicesAllocated"] = use.allocated
        if use.offered is not None:
            share = use.allocated / use.offered if use.offered else 0.0
            found[f"{driver}/devicesUtilisation"] = share
    return found
