"""GpuClustering: pods that want the same number of GPUs, or shares, are placed together.

As the baseline of "Beware of Fragmentation" (ATC'23). A share goes to the fullest GPU; pods without GPUs get no points
anywhere.
"""

from __future__ import annotations

import numpy as np

from ..api.gpus import WHOLE
from ..framework import MAX_SCORE
from ..table import Ints
from .gpu_share import GpuNodes, GpuPolicy
from .ledger import kind_of

QUARTER = MAX_SCORE // 4
MOST_GPU = 8 * WHOLE


class GpuClustering(GpuPolicy):
    """Four ranges of points; in each of them, less that is free of all GPUs is better.

    From the highest: nodes with pods of this kind alone, with pods of this and other kinds, without pods on GPUs, with
    pods of other kinds.
    """

    name = "GpuClustering"

    def points(self, nodes: GpuNodes) -> Ints:
        if not nodes.milli:
            return np.zeros(len(nodes.free), dtype=np.int64)
        kinds, own = nodes.kinds, kind_of(nodes.milli)
        base = np.select([kinds == own, kinds & own != 0, kinds == 0], [3, 2, 1], 0) * QUARTER
        used = np.maximum(MOST_GPU - nodes.free.sum(axis=1), 0)
        points: Ints = base + QUARTER * used // MOST_GPU
        return points
