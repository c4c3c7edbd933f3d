"""StorageCapacity: where a driver has published room for another volume.

Mirrors hasEnoughCapacity of pkg/scheduler/framework/plugins/volumebinding/binder.go, for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...api.storage import CSIStorageCapacity
from ...framework.lister import Lister
from ...framework.lister_changes import ObjectKey
from ...table import Column, Ints, NodeTable, Rows, Size
from ...table.reach import Reach, alternatives_of

NONE = -1
"""Stands for no capacity object."""
UNKNOWN = -1
"""Stands for a limit that is not known, or that holds for no node."""
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
        """Take over an object as it is now; None when it is gone."""
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
        """int64 per row of `rows`: the first object that announces enough room there, or NONE."""
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
    """All capacity objects by class. `follow` brings them up to date."""

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
