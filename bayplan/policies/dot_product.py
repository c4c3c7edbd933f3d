"""GpuDotProduct: the node whose free amounts have the smallest dot product with the pod's requests.

The alignment of Tetris (SIGCOMM'14) as the baseline of "Beware of Fragmentation" (ATC'23): cpu and all GPUs of a node
together are two dimensions, each as a part of the largest node's capacity. A share goes to the fullest GPU.
"""

from __future__ import annotations

import numpy as np

from ..framework import MAX_SCORE
from ..table import Ints
from .gpu_share import GpuNodes
from .largest_node import ComparingAmounts


class GpuDotProduct(ComparingAmounts):
    """100 less half of the dot product of free and wanted parts, in percent."""

    name = "GpuDotProduct"

    def points(self, nodes: GpuNodes) -> Ints:
        most_cpu, most_gpu = self.largest.milli_cpu, self.largest.gpu_milli
        cpu = nodes.free_cpu / most_cpu * (nodes.milli_cpu / most_cpu)
        gpus = nodes.free.sum(axis=1) / most_gpu * (nodes.milli / most_gpu)
        points: Ints = ((1 - (cpu + gpus) / 2) * MAX_SCORE).astype(np.int64)
        return np.clip(points, 0, MAX_SCORE)
