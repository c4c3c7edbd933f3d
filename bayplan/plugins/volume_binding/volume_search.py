"""Volume search: the nodes on which the claims of a pod have, or can get, their volumes; and these volumes.

Mirrors FindPodVolumes of pkg/scheduler/framework/plugins/volumebinding/binder.go, for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from ...api.migration import in_tree_plugin, migrated_node_selector, volume_handle
from ...api.selectors import Requirement
from ...api.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from ...errors import BayplanError, InputError
from ...framework import Handle
from ...framework.csi_nodes import CSINodes
from ...framework.lister import Follower, Lister, ObjectKey
from ...table import Bools, Column, Ints, NodeTable, Rows, Size
from ...table.reach import EVERYWHERE, Alternatives, Reach, alternatives_of, match_alternatives
from .assumed import AssumedObjects
from .claim_sets import PodClaims
from .volume_columns import ATTRIBUTES_GATE, NONE, VolumeColumns, reach_of


class ProvisioningError(BayplanError):
    """The claim names no provisioner."""


class StaticBinding(msgspec.Struct):
    """A claim for existing volumes; `numbers` is the volume per row, NONE where no volume matches."""

    claim: PersistentVolumeClaim
    numbers: Ints


class Provision(msgspec.Struct):
    """A claim that needs a new volume on the rows `needed`; there `places` points into `rooms`, or is NONE."""

    claim: PersistentVolumeClaim
    needed: Bools
    rooms: Sequence[CSIStorageCapacity | None] = ()
    places: Ints | None = None


class FoundVolumes:
    """Volumes found for the evaluated rows; the masks have the rows that lack something."""

    __slots__ = ("bindings", "mismatch", "missing", "no_match", "no_space", "provisions")

    def __init__(self, size: int) -> None:
        self.mismatch: Bools = np.zeros(size, dtype=np.bool_)
        """A bound volume cannot be reached."""
        self.no_match: Bools = np.zeros(size, dtype=np.bool_)
        """No volume matches the claim, and none can be provisioned."""
        self.no_space: Bools = np.zeros(size, dtype=np.bool_)
        """A volume could be provisioned, but there is no room for it."""
        self.missing: Bools = np.zeros(size, dtype=np.bool_)
        """A claim is bound to a volume that does not exist."""
        self.bindings: list[StaticBinding] = []
        self.provisions: list[Provision] = []


class Finder:
    """Finds volumes. Keeps volumes, capacities and CSINodes as columns, and follows the lister with them."""

    def __init__(
        self,
        handle: Handle,
        claims: AssumedObjects[PersistentVolumeClaim],
        volumes: AssumedObjects[PersistentVolume],
    ) -> None:
        self._lister = handle.lister
        self._claims = claims
        self._volumes = volumes
        self._follower = Follower(handle.lister)
        has_attributes = handle.feature_gates.enabled(ATTRIBUTES_GATE)
        self.columns = VolumeColumns(volumes, handle.lister, has_attributes)
        self._capacity = StorageCapacity(handle.lister)
        self._nodes = CSINodes(handle.table, handle.lister)

    def find(self, wanted: PodClaims, table: NodeTable, rows: Rows) -> FoundVolumes:
        """Look for the volumes of a pod on `rows` of `table`."""
        self._follow()
        found = FoundVolumes(table.count(rows))
        self._check_bound(wanted.bound, table, rows, found)
        if wanted.delayed:
            self._find_delayed(wanted.delayed, table, rows, found)
        return found

    def suits_everywhere(self, wanted: PodClaims) -> bool:
        """Whether every node is certain to suit, because the claims have volumes that can be reached from anywhere."""
        if wanted.delayed:
            return False
        for claim in wanted.bound:
            volume = self._volumes.get("", claim.spec.volume_name)
            if volume is None or reach_of(volume) is not EVERYWHERE:
                return False
            plugin = in_tree_plugin(volume.spec)
            if plugin is not None and plugin.is_switched_over:
                return False  # a node may have it migrated to the driver
        return True

    def _follow(self) -> None:
        changes = self._follower.changes()
        self._nodes.follow(changes)
        self.columns.follow(changes)
        self._capacity.follow(changes)
        if changes is None:
            self._claims.expire_all()
        for kind, namespace, name in changes or ():
            if kind == "PersistentVolumeClaim":
                self._claims.expire(namespace, name)

    # Claims that have their volume

    def _check_bound(
        self, claims: list[PersistentVolumeClaim], table: NodeTable, rows: Rows, found: FoundVolumes
    ) -> None:
        """Judge each row up to its first fault; objects after a missing volume do not matter."""
        for claim in claims:
            volume = self._volumes.get("", claim.spec.volume_name)
            if volume is None:
                found.missing |= ~found.mismatch
                return
            found.mismatch |= ~self.reached(volume, table, rows)

    def reached(self, volume: PersistentVolume, table: NodeTable, rows: Rows) -> Bools:
        """bool per row of `rows`: the volume can be reached from the node.

        On nodes where an in-tree volume is migrated to a driver, it is reached like a volume of that driver.
        """
        reached = match_alternatives(table, reach_of(volume), rows)
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not plugin.is_switched_over:
            return reached
        migrated = self._nodes.migrated(plugin.name)[self._nodes.rows_of(table, rows)]
        if not migrated.any():
            return reached
        try:
            volume_handle(volume)
        except InputError as error:
            raise BayplanError(f"could not translate pv: {error}") from error
        selector = alternatives_of(migrated_node_selector(volume, plugin))
        return np.where(migrated, match_alternatives(table, selector, rows), reached)

    # Claims that wait for the pod's node

    def _find_delayed(
        self, claims: list[PersistentVolumeClaim], table: NodeTable, rows: Rows, found: FoundVolumes
    ) -> None:
        size = table.count(rows)
        placed = [claim for claim in claims if SELECTED_NODE in claim.annotations]
        for claim in placed:
            found.no_match |= ~_is_node(table, claim.annotations[SELECTED_NODE], rows)
        provisions = [Provision(claim, np.ones(size, dtype=np.bool_)) for claim in placed]
        free = [claim for claim in claims if SELECTED_NODE not in claim.annotations]
        for claim in sorted(free, key=lambda claim: claim.requested_bytes):
            name = claim.storage_class_name
            taken = [b.numbers for b in found.bindings if b.claim.storage_class_name == name]
            numbers = self.columns.match(claim, taken, table, rows)
            found.bindings.append(StaticBinding(claim, numbers))
            provisions.append(Provision(claim, numbers == NONE))
        for provision in provisions:
            if provision.needed.any():
                found.provisions.append(provision)
                self._check_provision(provision, table, rows, found)

    def _check_provision(
        self, provision: Provision, table: NodeTable, rows: Rows, found: FoundVolumes
    ) -> None:
        """Note where the volume cannot be made; a row that lacks something already is skipped."""
        asked = provision.needed & ~found.no_match & ~found.no_space
        if not asked.any():
            return
        storage_class = self._class_of(provision.claim)
        if storage_class.provisioner in ("", NO_PROVISIONER):
            found.no_match |= asked
            return
        allowed = _allowed(storage_class)
        if allowed is not None:
            outside = asked & ~match_alternatives(table, allowed, rows)
            found.no_match |= outside
            asked = asked & ~outside
        if "storage" in provision.claim.requests and self._has_capacity(storage_class.provisioner):
            size_bytes = provision.claim.requested_bytes
            provision.rooms, provision.places = self._capacity.find(
                storage_class.name, size_bytes, table, rows
            )
            found.no_space |= asked & (provision.places == NONE)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass:
        name = claim.storage_class_name
        if not name:
            raise ProvisioningError(f'no class for claim "{claim.key}"')
        storage_class = self._lister.get("StorageClass", "", name)
        if storage_class is None:
            raise ProvisioningError(f'failed to find storage class "{name}"')
        assert isinstance(storage_class, StorageClass), "the lister keeps kinds apart"
        return storage_class

    def _has_capacity(self, driver_name: str) -> bool:
        """Whether the driver publishes its capacity, and wants it to be checked."""
        driver = self._lister.get("CSIDriver", "", driver_name)
        return driver is not None and bool(driver.spec.storage_capacity)


def _is_node(table: NodeTable, name: str, rows: Rows) -> Bools:
    """bool per row of `rows`: it is the node of that name."""
    named = np.zeros(len(table), dtype=np.bool_)
    row = table.row_of.get(name)
    if row is not None:
        named[row] = True
    return named[rows]


def _allowed(storage_class: StorageClass) -> Alternatives | None:
    """Topologies in which volumes of the class may be made; None for all. A term that cannot be read allows nothing."""
    if not storage_class.allowed_topologies:
        return None
    alternatives = []
    for term in storage_class.allowed_topologies:
        requirements = tuple(
            Requirement(key=wanted.key, operator="In", values=wanted.values)
            for wanted in term.match_label_expressions or ()
        )
        if requirements and all(r.parse_problem(("In",)) is None for r in requirements):
            alternatives.append(requirements)
    return tuple(alternatives)


"""Stands for no capacity object."""
UNKNOWN = -1
"""Marks a limit that is unknown, or applies to no node."""
KIND = "CSIStorageCapacity"
Key = tuple[str, str]
"""Namespace and name."""


class _ClassRoom:
    """Capacity announced for one storage class; an object is a number."""

    def __init__(self) -> None:
        self._size = Size()
        self._numbers: dict[Key, int] = {}
        self._free: list[int] = []
        self.objects: list[CSIStorageCapacity | None] = []
        self._limits = Column(self._size)
        self._selectors = Column(self._size)

    def set(self, key: Key, obj: CSIStorageCapacity | None, reach: Reach) -> None:
        """Store the present state of an object; None if it was deleted."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._free.pop() if self._free else self._grow()
        self.objects[number] = obj
        self._limits.data[number] = UNKNOWN
        if obj is None:
            self._free.append(self._numbers.pop(key))
        elif obj.node_topology is not None and obj.limit_bytes is not None:
            self._limits.data[number] = obj.limit_bytes
            self._selectors.data[number] = reach.number(alternatives_of(obj.node_topology))

    def first(self, size_bytes: int, reach: Reach, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row of `rows`: the first object that publishes enough room there, or NONE."""
        enough = np.flatnonzero(self._limits.view >= max(size_bytes, 0))
        first = reach.first(self._selectors.view[enough], table, rows)[0]
        found: Ints = np.append(enough, NONE)[first]
        return found

    def _grow(self) -> int:
        number = self._size.rows
        if number == self._size.capacity:
            self._size.grow(max(64, 2 * number))
        self._size.rows += 1
        self.objects.append(None)
        return number


class StorageCapacity:
    """All capacity objects by class. `follow` brings them up to date.

    Mirrors hasEnoughCapacity of pkg/scheduler/framework/plugins/volumebinding/binder.go, for all nodes at once.
    """

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._reach = Reach()
        self._rooms: dict[str, _ClassRoom] = {}
        self._class_of: dict[Key, str] = {}

    def follow(self, changes: Iterable[ObjectKey] | None) -> None:
        """Look again at the capacity objects among `changes`; None for all."""
        if changes is None:
            self._reach, self._rooms, self._class_of = Reach(), {}, {}
            for obj in self._lister.list(KIND):
                self._set((obj.namespace, obj.name), obj)
            return
        for kind, namespace, name in changes:
            if kind == KIND:
                self._set((namespace, name), self._lister.get(KIND, namespace, name))

    def _set(self, key: Key, obj: CSIStorageCapacity | None) -> None:
        before = self._class_of.pop(key, None)
        if before is not None and (obj is None or obj.storage_class_name != before):
            self._rooms[before].set(key, None, self._reach)
        if obj is not None:
            self._class_of[key] = obj.storage_class_name
            room = self._rooms.setdefault(obj.storage_class_name, _ClassRoom())
            room.set(key, obj, self._reach)

    def find(
        self, class_name: str, size_bytes: int, table: NodeTable, rows: Rows
    ) -> tuple[Sequence[CSIStorageCapacity | None], Ints]:
        """Capacity announced for a class, and per row of `rows` the position of an entry with enough room, or NONE."""
        room = self._rooms.get(class_name)
        if room is None:
            return (), np.full(table.count(rows), NONE, dtype=np.int64)
        return room.objects, room.first(size_bytes, self._reach, table, rows)
