"""VolumeColumns: the persistent volumes as columns, to find the one that suits a claim best.

Mirrors FindMatchingVolume of staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go, for all nodes at once.
Volumes, and all their properties that a claim may require, are numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from ...api.storage import AVAILABLE, PersistentVolume, PersistentVolumeClaim
from ...errors import BayplanError
from ...framework.lister import Lister, ObjectKey
from ...table import Bools, Column, Ints, NodeTable, Rows, Size
from ...table.reach import Alternatives, Reach, alternatives_of, match_alternatives
from .assumed import AssumedObjects

NONE = -1
ATTRIBUTES_GATE = "VolumeAttributesClass"
"""Stands for no volume."""
FEW = 256
"""Number of volumes up to which sorting them is quicker than filtering the sorted list of all volumes."""

K = TypeVar("K", bound=Hashable)


class _Codes(Generic[K]):
    """Numbers for values, given out in order of appearance."""

    def __init__(self) -> None:
        self.values: list[K] = []
        self._codes: dict[K, int] = {}

    def of(self, value: K) -> int:
        code = self._codes.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code


class VolumeColumns:
    """All volumes, as assumed. `follow` brings the columns up to date."""

    def __init__(
        self,
        volumes: AssumedObjects[PersistentVolume],
        lister: Lister,
        has_attributes: bool = True,
    ) -> None:
        self._volumes = volumes
        self._lister = lister
        self._has_attributes = has_attributes
        """Feature gate VolumeAttributesClass."""
        self._reset()

    def _reset(self) -> None:
        self._size = Size()
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._arrivals = 0
        self._order: Ints | None = None
        self._kept_for: dict[tuple[str, str], dict[int, None]] = {}
        self.listed: list[PersistentVolume | None] = []
        self.reach = Reach()
        self._classes: _Codes[str] = _Codes()
        self._modes: _Codes[str] = _Codes()
        self._attributes: _Codes[str] = _Codes()
        self._access_modes: _Codes[str] = _Codes()
        self._label_sets: _Codes[frozenset[tuple[str, str]]] = _Codes()
        self._free_to_take = Column(self._size, np.bool_, False)
        self._capacity = Column(self._size)
        self._arrival = Column(self._size)
        self._class = Column(self._size)
        self._field_class = Column(self._size)
        self._mode = Column(self._size)
        self._attribute = Column(self._size)
        self._access = Column(self._size)
        self._labels = Column(self._size)
        self._selector = Column(self._size)

    # Following

    def follow(self, changes: Iterable[ObjectKey] | None) -> None:
        """Follow the volumes among `changes` (None for all), and those assumed since."""
        if changes is None:
            self._volumes.expire_all()
            self._volumes.touched.clear()
            self._reset()
            for volume in self._lister.list("PersistentVolume"):
                self._set(volume.name, self._volumes.seen(volume))
            return
        for key in changes:
            if key.kind == "PersistentVolume":
                self._volumes.expire("", key.name)
                self._set(key.name, self._volumes.get("", key.name))
        touched = self._volumes.touched
        while touched:
            _, name = touched.pop()
            self._set(name, self._volumes.get("", name))

    def _set(self, name: str, volume: PersistentVolume | None) -> None:
        number = self._numbers.get(name)
        before = None if number is None else self.listed[number]
        if volume is before:
            return
        if number is None:
            number = self._new_number(name)
        if before is not None:
            self._keep(before, number, False)
        self.listed[number] = volume
        if volume is None:
            del self._numbers[name]
            self._free_to_take.data[number] = False
            self._free.append(number)
            return
        self._keep(volume, number, True)
        self._write(number, volume)

    def _new_number(self, name: str) -> int:
        if self._free:
            number = self._free.pop()
        else:
            number = self._size.rows
            if number == self._size.capacity:
                self._size.grow(max(64, 2 * number))
            self._size.rows += 1
            self.listed.append(None)
        self._numbers[name] = number
        self._arrival.data[number] = self._arrivals
        self._arrivals += 1
        self._order = None
        return number

    def _keep(self, volume: PersistentVolume, number: int, kept: bool) -> None:
        """Add the volume to those reserved for its claim, or remove it."""
        reference = volume.spec.claim_ref
        if reference is None:
            return
        numbers = self._kept_for.setdefault((reference.namespace, reference.name), {})
        if kept:
            numbers[number] = None
        else:
            numbers.pop(number, None)

    def _write(self, number: int, volume: PersistentVolume) -> None:
        spec = volume.spec
        if self._capacity.data[number] != volume.capacity_bytes:
            self._capacity.data[number] = volume.capacity_bytes
            self._order = None
        self._free_to_take.data[number] = (
            spec.claim_ref is None
            and volume.status.phase == AVAILABLE
            and not volume.is_terminating
        )
        self._class.data[number] = self._classes.of(volume.storage_class_name)
        self._field_class.data[number] = self._classes.of(spec.storage_class_name)
        self._mode.data[number] = self._modes.of(volume.volume_mode)
        self._attribute.data[number] = self._attributes.of(spec.volume_attributes_class_name or "")
        self._access.data[number] = self._access_bits(spec.access_modes)
        self._labels.data[number] = self._label_sets.of(frozenset(volume.labels.items()))
        self._selector.data[number] = self.reach.number(reach_of(volume))

    def _access_bits(self, modes: Iterable[str] | None) -> int:
        bits = 0
        for mode in modes or ():
            bits |= 1 << self._access_modes.of(mode)
        return bits

    def offers(self, numbers: Ints) -> tuple[Ints, Ints]:
        """int64 per entry of `numbers`, twice: the class that the volume's field names, as a code, and its bytes.

        For NONE they mean nothing.
        """
        return self._field_class.view[numbers], self._capacity.view[numbers]

    # Matching

    def match(
        self,
        claim: PersistentVolumeClaim,
        taken: Sequence[Ints],
        table: NodeTable,
        rows: Rows,
    ) -> Ints:
        """int64 per row of `rows`: the volume for `claim` there, NONE where there is none.

        A volume that is reserved for the claim is preferred, and no other is used on rows that cannot reach it.
        Otherwise it is the smallest suitable volume. `taken` are the volumes of earlier claims of the same pod, by row.
        """
        if claim.spec.volume_attributes_class_name and not self._has_attributes:
            text = (
                f"is set on claim {claim.key} when the feature-gate {ATTRIBUTES_GATE} is disabled"
            )
            raise BayplanError(f"unsupported volumeAttributesClassName {text}")
        size = table.count(rows)
        choice = np.full(size, NONE, dtype=np.int64)
        open_rows = np.ones(size, dtype=np.bool_)
        for number in self._kept_numbers(claim):
            volume = self.listed[number]
            assert volume is not None, "a number in use has its volume"
            here = open_rows & ~_is_taken(np.full(size, number, dtype=np.int64), taken)
            reached = match_alternatives(table, reach_of(volume), rows)
            choice[here & reached] = number
            open_rows &= ~here
        if open_rows.any():
            free = self._smallest(claim, taken, table, rows)
            choice[open_rows] = free[open_rows]
        return choice

    def _kept_numbers(self, claim: PersistentVolumeClaim) -> list[int]:
        """Volumes reserved for the claim that are of its class and meet its requirements, in order of arrival."""
        found = []
        for number in self._kept_for.get((claim.namespace, claim.name), ()):
            volume = self.listed[number]
            if (
                volume is not None
                and volume.is_bound_to(claim)
                and not volume.is_terminating
                and volume.storage_class_name == claim.storage_class_name
                and volume.capacity_bytes >= claim.requested_bytes
                and volume.volume_mode == claim.volume_mode
                and (volume.spec.volume_attributes_class_name or "")
                == (claim.spec.volume_attributes_class_name or "")
            ):
                found.append(number)
        return sorted(found, key=lambda number: int(self._arrival.data[number]))

    def _smallest(
        self,
        claim: PersistentVolumeClaim,
        taken: Sequence[Ints],
        table: NodeTable,
        rows: Rows,
    ) -> Ints:
        numbers = self._by_size(self._suitable(claim))
        if not len(numbers):
            return np.full(table.count(rows), NONE, dtype=np.int64)
        selectors = self._selector.view[numbers]
        # One more than were taken, so one of them is free, or there is no other.
        found = self.reach.first(selectors, table, rows, depth=1 + len(taken))
        numbers = np.append(numbers, NONE)
        choice: Ints = numbers[found[-1]]
        for line in found[-2::-1]:  # the nearest line last, so that it overwrites the others
            candidate = numbers[line]
            choice = np.where(_is_taken(candidate, taken), choice, candidate)
        return choice

    def _suitable(self, claim: PersistentVolumeClaim) -> Bools:
        """bool per volume: it may be taken, and meets the claim's requirements."""
        spec = claim.spec
        wanted = self._access_bits(spec.access_modes)
        suitable: Bools = self._free_to_take.view & (
            self._class.view == self._classes.of(claim.storage_class_name)
        )
        suitable &= self._capacity.view >= claim.requested_bytes
        suitable &= self._mode.view == self._modes.of(claim.volume_mode)
        attributes = self._attributes.of(spec.volume_attributes_class_name or "")
        suitable &= self._attribute.view == attributes
        suitable &= (self._access.view & wanted) == wanted
        if spec.selector is not None:
            spec.selector.validate()
            picked = [spec.selector.matches(dict(labels)) for labels in self._label_sets.values]
            suitable &= np.array(picked, dtype=np.bool_)[self._labels.view]
        return suitable

    def _by_size(self, suitable: Bools) -> Ints:
        """The numbers of the suitable volumes, the smallest first, equal ones by age."""
        if self._order is None and np.count_nonzero(suitable) <= FEW:
            numbers = np.flatnonzero(suitable)
            order = np.lexsort((self._arrival.view[numbers], self._capacity.view[numbers]))
            chosen: Ints = numbers[order]
            return chosen
        if self._order is None:
            self._order = np.lexsort((self._arrival.view, self._capacity.view))
        return self._order[suitable[self._order]]


def _is_taken(choice: Ints, taken: Sequence[Ints]) -> Bools:
    """bool per row: the volume was taken by a claim before."""
    found = np.zeros(len(choice), dtype=np.bool_)
    for other in taken:
        found |= (choice == other) & (choice != NONE)
    return found


def reach_of(volume: PersistentVolume) -> Alternatives:
    """From which nodes the volume can be reached."""
    affinity = volume.spec.node_affinity
    return alternatives_of(affinity.required if affinity else None)
