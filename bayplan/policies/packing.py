"""GpuPacking: GPUs in use first, then free GPUs of nodes in use, then idle nodes.

As the baseline of "Beware of Fragmentation" (ATC'23). A share goes to the fullest GPU; pods without GPUs
get no points anywhere.
"""

from __future__ import annotations

import numpy as np

from ..api.gpus import GPU_MILLI, WHOLE, gpu_count
from ..framework import MAX_SCORE
from ..table import Ints
from .gpu_share import GpuNodes, GpuPolicy

SHARED, USED = MAX_SCORE // 2, MAX_SCORE // 3
"""The fewest points for a GPU in use, and for free GPUs of a node in use."""


class GpuPacking(GpuPolicy):
    """Three ranges of points, in which fewer free GPUs, or less that is free of the GPU, is better."""

    name = "GpuPacking"

    def points(self, nodes: GpuNodes) -> Ints:
        if not nodes.milli:
            return np.zeros(len(nodes.free), dtype=np.int64)
        whole = nodes.free == WHOLE
        gpus = nodes.table.allocatable[GPU_MILLI][nodes.rows] // WHOLE
        idle = whole.sum(axis=1)
        points = np.full(len(idle), max(SHARED - gpu_count(nodes.milli), USED), dtype=np.int64)
        if nodes.milli < WHOLE:
            left = np.where(nodes.has_room & ~whole, nodes.free, WHOLE).min(axis=1, initial=WHOLE)
            shared = np.maximum(MAX_SCORE - left * 100 // WHOLE // 10, SHARED)
            points = np.where(left < WHOLE, shared, points)
        return np.where(idle == gpus, np.maximum(USED - idle, idle), points)
