"""Ledger: the pods of the GPUs of nodes, and the free amount of each GPU, as columns.

A pod gets its GPUs when it is reserved, by the policy of its profile. Pods on nodes that were not reserved here,
because the scheduler was restarted or they were bound by another one, get the GPUs that their annotation
`bayplan.dev/gpu-index` names; without it the fullest GPUs that have room, the largest requests first, then by
name. A pod that finds no GPU with room counts for none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..api.gpus import GPU_INDEX, GPU_MILLI, WHOLE, gpu_count
from ..api.pod import Pod
from ..framework import Handle
from ..table import Bools, Ints, NodeTable, Rows

NAME = "bayplan.policies.ledger"
NO_GPUS: tuple[int, ...] = ()
MOST_KINDS = 62
SHARES = 1

Choose = Callable[[Sequence[int]], tuple[int, ...]]
"""A function from the free amounts of a node's GPUs to the GPUs for a pod; empty if it does not fit."""


class GpuLedger:
    """The account of one table. All policies of a scheduler share it (`GpuLedger.of`).

    Rows are counted again when the change log names them. An edited copy of a node, as in preemption, is counted anew
    from its pods, without caching.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._version = -1
        self._nodes_version = -1
        self._free: Ints = np.zeros((0, 0), dtype=np.int64)
        self._kinds: Ints = np.zeros(0, dtype=np.int64)
        self._largest: Ints = np.zeros(0, dtype=np.int64)
        """Per row: the largest free amount of a GPU."""
        self._idle: Ints = np.zeros(0, dtype=np.int64)
        """Per row: how many GPUs are free as a whole."""
        self._gpus_of: dict[str, tuple[str, tuple[int, ...]]] = {}
        """By uid: the name of the node, and the GPUs."""
        self._counted: list[tuple[str, ...]] = []
        """Per row: the uids of the pods with GPUs that were last counted there."""

    @classmethod
    def of(cls, handle: Handle) -> GpuLedger:
        """The ledger of the handle's table."""
        ledger: GpuLedger | None = handle.shared.get(NAME)
        if ledger is None or ledger._table is not handle.table:
            ledger = handle.shared[NAME] = cls(handle.table)
        return ledger

    def gpus_of(self, pod: Pod) -> tuple[int, ...]:
        """The numbers of the GPUs that the pod has on its node; empty when it has none."""
        self._follow()
        return self._gpus_of.get(pod.uid, ("", NO_GPUS))[1]

    def free(self, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row of `rows` and GPU: its free amount, in thousandths; 0 for GPUs that are not there."""
        if table is self._table:
            self._follow()
            return self._free[rows]
        counts = [self._count(table, row)[0] for row in table.numbers(rows).tolist()]
        free = np.zeros((len(counts), max(map(len, counts), default=0)), dtype=np.int64)
        for place, count in enumerate(counts):
            free[place, : len(count)] = count
        return free

    def fits(self, table: NodeTable, rows: Rows, milli: int) -> Bools:
        """bool per row of `rows`: a GPU has room for the share, or as many GPUs as wanted are free."""
        if table is self._table:
            self._follow()
            if milli < WHOLE:
                return self._largest[rows] >= milli
            return self._idle[rows] >= gpu_count(milli)
        found = [fullest(self._count(table, row)[0], milli) for row in table.numbers(rows).tolist()]
        return np.array([bool(gpus) for gpus in found], dtype=np.bool_)

    def kinds(self, table: NodeTable, rows: Rows) -> Ints:
        """int64 per row of `rows`: bit 0 is set when a pod on it has a share, bit n when one has n GPUs."""
        if table is self._table:
            self._follow()
            return self._kinds[rows]
        kinds = [self._count(table, row)[1] for row in table.numbers(rows).tolist()]
        return np.array(kinds, dtype=np.int64)

    def assign(self, pod: Pod, row: int, choose: Choose) -> bool:
        """Give the pod, which is on `row` of the table, GPUs, unless it has them; False when there is no room."""
        name = self._table.names[row]
        known = self._gpus_of.get(pod.uid)
        if known is not None and known[0] == name:
            return True
        free, kinds, taken = self._count(self._table, row, without=pod.uid)
        gpus = choose(free)
        if not gpus:
            return False
        self._follow(but=row)
        milli = pod.requests[GPU_MILLI]
        take(free, gpus, milli)
        taken[pod.uid] = gpus
        self._store(row, free, kinds | kind_of(milli), taken)
        return True

    def release(self, pod: Pod) -> None:
        """Take the GPUs of a pod back; its row changes when it leaves the table."""
        self._gpus_of.pop(pod.uid, None)

    def _follow(self, but: int = -1) -> None:
        """Count the rows that changed since the last call, without the row `but`, which the caller counts."""
        table, log = self._table, self._table.row_changes
        if self._version == log.version and len(self._counted) == len(table):
            return
        changed = log.since(self._version)
        rows = range(len(table)) if changed is None else changed
        if self._nodes_version != table.node_changes.version:
            self._make_room()
        for row in rows:
            if row != but:
                self._store(row, *self._count(table, row))
        self._version = log.version

    def _make_room(self) -> None:
        """Add rows for new nodes, and columns where a node has more GPUs than any had before."""
        table, (rows, width) = self._table, self._free.shape
        self._nodes_version = table.node_changes.version
        offered = table.allocatable[GPU_MILLI]
        most = max(width, int(offered.max(initial=0)) // WHOLE)
        if len(table) > rows or most > width:
            free = np.zeros((len(table), most), dtype=np.int64)
            free[:rows, :width] = self._free
            self._free = free
            added = (0, len(table) - rows)
            self._kinds = np.pad(self._kinds, added)
            self._largest = np.pad(self._largest, added)
            self._idle = np.pad(self._idle, added)
        self._counted += [()] * (len(table) - len(self._counted))

    def _store(
        self, row: int, free: list[int], kinds: int, taken: dict[str, tuple[int, ...]]
    ) -> None:
        self._free[row, : len(free)] = free
        self._free[row, len(free) :] = 0
        self._kinds[row] = kinds
        self._largest[row] = max(free) if free else 0
        self._idle[row] = free.count(WHOLE)
        name = self._table.names[row]
        for uid in self._counted[row]:
            if uid not in taken and self._gpus_of.get(uid, ("",))[0] == name:
                del self._gpus_of[uid]
        for uid, gpus in taken.items():
            self._gpus_of[uid] = (name, gpus)
        self._counted[row] = tuple(taken)

    def _count(
        self, table: NodeTable, row: int, without: str = ""
    ) -> tuple[list[int], int, dict[str, tuple[int, ...]]]:
        """Free part of each GPU of a row, the bits of `kinds`, and the GPUs of each pod."""
        free = [WHOLE] * (table.allocatable.amount(GPU_MILLI, row) // WHOLE)
        kinds, taken, unknown = 0, {}, []
        name = table.names[row]
        for uid, pod in table.pods[row].items():
            milli = pod.requests.get(GPU_MILLI, 0)
            if not milli or uid == without:
                continue
            kinds |= kind_of(milli)
            known = self._gpus_of.get(uid)
            gpus = known[1] if known is not None and known[0] == name else annotated(pod)
            if gpus and max(gpus) < len(free):
                taken[uid] = gpus
                take(free, gpus, milli)
            else:
                unknown.append(pod)
        for pod in sorted(unknown, key=_by_size):
            milli = pod.requests[GPU_MILLI]
            gpus = fullest(free, milli)
            if gpus:
                taken[pod.uid] = gpus
                take(free, gpus, milli)
        return free, kinds, taken


def kind_of(milli: int) -> int:
    """The bit of `GpuLedger.kinds` for pods with this amount: of shares, or of that many GPUs."""
    return SHARES if milli < WHOLE else 1 << min(gpu_count(milli), MOST_KINDS)


def fullest(free: Sequence[int], milli: int) -> tuple[int, ...]:
    """The fullest GPU with room for a share, or the first ones that are free as a whole; none if there are too few."""
    each, count = min(milli, WHOLE), gpu_count(milli)
    fitting = sorted((left, gpu) for gpu, left in enumerate(free) if left >= each)
    return tuple(gpu for _, gpu in fitting[:count]) if len(fitting) >= count else NO_GPUS


def take(free: list[int], gpus: Sequence[int], milli: int) -> None:
    """Subtract the pod's use of each of its GPUs; where annotations name one with too little, 0 is left."""
    for gpu in gpus:
        free[gpu] = max(free[gpu] - min(milli, WHOLE), 0)


def annotated(pod: Pod) -> tuple[int, ...]:
    """The GPUs that the annotation of a pod names; none unless it has as many numbers as the pod has GPUs."""
    text = pod.annotations.get(GPU_INDEX, "") if pod.annotations else ""
    parts = text.split("-") if text else []
    if not all(part.isascii() and part.isdigit() for part in parts):
        return NO_GPUS
    gpus = tuple(dict.fromkeys(int(part) for part in parts))
    return gpus if len(gpus) == gpu_count(pod.requests.get(GPU_MILLI, 0)) else NO_GPUS


def _by_size(pod: Pod) -> tuple[int, str, str, str]:
    return -pod.requests[GPU_MILLI], pod.namespace, pod.name, pod.uid
