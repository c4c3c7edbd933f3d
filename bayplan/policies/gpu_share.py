"""GpuShare: a share of a GPU is placed on a single GPU, and small shares are packed.

NodeResourcesFit sums up the shares of a node; the policies of this folder check each GPU: 600 free on one and 600 on
the other are not enough for a pod of 1,000. `GpuSharing` is their common part: Filter, and Reserve, which chooses the
GPU.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np

from ..api.gpus import GPU_MILLI, WHOLE, gpu_count, is_valid
from ..api.pod import Pod, PodSpec
from ..api.resources import CPU
from ..framework import (
    MAX_SCORE,
    NODE_ROW,
    SUCCESS,
    CycleState,
    EventWithHint,
    FilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
    unschedulable,
)
from ..framework.events import NODE, POD, ActionType, wait_for
from ..framework.interface import NOT_SETTLED
from ..table import ALL, Bools, Ints, NodeInfo, NodeTable, Rows
from .ledger import GpuLedger, fullest

NO_ROOM = "too few GPUs have enough left"
INVALID = "the GPUs requested are neither a share of one nor whole ones"
NOTHING_TO_RESERVE = Settled(commits=False)


class GpuNodes:
    """The nodes that a policy scores: a row each, in the order of `rows`."""

    __slots__ = ("free", "ledger", "milli", "milli_cpu", "rows", "table")

    def __init__(self, ledger: GpuLedger, table: NodeTable, rows: Rows, pod: Pod) -> None:
        self.ledger, self.table, self.rows = ledger, table, rows
        self.free = ledger.free(table, rows)
        """int64 per node and GPU: its free amount."""
        self.milli: int = pod.requests.get(GPU_MILLI, 0)
        """The pod's request: below 1,000 a share, otherwise whole GPUs."""
        self.milli_cpu: int = pod.requests.get(CPU, 0)

    @property
    def free_cpu(self) -> Ints:
        """int64 per node: the cpu that is free, in milli."""
        free: Ints = self.table.allocatable[CPU][self.rows] - self.table.requested[CPU][self.rows]
        return free

    @property
    def kinds(self) -> Ints:
        """int64 per node: the kinds of pods on it, see `GpuLedger.kinds`."""
        return self.ledger.kinds(self.table, self.rows)

    @property
    def has_room(self) -> Bools:
        """bool per node and GPU: it has as much left as the pod wants of a GPU."""
        return self.free >= min(self.milli, WHOLE)


class GpuSharing(FilterPlugin, ReservePlugin):
    """Places pods where each of the GPUs has room; override `choose` to give out others than the fullest."""

    scope = NODE_ROW  # the pods of the node determine the result, as each keeps its GPUs

    def choose(self, free: Sequence[int], pod: Pod, row: int) -> tuple[int, ...]:
        """The GPUs for the pod on the node at `row` of the handle's table; none when it does not fit.

        `free` has the free amount of each GPU without the pod, which is on the node already.
        """
        return fullest(free, pod.requests[GPU_MILLI])

    @property
    def ledger(self) -> GpuLedger:
        """The GPUs of each pod."""
        return GpuLedger.of(self.handle)

    def free_parts(self, table: NodeTable) -> dict[str, Ints]:
        return {GPU_MILLI: self.ledger.free(table, ALL)}

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.requests.get(GPU_MILLI, 0), spec.requests.get(CPU, 0)

    def settled(self, spec: PodSpec) -> Settled:
        return NOT_SETTLED if spec.requests.get(GPU_MILLI, 0) else NOTHING_TO_RESERVE

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            wait_for(POD, ActionType.Delete | ActionType.UpdatePodScaleDown),
            wait_for(NODE, ActionType.Add | ActionType.UpdateNodeAllocatable),
        )

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        milli = pod.requests.get(GPU_MILLI, 0)
        if not milli:
            return verdict
        if not is_valid(milli):
            verdict.reject(np.ones(len(verdict), dtype=np.bool_), INVALID, unresolvable=True)
            return verdict
        short = ~self.ledger.fits(table, rows, milli)
        offered = table.allocatable[GPU_MILLI][rows]
        verdict.reject(short, NO_ROOM, unresolvable=offered < gpu_count(milli) * WHOLE)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return self.filter_rows(state, pod, node.table, np.array([node.row])).status(0)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if not pod.requests.get(GPU_MILLI, 0):
            return SUCCESS
        row = self.handle.table.row_of[node_name]
        fits = self.ledger.assign(pod, row, lambda free: self.choose(free, pod, row))
        return SUCCESS if fits else unschedulable(NO_ROOM)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.ledger.release(pod)


class GpuPolicy(GpuSharing, ScorePlugin):
    """The base of policies that score: implement `points`."""

    @abstractmethod
    def points(self, nodes: GpuNodes) -> Ints:
        """int64 per node, from MIN_SCORE to MAX_SCORE; any value in between where the pod does not fit."""

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return self.points(GpuNodes(self.ledger, table, rows, pod))

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return int(self.score_rows(state, pod, node.table, np.array([node.row]))[0])


class GpuShare(GpuPolicy):
    """The less is left on the GPU that the pod would use, the better: shares are packed, whole GPUs stay free."""

    name = "GpuShare"

    def points(self, nodes: GpuNodes) -> Ints:
        if not nodes.milli:
            return np.full(len(nodes.free), MAX_SCORE, dtype=np.int64)
        left = np.where(nodes.has_room, nodes.free, WHOLE).min(axis=1, initial=WHOLE)
        unused: Ints = left - min(nodes.milli, WHOLE)
        return MAX_SCORE - unused * MAX_SCORE // WHOLE
