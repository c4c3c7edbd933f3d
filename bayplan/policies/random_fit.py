"""GpuRandom: any node on which the pod fits, and any GPU of it that has room.

The lower bound of "Beware of Fragmentation" (ATC'23). The seed of the run determines the choices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..api.gpus import GPU_MILLI, WHOLE
from ..api.pod import Pod
from ..framework import CLUSTER, MAX_SCORE, SUCCESS, CycleState, PreScorePlugin, ScorePlugin, Status
from ..table import Ints, NodeTable, Rows
from .gpu_share import GpuSharing
from .ledger import NO_GPUS, fullest

CHOSEN = "GpuRandom: the name of the chosen node"


class GpuRandom(GpuSharing, PreScorePlugin, ScorePlugin):
    """PreScore draws one of the feasible nodes, which gets all points."""

    name = "GpuRandom"
    scope = CLUSTER

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        feasible = table.numbers(rows)
        state.write(CHOSEN, table.names[int(feasible[self.handle.random.randrange(len(feasible))])])
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        row = table.row_of.get(state.read(CHOSEN), -1)
        return np.where(table.numbers(rows) == row, MAX_SCORE, 0)

    def choose(self, free: Sequence[int], pod: Pod, row: int) -> tuple[int, ...]:
        milli = pod.requests[GPU_MILLI]
        if milli >= WHOLE:
            return fullest(free, milli)
        fitting = [gpu for gpu, left in enumerate(free) if left >= milli]
        return (self.handle.random.choice(fitting),) if fitting else NO_GPUS
