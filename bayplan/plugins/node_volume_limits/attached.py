"""AttachedVolumes: how many volumes of each driver are attached to each row, kept up to date step by step.

A change of a pod, a claim or an attachment only touches the rows that it affects. Distinct volumes are counted, those
of pods and those of VolumeAttachments together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

import msgspec
import numpy as np

from ...api.storage import VolumeAttachment
from ...framework import Handle
from ...framework.csi_nodes import CSINodes
from ...framework.lister import Follower, Lister, ObjectKey
from ...table import Column, Ints, NodeTable
from ...table.volumes import ClaimUse, RowCounts, VolumeRef
from .identity import Attached, Identifier, Identity, VolumeFault

Dependency = tuple[str, str]
"""A kind and a name: of a volume or a class, or of a claim as namespace/name."""


class _Known(msgspec.Struct):
    """Cached identity of a claim or disk in use, and the objects that it depends on."""

    identity: Identity
    depends_on: list[Dependency] = msgspec.field(default_factory=list)


class AttachedVolumes:
    """Counts of attached volumes by driver and row; `follow` brings them up to date."""

    def __init__(
        self, table: NodeTable, lister: Lister, identifier: Identifier, attachments: bool = True
    ) -> None:
        self.table = table
        self._lister = lister
        self._identifier = identifier
        self._with_attachments = attachments
        self._ref_version = self._node_version = -1
        self._reset()

    def _reset(self) -> None:
        self._counts: dict[str, Column] = {}
        self._highest: dict[str, int] = {}
        self._known: dict[VolumeRef, _Known] = {}
        self._dependents: dict[Dependency, dict[VolumeRef, None]] = {}
        self.used: RowCounts[str] = RowCounts()
        """Number of claims and disks of a row's pods that use each volume."""
        self.present: RowCounts[str] = RowCounts()
        """Number of claims, disks and VolumeAttachments of each volume on a row."""
        self._faults: RowCounts[str] = RowCounts()
        self._attachments = _Attachments(self.table, self._lister)

    # Questions

    def count(self, driver: str) -> Ints:
        """int64 per row: distinct volumes of the driver that are attached, or will be."""
        return self._column(driver).view

    def highest(self, driver: str) -> int:
        """An upper bound of `count` on all rows."""
        return self._highest.get(driver, 0)

    def users(self, name: str) -> list[int]:
        """The rows where a pod uses the volume already."""
        return list(self.used.rows(name))

    def faults(self) -> Mapping[str, Iterable[int]]:
        """Reason why volumes of pods cannot be counted, and on which rows."""
        return {text: list(self._faults.rows(text)) for text in self._faults}

    def what_if(self, fork: NodeTable) -> WhatIfCounts:
        """The counts for the one row of a what-if."""
        return WhatIfCounts(self, fork)

    # Following

    def follow(self, changes: Iterable[ObjectKey] | None) -> None:
        """Apply the changes of pods and nodes, and of the objects in `changes` (None for all)."""
        refs, nodes = self.table.volumes.refs, self.table.node_changes
        log = self.table.volumes.steps
        steps = log.entries_since(self._ref_version)
        rows = nodes.since(self._node_version)
        self._ref_version, self._node_version = log.version, nodes.version
        if changes is None or steps is None or rows is None:
            self._rebuild()
            return
        for step in steps:
            self._count(step.ref, step.row, step.change)
        # After counting: a volume must have the same identity when it is removed as when it was added.
        for ref in {step.ref for step in steps if not refs.rows(step.ref)}:
            self._forget(ref)
        for row in rows:
            self._attach(self._attachments.of_row(row))
        for key in changes:
            self._on_change(key)

    def _rebuild(self) -> None:
        self._reset()
        refs = self.table.volumes.refs
        for ref in refs:
            for row in refs.rows(ref):
                self._count(ref, row, 1)
        if self._with_attachments:
            self._attach(a.name for a in self._lister.list("VolumeAttachment"))

    def _on_change(self, key: ObjectKey) -> None:
        if key.kind == "VolumeAttachment":
            self._attach((key.name,))
            return
        name = f"{key.namespace}/{key.name}" if key.namespace else key.name
        for ref in list(self._dependents.get((key.kind, name), ())):
            self._identify_again(ref)
        if key.kind == "PersistentVolume":
            self._attach(self._attachments.of_volume(key.name))

    # Volumes of pods

    def _count(self, ref: VolumeRef, row: int, change: int) -> None:
        known = self._known.get(ref)
        if known is None:
            known = self._known[ref] = self._identify(ref)
        self._place(known.identity, row, change)

    def _identify_again(self, ref: VolumeRef) -> None:
        before = self._known[ref].identity
        self._forget(ref)
        known = self._known[ref] = self._identify(ref)
        if known.identity != before:
            for row in self.table.volumes.refs.rows(ref):
                self._place(before, row, -1)
                self._place(known.identity, row, 1)

    def _identify(self, ref: VolumeRef) -> _Known:
        depends_on: list[Dependency] = []
        if isinstance(ref, ClaimUse):
            depends_on.append(("PersistentVolumeClaim", f"{ref.namespace}/{ref.name}"))
        identity = self._identifier.identify(ref, lambda *visited: depends_on.append(visited))
        for dependency in depends_on:
            self._dependents.setdefault(dependency, {})[ref] = None
        return _Known(identity, depends_on)

    def _forget(self, ref: VolumeRef) -> None:
        for dependency in self._known.pop(ref).depends_on:
            dependents = self._dependents.get(dependency, {})
            dependents.pop(ref, None)
            if not dependents:
                self._dependents.pop(dependency, None)

    def _place(self, identity: Identity, row: int, change: int) -> None:
        """Count a volume that is new to a row, or gone from it."""
        if isinstance(identity, Attached):
            self.used.add(identity.name, row, change)
            self._make_present(identity, row, change)
        elif isinstance(identity, VolumeFault) and not identity.is_missing:
            self._faults.add(identity.text, row, change)

    def _make_present(self, volume: Attached, row: int, change: int) -> None:
        step = self.present.add(volume.name, row, change)
        if step:
            cells, driver = self._column(volume.driver).cells, volume.driver
            cells[row] += step
            self._highest[driver] = max(cells[row], self.highest(driver))

    def _column(self, driver: str) -> Column:
        column = self._counts.get(driver)
        if column is None:
            column = self._counts[driver] = Column(self.table.size)
        return column

    # VolumeAttachments

    def _attach(self, names: Iterable[str]) -> None:
        if not self._with_attachments:
            return
        for before, after in self._attachments.look(list(names)):
            if before is not None:
                self._make_present(*before, -1)
            if after is not None:
                self._make_present(*after, 1)

    def identity_of(self, ref: VolumeRef) -> Identity:
        """Identity of a claim or disk, cached or not."""
        known = self._known.get(ref)
        return known.identity if known is not None else self._identifier.identify(ref)


