"""Inventory: the devices that each node can reach, and which of them a request selects, kept up to date."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from ...api.cel.device_expressions import CelError, Expression, SeenDevice, compile_expression
from ...api.devices import Device, ResourceSlice
from ...api.dra import DeviceClass, DeviceSelector
from ...api.resources import may_stand_for_devices
from ...api.taints import Toleration, find_untolerated
from ...releases.release import Release
from ...stamped_cache import StampedCache
from ...table import NodeTable, RowLog
from .device_pools import DeviceId, Offer, Pool, PoolId, PoolView
from .features import ALL_FEATURES, DeviceFeatures

EVERY_ROW = -1
OPTIONAL_CHAINING = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)


class ExpressionFault(NamedTuple):
    """An expression failed: its class ("" for the claim), its position there, and the reason."""

    of_class: str
    position: int
    problem: str

    def text(self, claim: str, offer: Offer, release: Release) -> str:
        """The fault as a message; `claim` is the key of the claim, `offer` the device."""
        whose = f"class {self.of_class}" if self.of_class else f"claim {claim}"
        where, advice = "", ""
        if release.names_devices and self.problem.startswith("CEL runtime error"):
            where = f" on device {'/'.join(offer.id)}"
            advice = OPTIONAL_CHAINING if "no such key: " in self.problem else ""
        return f"{whose}: selector #{self.position}{where}: {self.problem}{advice}"


Candidate = tuple[Offer, ExpressionFault | None, PoolView]
"""A device that a request selects, or for which an expression failed; and its pool."""
Judged = bool | ExpressionFault


class Selection:
    """The selectors of a class and of a request for its devices, and the taints the request tolerates.

    They are evaluated once per distinct device. Mirrors isSelectable and taintPreventsAllocation of
    dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go.
    """

    __slots__ = ("_expressions", "_features", "_judged", "_names", "tolerations")

    def __init__(
        self,
        device_class: DeviceClass,
        selectors: Iterable[DeviceSelector],
        tolerations: tuple[Toleration, ...],
        features: DeviceFeatures = ALL_FEATURES,
    ) -> None:
        self._features = features
        self._expressions = [
            *_numbered(device_class.name, device_class.spec.selectors or ()),
            *_numbered("", selectors),
        ]
        self.tolerations = tolerations
        self._names = _names((text for _, _, text in self._expressions), features)
        self._judged: StampedCache[Hashable, Judged] = StampedCache("devices picked", 65_536)

    def judge(self, offer: Offer) -> Judged:
        """Whether the device is picked; expressions after the first that is false are not evaluated."""
        key = self._key(offer)
        known = self._judged.get(key)
        if known is None:
            known = self._judged.put(key, self._ask(offer))
        return known

    def _key(self, offer: Offer) -> Hashable:
        """The values that the answer depends on: devices that look the same to the expressions share it."""
        device, names = offer.device, self._names
        if names is None:
            return offer.driver, device.content
        # An invalid version makes every expression fail.
        seen = [
            (name, value)
            for name, value in (device.attributes or {}).items()
            if value.version_value is not None
            or value.version_values is not None
            or name.rpartition("/")[2] in names
        ]
        room = [
            (name, c.value)
            for name, c in offer.capacity.items()
            if name.rpartition("/")[2] in names
        ]
        return offer.driver, offer.is_shared, tuple(seen), tuple(room)

    def _ask(self, offer: Offer) -> Judged:
        for of_class, position, text in self._expressions:
            try:
                expression = _compiled(text, self._features)
            except CelError as error:
                return ExpressionFault(of_class, position, f"CEL compile error: {error}")
            try:
                seen = offer.memo.get(SeenDevice)
                if seen is None:
                    seen = offer.memo[SeenDevice] = SeenDevice(offer.device, offer.driver)
                if not expression.matches(seen):
                    return False
            except CelError as error:
                return ExpressionFault(of_class, position, f"CEL runtime error: {error}")
        return True

    def tolerates(self, offer: Offer) -> bool:
        """Whether no taint keeps the device from being used."""
        if not offer.is_blocked:
            return True
        taints = offer.device.taints or ()
        return offer.is_allocatable and find_untolerated(taints, self.tolerations) is None


def _compiled(text: str, features: DeviceFeatures) -> Expression:
    return compile_expression(text, features.consumable_capacity, features.list_attributes)


def _names(texts: Iterable[str], features: DeviceFeatures) -> frozenset[str] | None:
    """The attributes and capacities that the expressions can read; None if they can read any."""
    found: set[str] = set()
    for text in texts:
        try:
            names = _compiled(text, features).names
        except CelError:
            continue
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _numbered(of_class: str, selectors: Iterable[DeviceSelector]) -> list[tuple[str, int, str]]:
    return [(of_class, i, s.cel.expression) for i, s in enumerate(selectors) if s.cel is not None]


class DeviceClasses:
    """The classes by name and by the extended resource that they stand for; `version` changes when one does.

    Mirrors staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
    """

    def __init__(self, features: DeviceFeatures = ALL_FEATURES) -> None:
        self.features = features
        self.version = 0
        self._by_name: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, DeviceClass] = {}
        self._selections: StampedCache[object, Selection] = StampedCache("device selections")

    def set(self, classes: Iterable[DeviceClass]) -> None:
        """Set all device classes. If several stand for a resource, the newest counts, then the first by name."""
        self.version += 1
        self._by_name = {c.name: c for c in classes}
        self._by_resource = {}
        if not self.features.extended_resources:
            return
        by_name = sorted(self._by_name.values(), key=lambda c: c.name)
        for found in sorted(by_name, key=lambda c: c.creation_timestamp or "", reverse=True):
            for resource in found.resource_names:
                if may_stand_for_devices(resource):
                    self._by_resource.setdefault(resource, found)

    def get(self, name: str) -> DeviceClass | None:
        return self._by_name.get(name)

    def for_resource(self, resource: str) -> DeviceClass | None:
        """The class whose devices stand in for the resource."""
        return self._by_resource.get(resource)

    def backed(self, resources: Iterable[str]) -> list[str]:
        """The members of `resources` that a class stands for."""
        if not self._by_resource:
            return []
        return [resource for resource in resources if resource in self._by_resource]

    def selection(
        self,
        device_class: DeviceClass,
        selectors: tuple[DeviceSelector, ...] = (),
        tolerations: tuple[Toleration, ...] = (),
    ) -> Selection:
        """The devices that the class and a request select; equal requests share the results."""
        key = (device_class.name, selectors, tolerations)
        selection = self._selections.get(key, self.version)
        if selection is None:
            selection = Selection(device_class, selectors, tolerations, self.features)
            self._selections.put(key, selection)
        return selection


class Picked(NamedTuple):
    """The devices that a selection picks on one node, in the order in which they are tried."""

    candidates: list[Candidate]
    """Tainted or not."""
    usable: list[Candidate]
    """The devices without untolerated taints, and those for which an expression failed."""
    are_plain: bool
    """Whether the usable devices have no state other than free or in use."""


class NodeOffers:
    """Devices that one node can reach, pool by pool, in the order in which they are tried."""

    __slots__ = ("picked", "views")

    def __init__(self, views: tuple[PoolView, ...]) -> None:
        self.views = views
        self.picked: dict[Selection, Picked] = {}


class Inventory:
    """The pools, and for each row those that its node sees.

    `changes` logs the rows about which anything changed: the node, its pools, or their use; EVERY_ROW if any row may
    have changed.
    """

    def __init__(self, table: NodeTable, features: DeviceFeatures = ALL_FEATURES) -> None:
        self._table = table
        self._features = features
        self._node_version = -1
        self._slices: dict[str, PoolId] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._local: dict[str, dict[PoolId, None]] = {}
        self._shared: dict[PoolId, None] = {}
        self._rows: dict[int, NodeOffers] = {}
        self.changes = RowLog()

    def set_slice(self, name: str, made: ResourceSlice | None) -> None:
        """Handle a slice that was added, changed or (None) deleted."""
        before = self._slices.pop(name, None)
        after = (made.spec.driver, made.spec.pool.name) if made is not None else None
        if before is not None and before != after:
            self._set(before, name, None)
        if made is not None and after is not None:
            self._slices[name] = after
            self._set(after, name, made)
        elif before is not None:
            self._set(before, name, None)

    def _set(self, pool_id: PoolId, name: str, made: ResourceSlice | None) -> None:
        pool = self._pools.setdefault(pool_id, Pool(pool_id, self._features))
        self._forget(pool)
        pool.put(name, made)
        names = pool.node_names
        if names is None:
            self._shared[pool_id] = None
        for node_name in names or ():
            self._local.setdefault(node_name, {})[pool_id] = None
        self._forget_rows(pool)

    def _forget(self, pool: Pool) -> None:
        """Invalidate the cached results about the pool."""
        self._forget_rows(pool)
        self._shared.pop(pool.id, None)
        for node_name in pool.node_names or ():
            self._local.get(node_name, {}).pop(pool.id, None)

    def _forget_rows(self, pool: Pool) -> None:
        rows = self._mark(pool)
        if rows is None:
            self._rows.clear()
        for row in rows or ():
            self._rows.pop(row, None)

    def _mark(self, pool: Pool) -> list[int] | None:
        """Log the rows that may see the pool, and return them; None if any may."""
        names = pool.node_names
        if names is None:
            self.changes.mark(EVERY_ROW)
            return None
        found = [self._table.row_of.get(name) for name in names]
        rows = [row for row in found if row is not None]
        for row in rows:
            self.changes.mark(row)
        return rows

    def used(self, pool_id: PoolId) -> None:
        """Log the rows that see the pool, after a device of it was allocated or released."""
        pool = self._pools.get(pool_id)
        if pool is not None:
            self._mark(pool)

    def forget_selections(self) -> None:
        """Drop the selections, after the classes changed."""
        self._rows.clear()

    def at(self, row: int) -> NodeOffers:
        """Devices that the node at `row` can reach; `follow_nodes` comes before."""
        offers = self._rows.get(row)
        if offers is None:
            offers = self._rows[row] = NodeOffers(self._views(row))
        return offers

    def picked_at(self, row: int, selection: Selection) -> Picked:
        """The devices that `selection` picks there."""
        offers = self.at(row)
        picked = offers.picked.get(selection)
        if picked is None:
            picked = offers.picked[selection] = self._pick(row, offers.views, selection)
        return picked

    def _pick(self, row: int, views: Iterable[PoolView], selection: Selection) -> Picked:
        node = self._table.nodes[row]
        assert node is not None, "only rows with a node are judged"
        found: list[Candidate] = []
        for view in views:
            if view.fault:
                found.append((view.offers[0], None, view))  # the search fails for any selection
                continue
            for offer in view.offers:
                if not offer.is_selectable:
                    continue
                judged = selection.judge(offer)
                if judged is not True and judged is not False:
                    found.append((offer, judged, view))
                elif judged and offer.is_on(node):
                    found.append((offer, None, view))
        usable = [c for c in found if c[1] or c[2].fault or selection.tolerates(c[0])]
        are_plain = all(offer.is_plain and not view.fault for offer, _, view in usable)
        return Picked(found, usable, are_plain)

    def device(self, device: DeviceId) -> Device | None:
        """The device with this driver, pool and name."""
        pool = self._pools.get(device[:2])
        return None if pool is None else pool.device(device[2])

    def reached(self, row: int) -> Iterable[Offer]:
        """All devices that the node at `row` can reach, also those of incomplete pools."""
        node = self._table.nodes[row]
        assert node is not None, "only rows with a node are judged"
        for pool in self._pools_of(node.name):
            yield from self._pools[pool].reached(node)

    def follow_nodes(self) -> None:
        """Update the rows of nodes that changed."""
        log = self._table.node_changes
        if self._node_version == log.version:
            return
        rows = log.since(self._node_version)
        self._node_version = log.version
        if rows is None:
            self._rows.clear()
            self.changes.mark(EVERY_ROW)
        for row in rows or ():
            self._rows.pop(row, None)
            self.changes.mark(row)

    def _views(self, row: int) -> tuple[PoolView, ...]:
        """The pools in order: those with binding conditions last, otherwise by driver and name.

        Without sorting, the order is random in some releases; here it is the order of arrival.
        """
        node = self._table.nodes[row]
        assert node is not None, "only rows with a node are judged"
        seen: list[PoolView] = []
        for pool in self._pools_of(node.name):
            view = self._pools[pool].view(node)
            if view is not None:
                seen.append(view)
        if self._features.release.sorts_slices:
            return tuple(sorted(seen, key=lambda view: (view.has_conditions, view.id)))
        places = {pool: place for place, pool in enumerate(self._pools)}
        return tuple(sorted(seen, key=lambda view: (view.has_conditions, places[view.id])))

    def _pools_of(self, node_name: str) -> Iterable[PoolId]:
        return (*self._local.get(node_name, ()), *self._shared)
