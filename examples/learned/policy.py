"""Learned: a score that is a weighted sum of features of the node, with weights that train.py found.

    bayplan simulate -f cluster.json --plugins examples/learned/policy.py

The features say how the node would look with the pod on it.
"""

import numpy as np

from bayplan.framework import MAX_SCORE, NODE_ROW, ScorePlugin

GPU = "bayplan.dev/gpu-milli"
# cpu free, memory free, GPU free, difference of GPU and cpu free, no GPU in use before
WEIGHTS = (0.036, -0.317, -1.000, -0.871, 0.820)
PRECISION = 1_000_000


class Learned(ScorePlugin):
    """The higher the weighted sum, the better; scaled to 0 to 100 over the feasible nodes."""

    name = "Learned"
    scope = NODE_ROW  # the row of the node determines its score

    def __init__(self):
        self.weights = np.array(WEIGHTS)

    def spec_key(self, spec):
        return tuple(spec.requests.get(name, 0) for name in ("cpu", "memory", GPU))

    def score_rows(self, state, pod, table, rows):
        cpu, memory, gpu = (self.free(pod, table, rows, name) for name in ("cpu", "memory", GPU))
        is_unused = table.requested[GPU][rows] == 0
        features = np.stack([cpu, memory, gpu, abs(gpu - cpu), is_unused & (gpu > 0)])
        return np.rint(self.weights @ features * PRECISION).astype(np.int64)

    @staticmethod
    def free(pod, table, rows, resource):
        """The free share of a resource once the pod is there; 0 where the node has none."""
        offered = table.allocatable[resource][rows]
        left = offered - table.requested[resource][rows] - pod.requests.get(resource, 0)
        return np.maximum(left, 0) / np.maximum(offered, 1)

    def normalize(self, scores):
        low, high = scores.min(), scores.max()
        return (scores - low) * MAX_SCORE // max(high - low, 1)