Place = tuple[Attached, int]


class _Attachments:
    """The volume and the row of each VolumeAttachment."""

    def __init__(self, table: NodeTable, lister: Lister) -> None:
        self._table = table
        self._lister = lister
        self._places: dict[str, Place] = {}
        self._by_row: dict[int, set[str]] = {}
        self._by_node: dict[str, set[str]] = {}
        self._by_volume: dict[str, set[str]] = {}
        self._known: dict[str, VolumeAttachment] = {}

    def of_row(self, row: int) -> set[str]:
        """The attachments to the present node of the row, and those counted on the row."""
        return self._by_row.get(row, set()) | self._by_node.get(self._table.names[row], set())

    def of_volume(self, name: str) -> set[str]:
        return self._by_volume.get(name, set()).copy()

    def look(self, names: Iterable[str]) -> Iterable[tuple[Place | None, Place | None]]:
        """Read changed attachments: yields the row and volume under which each was counted, and the new ones."""
        for name in names:
            self._remember(name)
            before, after = self._places.get(name), self._place_of(name)
            if before == after:
                continue
            if before is not None:
                del self._places[name]
                self._by_row[before[1]].discard(name)
            if after is not None:
                self._places[name] = after
                self._by_row.setdefault(after[1], set()).add(name)
            yield before, after

    def _remember(self, name: str) -> None:
        """Note where the attachment belongs, so that it is found when its node or its volume changes."""
        before, after = self._known.get(name), self._lister.get("VolumeAttachment", "", name)
        if before is after:
            return
        if before is not None:
            self._by_node[before.spec.node_name].discard(name)
            self._by_volume[before.spec.source.persistent_volume_name or ""].discard(name)
            del self._known[name]
        if after is not None:
            self._known[name] = after
            self._by_node.setdefault(after.spec.node_name, set()).add(name)
            volume = after.spec.source.persistent_volume_name or ""
            self._by_volume.setdefault(volume, set()).add(name)

    def _place_of(self, name: str) -> Place | None:
        attachment = self._known.get(name)
        if attachment is None:
            return None
        spec = attachment.spec
        row = self._table.row_of.get(spec.node_name)
        if row is None or not spec.attacher or not spec.source.persistent_volume_name:
            return None
        volume = self._lister.get("PersistentVolume", "", spec.source.persistent_volume_name)
        if volume is None or volume.spec.csi is None:
            return None
        handle = volume.spec.csi.volume_handle
        return Attached(f"{spec.attacher}/{handle}", spec.attacher), row


