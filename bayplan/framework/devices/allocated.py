"""Allocated: the devices in use, the claims that use them, and the used parts of shared devices.

Mirrors pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...api.dra import AllocationResult, DeviceRequestAllocationResult
from ...api.text.quantity import parse_quantity
from ...stamped_cache import StampedCache
from .device_pools import Amounts, DeviceId, PoolId, PoolView


class Allocated:
    """The devices that claims have. `used` is called with the pool of each device that is allocated or released.

    Unless devices `are_shared`, a share of one counts as the whole device.
    """

    def __init__(self, used: Callable[[PoolId], None], *, are_shared: bool = True) -> None:
        self._used = used
        self._are_shared = are_shared
        self._claims: dict[str, AllocationResult] = {}
        self.in_use: Counter[DeviceId] = Counter()
        """Devices of a single claim; the count is 1 unless another component allocated a device twice."""
        self._shares: Counter[DeviceId] = Counter()
        self.consumed: dict[DeviceId, dict[str, int]] = {}
        """Nano-units by capacity, of devices that several claims use."""
        self._versions: Counter[PoolId] = Counter()
        self._available: StampedCache[PoolView, tuple[int, Amounts]] = StampedCache(
            "counters of pools", 65_536
        )

    def set(self, claim_uid: str, allocation: AllocationResult | None) -> None:
        """Set the devices of a claim; None if it has none."""
        before = self._claims.get(claim_uid)
        if before is allocation or (before and allocation and before.devices is allocation.devices):
            return  # the write of a claim keeps the devices that were assumed for it
        if before is not None:
            del self._claims[claim_uid]
            self._count(before, -1)
        if allocation is not None:
            self._claims[claim_uid] = allocation
            self._count(allocation, 1)

    def __contains__(self, device: DeviceId) -> bool:
        """Whether a claim uses the device, exclusively or shared."""
        return device in self.in_use or device in self._shares or device in self.consumed

    def has_shares(self, device: DeviceId) -> bool:
        """Whether a claim has a share of the device."""
        return device in self._shares

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue  # admin access does not use the device
            device = (result.driver, result.pool, result.device)
            if result.share_id is None or not self._are_shared:
                _add(self.in_use, device, sign)
            else:
                _add(self._shares, device, sign)
                self._consume(device, result, sign)
            self._versions[device[:2]] += 1
            self._used(device[:2])

    def _consume(self, device: DeviceId, result: DeviceRequestAllocationResult, sign: int) -> None:
        if result.consumed_capacity is None:
            return
        amounts = self.consumed.setdefault(device, {})
        for name, quantity in result.consumed_capacity.items():
            amounts[name] = amounts.get(name, 0) + sign * parse_quantity(quantity)
        if sign < 0 and not any(amounts.values()):
            del self.consumed[device]

    def available(self, view: PoolView) -> Amounts:
        """The rest of the counters of a pool; negative if more was allocated than there is."""
        version = self._versions[view.id]
        known = self._available.get(view)
        if known is not None and known[0] == version:
            return known[1]
        left = {name: dict(amounts) for name, amounts in view.counters.items()}
        for offer in (*view.offers, *view.others):
            if offer.consumes and offer.id in self:
                take(left, offer.consumes)
        return self._available.put(view, (version, left))[1]


def take(left: Amounts, amounts: Amounts) -> None:
    """Subtract `amounts` from the rest of those counters."""
    for counters, used in amounts.items():
        for name, amount in used.items():
            left[counters][name] -= amount


def _add(counted: Counter[DeviceId], device: DeviceId, sign: int) -> None:
    counted[device] += sign
    if not counted[device]:
        del counted[device]
