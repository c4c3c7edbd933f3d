"""Devices of a cluster: their pools, users, and the classes that claims name.

Lives here: data that DynamicResources and NodeResourcesFit both need, one for all profiles of a scheduler (kube-
scheduler's SharedDRAManager). May enter: `api`, `table`. Must not happen: a decision about a pod.
"""

from __future__ import annotations

from ...api.devices import DeviceTaintRule, ResourceSlice
from ...api.dra import DeviceClass, ResourceClaim
from ...table import NodeTable
from ..handle import Handle
from ..lister import Follower, Lister
from .claims import Allocated, TrackedClaims
from .device_pools import Amounts, DeviceId, Offer, PoolId, PoolView
from .features import ALL_FEATURES, DeviceFeatures
from .inventory import (
    EVERY_ROW,
    Candidate,
    DeviceClasses,
    ExpressionFault,
    Inventory,
    NodeOffers,
    Selection,
)

SHARED = "devices"


class Devices:
    """The devices, their users and their classes; `follow` brings them up to date with the cluster."""

    def __init__(
        self, table: NodeTable, lister: Lister, features: DeviceFeatures = ALL_FEATURES
    ) -> None:
        self.table = table
        self.lister = lister
        self.features = features
        self.classes = DeviceClasses(features)
        self.inventory = Inventory(table, features)
        self.allocated = Allocated(self.inventory.used, are_shared=features.consumable_capacity)
        self.claims = TrackedClaims(lister, self.allocated)
        self._follower = Follower(lister)
        self._version = -1
        self._slices: set[str] = set()
        self._taint_rules: dict[str, DeviceTaintRule] = {}

    @classmethod
    def of(cls, handle: Handle) -> Devices:
        """The devices of the cluster of `handle`."""
        known = handle.shared.get(SHARED)
        if (
            not isinstance(known, cls)
            or known.table is not handle.table
            or known.lister is not handle.lister
        ):
            features = DeviceFeatures.of(handle.feature_gates)
            known = handle.shared[SHARED] = cls(handle.table, handle.lister, features)
            known.follow()
        return known

    def follow(self) -> None:
        """Apply the changes of the cluster."""
        version = self.lister.version
        if version == self._version:
            return  # called several times for every pod
        self._version = version
        changes = self._follower.changes()
        if changes is None:
            self._read_all()
            return
        has_new_class = False
        for kind, namespace, name in changes:
            if kind == ResourceClaim.kind:
                self.claims.noticed(namespace, name)
            elif kind == ResourceSlice.kind:
                self._read_slice(name)
            elif kind == DeviceClass.kind:
                has_new_class = True
            elif kind == DeviceTaintRule.kind:
                self._read_taint_rule(name)
        if has_new_class:
            self._read_classes()

    def _read_classes(self) -> None:
        self.classes.set(self.lister.list(DeviceClass.kind))
        self.inventory.forget_selections()

    def _read_all(self) -> None:
        self._read_classes()
        rules = self.lister.list(DeviceTaintRule.kind) if self.features.taint_rules else ()
        self._taint_rules = {rule.name: rule for rule in rules}
        listed = (made.name for made in self.lister.list(ResourceSlice.kind))
        for name in dict.fromkeys((*listed, *self._slices)):  # in listed order, which may matter
            self._read_slice(name)
        self.claims.refresh_all()

    def _read_taint_rule(self, name: str) -> None:
        """Apply an added, changed or deleted rule to the slices that it selects or selected."""
        if not self.features.taint_rules:
            return
        before = self._taint_rules.pop(name, None)
        after: DeviceTaintRule | None = self.lister.get(DeviceTaintRule.kind, "", name)
        if after is not None:
            self._taint_rules[name] = after
        rules = [rule for rule in (before, after) if rule is not None]
        for made in self.lister.list(ResourceSlice.kind):
            if any(rule.selects(made) for rule in rules):
                self._read_slice(made.name)

    def _read_slice(self, name: str) -> None:
        made: ResourceSlice | None = self.lister.get(ResourceSlice.kind, "", name)
        self._slices.discard(name)
        if made is not None:
            self._slices.add(name)
            for rule in self._taint_rules.values():
                made = rule.applied(made)
        self.inventory.set_slice(name, made)


__all__ = [
    "EVERY_ROW",
    "Allocated",
    "Amounts",
    "Candidate",
    "DeviceClasses",
    "DeviceFeatures",
    "DeviceId",
    "Devices",
    "ExpressionFault",
    "NodeOffers",
    "Offer",
    "PoolId",
    "PoolView",
    "Selection",
]
