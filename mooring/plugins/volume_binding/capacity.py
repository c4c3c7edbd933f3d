"""StorageCapacity: where a driver says it has room for another volume.

Mirrors hasEnoughCapacity of pkg/scheduler/framework/plugins/volumebinding/binder.go, for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...api.storage import CSIStorageCapacity
from ...framework import Lister, ObjectKey
from ...table import Ints, NodeTable, Rows
from ...table.reach import Reach, alternatives_of

NONE = -1
"""Stands for no capacity object."""
KIND = "CSIStorageCapacity"


class _ClassRoom:
    """What was announced for one storage class, in the order of the lister."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], CSIStorageCapacity] = {}
        self._columns: tuple[list[CSIStorageCapacity], Ints, Ints] | None = None

    def set(self, key: tuple[str, str], obj: CSIStorageCapacity | None) -> None:
        if obj is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = obj
        self._columns = None

    def columns(self, reach: Reach) -> tuple[list[CSIStorageCapacity], Ints, Ints]:
        """The objects that name a limit and nodes; the limit in bytes and the number of the node selector of each."""
        if self._columns is None:
            usable = [
                obj
                for obj in self.objects.values()
                if obj.limit_bytes is not None and obj.node_topology is not None
            ]
            limits = [obj.limit_bytes for obj in usable]
            selectors = [reach.number(alternatives_of(obj.node_topology)) for obj in usable]
            self._columns = (
                usable,
                np.array(limits, dtype=np.int64),
                np.array(selectors, dtype=np.int64),
            )
        return self._columns


class StorageCapacity:
    """All capacity objects by class. `follow` brings them up to date."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._reach = Reach()
        self._rooms: dict[str, _ClassRoom] = {}
        self._class_of: dict[tuple[str, str], str] = {}

    def follow(self, changes: Iterable[ObjectKey] | None) -> None:
        """Look again at the capacity objects among `changes`; None: at all."""
        if changes is None:
            self._reach, self._rooms, self._class_of = Reach(), {}, {}
            for obj in self._lister.list(KIND):
                self._set((obj.namespace, obj.name), obj)
            return
        for kind, namespace, name in changes:
            if kind == KIND:
                self._set((namespace, name), self._lister.get(KIND, namespace, name))

    def _set(self, key: tuple[str, str], obj: CSIStorageCapacity | None) -> None:
        before = self._class_of.pop(key, None)
        if before is not None and (obj is None or obj.storage_class_name != before):
            self._rooms[before].set(key, None)
        if obj is not None:
            self._class_of[key] = obj.storage_class_name
            self._rooms.setdefault(obj.storage_class_name, _ClassRoom()).set(key, obj)

    def find(
        self, class_name: str, size_bytes: int, table: NodeTable, rows: Rows
    ) -> tuple[list[CSIStorageCapacity], Ints]:
        """Objects that announce enough room, and per row of `rows` the first that does so there, or NONE."""
        room = self._rooms.get(class_name, _ClassRoom())
        objects, limits, selectors = room.columns(self._reach)
        enough = np.flatnonzero(limits >= size_bytes)
        if not len(enough):
            return [], np.full(table.count(rows), NONE, dtype=np.int64)
        first = self._reach.first(selectors[enough], table, rows)[0]
        places = np.where(first < len(enough), first, NONE)
        return [objects[number] for number in enough], places
