"""VolumeUse: which volumes the pods on each row use, by claim and by disk, kept up to date pod by pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..api.pod import Pod
from ..api.volumes import Volume, claim_name_of
from .changes import ChangeLog
from .columns import Bools, Rows, Size

K = TypeVar("K", bound=Hashable)

NO_ROWS: dict[int, int] = {}
"""The rows of a thing that occurs nowhere; shared, so never written to."""


class RowCounts(Generic[K]):
    """Counts by thing and row, stored only where they occur: most claims are on one node."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[K, dict[int, int]] = {}

    def __len__(self) -> int:
        """Number of things that occur somewhere."""
        return len(self._rows)

    def __iter__(self) -> Iterator[K]:
        """The things that occur somewhere."""
        return iter(self._rows)

    def rows(self, key: K) -> Mapping[int, int]:
        """Rows of a thing, and its number on each."""
        return self._rows.get(key, NO_ROWS)

    def at(self, key: K, row: int) -> int:
        """Number of occurrences of a thing on one row."""
        return self.rows(key).get(row, 0)

    @property
    def changes(self) -> Mapping[K, int]:
        """Difference of a what-if's row from the row it is a copy of; empty for a whole table."""
        return {}

    def add(self, key: K, row: int, change: int) -> int:
        """Add `change` to a count; returns 1 if the thing is new to the row, -1 if it is gone from it, else 0."""
        rows = self._rows.setdefault(key, {})
        before = rows.get(row, 0)
        after = before + change
        if after:
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del self._rows[key]
        return bool(after) - bool(before)

    def fork(self, row: int) -> RowCounts[K]:
        """The counts of one row, which can be changed without touching these."""
        return _ForkedCounts(self, row)


class _ForkedCounts(RowCounts[K]):
    """One row of other counts, as the original and the changes since."""

    __slots__ = ("_base", "_changes", "_row")

    def __init__(self, base: RowCounts[K], row: int) -> None:
        super().__init__()
        self._base = base
        self._row = row
        self._changes: dict[K, int] = {}

    def rows(self, key: K) -> Mapping[int, int]:
        count = self._base.at(key, self._row) + self._changes.get(key, 0)
        return {0: count} if count else NO_ROWS

    @property
    def changes(self) -> Mapping[K, int]:
        total = dict(self._base.changes)
        for key, change in self._changes.items():
            total[key] = total.get(key, 0) + change
        return total

    def add(self, key: K, row: int, change: int) -> int:
        before = self.at(key, 0)
        self._changes[key] = self._changes.get(key, 0) + change
        return bool(before + change) - bool(before)


class ClaimUse(NamedTuple):
    """A claim that a pod uses. One made for an ephemeral volume must be that pod's: `pod_name` and `pod_uid`."""

    namespace: str
    name: str
    pod_name: str = ""
    pod_uid: str = ""

    @property
    def is_ephemeral(self) -> bool:
        return bool(self.pod_name)


VolumeRef: TypeAlias = ClaimUse | Volume
"""A volume that a pod uses: a claim, or a disk written into the pod (without the name it has there)."""
Disk: TypeAlias = tuple[str, ...]
"""Identifies a disk that pods on one node may not share, or may only share for reading."""


def volume_refs(pod: Pod) -> Iterator[VolumeRef]:
    """The claims and disks that a pod uses."""
    for volume in pod.spec.volumes or ():
        name = claim_name_of(volume, pod.name)
        if volume.empty_dir is not None:
            continue
        if name is None:
            yield volume
        elif volume.ephemeral is not None:
            yield ClaimUse(pod.namespace, name, pod.name, pod.uid)
        else:
            yield ClaimUse(pod.namespace, name)


def disks_of(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    """The disks a volume stands for, and whether it only reads; two volumes clash when they share one.

    Even readers cannot share an AWS disk. A Ceph image is known by each of its monitors.
    """
    if volume.gce_persistent_disk is not None:
        gce = volume.gce_persistent_disk
        yield ("gce", gce.pd_name), gce.read_only
    if volume.aws_elastic_block_store is not None:
        yield ("aws", volume.aws_elastic_block_store.volume_id), False
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn), volume.iscsi.read_only
    if volume.rbd is not None:
        rbd = volume.rbd
        for monitor in rbd.monitors or ():
            yield ("rbd", monitor, rbd.pool, rbd.image), rbd.read_only


class RefStep(NamedTuple):
    """A reference that a row did not have was added (`change` 1), or the last one on it was removed (-1)."""

    ref: VolumeRef
    row: int
    change: int


class VolumeUse:
    """`refs` counts the pods of each row by their volumes; `steps` logs the volumes that are new to a row or gone from
    it.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self.refs: RowCounts[VolumeRef] = RowCounts()
        self.steps: ChangeLog[RefStep] = ChangeLog()
        self._readers: RowCounts[Disk] = RowCounts()
        self._writers: RowCounts[Disk] = RowCounts()

    def add_pod(self, row: int, pod: Pod, change: int) -> None:
        """Count a pod that was added to `row` (`change` 1) or removed (-1) (writer only)."""
        for ref in volume_refs(pod):
            step = self.refs.add(ref, row, change)
            if step:
                self.steps.mark(RefStep(ref, row, step))
            if isinstance(ref, Volume):
                for disk, reads in disks_of(ref):
                    (self._readers if reads else self._writers).add(disk, row, change)

    def conflicts(self, volumes: Iterable[Volume], rows: Rows) -> Bools:
        """bool per row of `rows`: some pod there uses a disk of `volumes` that it does not share."""
        found = np.zeros(self._size.rows, dtype=np.bool_)
        for volume in volumes:
            for disk, reads in disks_of(volume):
                found[list(self._writers.rows(disk))] = True
                if not reads:
                    found[list(self._readers.rows(disk))] = True
        return found[rows]

    def fork(self, size: Size, row: int) -> VolumeUse:
        """The volumes of one row, which can be changed without touching these."""
        copy = VolumeUse(size)
        copy.refs = self.refs.fork(row)
        copy._readers, copy._writers = self._readers.fork(row), self._writers.fork(row)
        return copy
