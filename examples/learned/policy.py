"""Learned: a score that is a weighted sum of features of the node, with weights that train.py found.

    bayplan simulate -f cluster.json --plugins examples/learned/policy.py --config examples/learned/config.yaml

The features say how the node would look with the pod on it. Pods without GPUs, with a share of one and with whole ones
have weights of their own. Filter and choice of the GPU are those of the policies that ship with Bayplan.
"""

import numpy as np

from bayplan.framework import MAX_SCORE, NODE_ROW, ScorePlugin
from bayplan.policies.gpu_share import GpuSharing

GPU = "bayplan.dev/gpu-milli"
WHOLE = 1000
FEATURES = (
    "cpu left",
    "memory left",
    "GPUs left",
    "difference of cpu and memory left",
    "difference of cpu and GPUs left",
    "left of the GPU whose share is taken",
    "no GPU in use before",
    "number of GPUs",
    "GPUs that stay whole",
)
KINDS = 3  # pods without GPUs, with a share, with whole ones
WEIGHTS = (
    *(-1.0, -0.5, -0.5, -0.5, 0.0, 0.0, -0.5, -1.0, -0.5),
    *(-0.2, -0.2, -0.5, -0.2, -0.5, -1.0, -0.5, -0.2, 0.0),
    *(-0.2, -0.2, -1.0, -0.2, -0.5, 0.0, -0.5, -0.5, -0.2),
)
PRECISION = 1_000_000
ROWS = 10_000


class Learned(GpuSharing, ScorePlugin):
    """The higher the weighted sum, the better; of equal nodes the first. The best node gets 100 points, the next 99."""

    name = "Learned"
    scope = NODE_ROW  # the row of the node determines its score

    def __init__(self):
        self.weights = np.array(WEIGHTS)

    def spec_key(self, spec):
        return tuple(spec.requests.get(name, 0) for name in ("cpu", "memory", GPU))

    def score_rows(self, state, pod, table, rows):
        milli = pod.requests.get(GPU, 0)
        kind = 0 if not milli else 1 if milli < WHOLE else 2
        weights = np.reshape(self.weights, (KINDS, -1))[kind]
        sums = np.rint(weights @ self.features(pod, table, rows, milli) * PRECISION)
        return sums.astype(np.int64) * ROWS - table.numbers(rows) % ROWS

    def features(self, pod, table, rows, milli):
        """A line per feature, with a number from 0 to 1 for each node."""
        cpu, memory, gpu = (left_share(pod, table, rows, name) for name in ("cpu", "memory", GPU))
        free = self.ledger.free(table, rows)
        offered, used = table.allocatable[GPU][rows], table.requested[GPU][rows]
        share_left, whole = np.zeros(len(cpu)), (free == WHOLE).sum(axis=1)
        if 0 < milli < WHOLE:
            smallest = np.where(free >= milli, free, 2 * WHOLE).min(axis=1, initial=2 * WHOLE)
            share_left = (smallest - milli) / WHOLE
            whole = whole - (smallest == WHOLE)
        is_idle = (used == 0) & (offered > 0)
        others = (share_left, is_idle, offered / WHOLE / 8, (whole - milli // WHOLE) / 8)
        return np.stack([cpu, memory, gpu, abs(cpu - memory), abs(cpu - gpu), *others])

    def normalize(self, scores):
        values = np.unique(scores)
        ranks = len(values) - 1 - np.searchsorted(values, scores)
        return np.maximum(MAX_SCORE - ranks, 0)


def left_share(pod, table, rows, resource):
    """The free share of a resource once the pod is there; 0 where the node has none."""
    offered = table.allocatable[resource][rows]
    left = offered - table.requested[resource][rows] - pod.requests.get(resource, 0)
    return np.maximum(left, 0) / np.maximum(offered, 1)
