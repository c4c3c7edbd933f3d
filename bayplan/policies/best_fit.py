"""GpuBestFit: the node on which least cpu and GPU would be left.

Best fit as the baseline of "Beware of Fragmentation" (ATC'23): the rest of cpu and of all GPUs together, each as a part
of the largest node's capacity, counts the same. A share goes to the fullest GPU.
"""

from __future__ import annotations

import numpy as np

from ..framework import MAX_SCORE
from ..table import Ints
from .gpu_share import GpuNodes
from .largest_node import ComparingAmounts


class GpuBestFit(ComparingAmounts):
    """100 less the mean of the parts of cpu and GPUs that would be left, in percent."""

    name = "GpuBestFit"

    def points(self, nodes: GpuNodes) -> Ints:
        cpu = (nodes.free_cpu - nodes.milli_cpu) / self.largest.milli_cpu
        gpus = (nodes.free.sum(axis=1) - nodes.milli) / self.largest.gpu_milli
        points: Ints = ((1 - (cpu * 0.5 + gpus * 0.5)) * MAX_SCORE).astype(np.int64)
        return np.clip(points, 0, MAX_SCORE)
