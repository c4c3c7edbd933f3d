"""Claims: the claims as they will be once the decisions are written.

Mirrors the claim tracker of pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go. As soon as the lister
shows the written object, or a newer one, that is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from ...api.dra import (
    EXTENDED_RESOURCE_CLAIM,
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from ...api.meta import controller_of, is_older
from ...api.text.quantity import parse_quantity
from ...stamped_cache import StampedCache
from ..lister import Lister
from .device_pools import Amounts, DeviceId, PoolId, PoolView

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class Allocated:
    """The devices that claims have. `used` is called with the pool of each device that is allocated or released.

    Unless devices `are_shared`, a share of one counts as the whole device. Mirrors
    pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go.
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


class Pending(msgspec.Struct):
    """An allocation that was decided and is not written yet."""

    key: Key
    allocation: AllocationResult
    pods: int = 1
    """Number of pods of one group that share it."""


class TrackedClaims:
    """The claims of the cluster, and their current or pending allocations, passed to `allocated`."""

    def __init__(self, lister: Lister, allocated: Allocated) -> None:
        self._lister = lister
        self._allocated = allocated
        self._pending: dict[str, Pending] = {}
        self._written: dict[Key, ResourceClaim] = {}
        self._created: set[str] = set()
        self._counted: dict[Key, ResourceClaim] = {}
        self._for_resources: dict[str, Key] = {}

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """The claim as it was written, or as the lister shows it when that is not older."""
        listed: ResourceClaim | None = self._lister.get(ResourceClaim.kind, namespace, name)
        if not self._written:
            return listed
        written = self._written.get((namespace, name))
        if written is None:
            return listed
        if listed is written:
            del self._written[namespace, name]
            self._created.discard(written.uid)
            return listed
        if listed is None and written.uid in self._created:
            return written
        self._created.discard(written.uid)
        if listed is not None and listed.uid == written.uid and is_older(listed, written):
            return written
        del self._written[namespace, name]
        return listed

    def noticed(self, namespace: str, name: str) -> None:
        """Handle a claim that was added, changed or deleted in the lister."""
        written = self._written.get((namespace, name))
        if written is not None:
            self._created.discard(written.uid)
        self.refresh(namespace, name)

    def refresh(self, namespace: str, name: str) -> None:
        """Count the devices of the claim."""
        key = (namespace, name)
        claim, before = self.get(namespace, name), self._counted.get(key)
        if claim is before:
            return  # as when the lister shows the write
        if before is not None and (claim is None or claim.uid != before.uid):
            del self._counted[key]
            self._count(before.uid, None)
        if claim is not None:
            self._counted[key] = claim
            self._count(claim.uid, claim)
            self._index(claim)

    def refresh_all(self) -> None:
        """Read all claims again, as any of them may have changed."""
        keys = {(c.namespace, c.name) for c in self._lister.list(ResourceClaim.kind)}
        for namespace, name in keys | self._counted.keys():
            self.refresh(namespace, name)

    def _count(self, uid: str, claim: ResourceClaim | None) -> None:
        allocation = claim.allocation if claim is not None else None
        if allocation is None and uid in self._pending:
            allocation = self._pending[uid].allocation
        self._allocated.set(uid, allocation)

    def _index(self, claim: ResourceClaim) -> None:
        if claim.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
            owner = controller_of(claim.owner_references)
            if owner is not None:
                self._for_resources[owner.uid] = (claim.namespace, claim.name)

    def for_resources_of(self, pod_uid: str) -> ResourceClaim | None:
        """The claim that an earlier attempt made for the extended resources of a pod."""
        key = self._for_resources.get(pod_uid)
        return self.get(*key) if key is not None else None

    # Assumed allocations, not written yet

    def pending(self, uid: str) -> AllocationResult | None:
        """The assumed allocation of the claim."""
        pending = self._pending.get(uid)
        return pending.allocation if pending is not None else None

    def begin(self, claim: ResourceClaim, allocation: AllocationResult) -> AllocationResult:
        """Assume `allocation` of the claim for one more pod, so that other claims cannot get its devices. Returns the
        assumed allocation, which is the earlier one if it was assumed for another pod.
        """
        uid = claim.uid
        pending = self._pending.get(uid)
        if pending is not None:
            pending.pods += 1
            return pending.allocation
        self._pending[uid] = Pending((claim.namespace, claim.name), allocation)
        self._allocated.set(uid, allocation)
        return allocation

    def end(self, uid: str) -> bool:
        """Drop the assumption for one pod of the allocation; returns whether no pod has it any more."""
        pending = self._pending.get(uid)
        if pending is None:
            return False
        if pending.pods > 1:
            pending.pods -= 1
            return False
        del self._pending[uid]
        claim = self.get(*pending.key)
        self._count(uid, claim if claim is not None and claim.uid == uid else None)
        return True

    def wrote(self, claim: ResourceClaim, pending_uid: str = "") -> None:
        """Record a written claim, which the lister may show later; it includes the pending write for `pending_uid`."""
        if self._pending.pop(pending_uid, None) is not None and pending_uid != claim.uid:
            self._allocated.set(pending_uid, None)
        namespace, name = claim.namespace, claim.name
        self._written[namespace, name] = claim
        self.refresh(namespace, name)

    def created(self, claim: ResourceClaim) -> None:
        """Record a new claim, which the lister may not show yet."""
        self._created.add(claim.uid)
        self.wrote(claim)

    def deleted(self, claim: ResourceClaim) -> None:
        """Record that `claim` is deleted, which the lister may never have shown."""
        self._created.discard(claim.uid)
        self._written.pop((claim.namespace, claim.name), None)
        self.refresh(claim.namespace, claim.name)