class WhatIfCounts:
    """The counts on the one row of a what-if: those of the original row, and the effect of the changed pods."""

    def __init__(self, whole: AttachedVolumes, fork: NodeTable) -> None:
        self._row = whole.table.row_of[fork.names[0]]
        self._whole = whole
        self._uses: dict[str, int] = {}
        self._faults = {text for text, rows in whole.faults().items() if self._row in rows}
        self._more: dict[str, int] = {}
        drivers: dict[str, str] = {}
        refs = whole.table.volumes.refs
        for ref, change in fork.volumes.refs.changes.items():
            before = refs.at(ref, self._row)
            step = bool(before + change) - bool(before)
            identity = whole.identity_of(ref) if step else None
            if isinstance(identity, Attached):
                self._uses[identity.name] = self._uses.get(identity.name, 0) + step
                drivers[identity.name] = identity.driver
            elif isinstance(identity, VolumeFault) and not identity.is_missing:
                (self._faults.add if step > 0 else self._faults.discard)(identity.text)
        for name, change in self._uses.items():
            before = whole.present.at(name, self._row)
            step = bool(before + change) - bool(before)
            self._more[drivers[name]] = self._more.get(drivers[name], 0) + step

    def count(self, driver: str) -> Ints:
        """The count at the row, as an array of one entry."""
        count = int(self._whole.count(driver)[self._row]) + self._more.get(driver, 0)
        return np.array([count], dtype=np.int64)

    def highest(self, driver: str) -> int:
        """The same as for the whole table."""
        return int(self.count(driver)[0])

    def users(self, name: str) -> list[int]:
        """`[0]` if a pod of the row uses the volume, else empty."""
        uses = self._whole.used.at(name, self._row) + self._uses.get(name, 0)
        return [0] if uses else []

    def faults(self) -> Mapping[str, Iterable[int]]:
        """The same as for the whole table."""
        return {text: [0] for text in self._faults}


class AttachmentFacts:
    """Cached facts of the cluster of a handle: its CSINodes, and the volumes that are attached."""

    def __init__(self, handle: Handle, identifier: Identifier, attachments: bool = True) -> None:
        self.handle = handle
        self.identifier = identifier
        self.nodes = CSINodes(handle.table, handle.lister)
        self.attached = AttachedVolumes(handle.table, handle.lister, identifier, attachments)
        self._follower = Follower(handle.lister)

    def follow(self) -> Self:
        """Update the facts."""
        changes = self._follower.changes()
        self.nodes.follow(changes)
        self.attached.follow(changes)
        return self
