"""Learned: a score that is a weighted sum of features of the node, with weights that train.py found.

    bayplan simulate -f cluster.json --plugins examples/learned/policy.py --config examples/learned/config.yaml

The features say how the node would look with the pod on it. Pods without GPUs, with a share of one and with whole ones
have weights of their own. Filter and choice of the GPU are those of the policies that ship with Bayplan.
"""

from collections import Counter
from functools import cache
from zlib import crc32

import numpy as np

from bayplan.framework import MAX_SCORE, NODE_ROW, ScorePlugin
from bayplan.framework.interface import NOT_SETTLED
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
    "growth of the cpu that typical pods cannot use",
)
KINDS = 3  # pods without GPUs, with a share, with whole ones
WEIGHTS = (
    *(-0.069, 0.187, -0.413, 0.050, -0.369, -0.099, -0.030, 0.075, -0.224, -0.851),
    *(-0.027, 0.178, -0.066, -0.241, -0.005, -0.594, 0.032, -0.050, -0.100, -0.846),
    *(-0.467, -0.196, -0.335, 0.122, 0.046, 0.040, 0.032, 0.016, -0.262, -0.832),
)
SCALES = (0.05, 0.05, 0.5, 0.05, 0.05, 0.5, 0.05, 0.05, 0.5, 1.0)  # of the features
PRECISION = 1_000_000
PLACES = 1 << 16
TASKS = 16  # kinds of pods that count as typical


class Learned(GpuSharing, ScorePlugin):
    """The higher the weighted sum, the better; equal nodes have a fixed order. The best gets 100 points."""

    name = "Learned"
    scope = NODE_ROW  # the row of the node determines its score

    def __init__(self):
        self.weights = np.array(WEIGHTS)
        self.tasks, self.pods, self.version = (), 0, 0

    def spec_key(self, spec):
        return tuple(spec.requests.get(name, 0) for name in ("cpu", "memory", GPU))

    def cluster_key(self, table):
        self.take_tasks()
        return self.version

    def reserve(self, state, pod, node_name):
        status, before = super().reserve(state, pod, node_name), self.version
        self.take_tasks()
        if self.version != before:
            self.handle.forget_answers()
        return status

    def settled(self, spec):
        return NOT_SETTLED  # every pod may change the typical ones

    def take_tasks(self):
        """Take the typical pods from those on nodes, when there are twice or half as many as last time."""
        table = self.handle.table
        count = int(table.pod_count.sum())
        if (count and count >= 2 * self.pods) or 2 * count < self.pods:
            pods = [pod for on_node in table.pods for pod in on_node.values()]
            kinds = Counter((p.requests.get("cpu", 0), p.requests.get("memory", 0)) for p in pods)
            self.tasks = typical(kinds)
            self.pods, self.version = count, self.version + 1

    def score_rows(self, state, pod, table, rows):
        milli = pod.requests.get(GPU, 0)
        kind = 0 if not milli else 1 if milli < WHOLE else 2
        weights = np.reshape(self.weights, (KINDS, -1))[kind]
        sums = np.rint(weights @ self.features(pod, table, rows, milli) * PRECISION)
        places = [place_of(table.names[row]) for row in table.numbers(rows).tolist()]
        return sums.astype(np.int64) * PLACES - np.array(places, dtype=np.int64)

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
        grown = self.growth(pod, table, rows)
        return scaled(cpu, memory, gpu, abs(cpu - memory), abs(cpu - gpu), *others, grown)

    def growth(self, pod, table, rows):
        """How much more of the node's cpu typical pods cannot use, once the pod is there, as a share of all."""
        offered = table.allocatable["cpu"][rows]
        before = [offered - table.requested["cpu"][rows]]
        before.append(table.allocatable["memory"][rows] - table.requested["memory"][rows])
        after = [b - pod.requests.get(n, 0) for b, n in zip(before, ("cpu", "memory"), strict=True)]
        grown = unusable_cpu(self.tasks, *after) - unusable_cpu(self.tasks, *before)
        return grown / np.maximum(offered, 1)

    def normalize(self, scores):
        values = np.unique(scores)
        ranks = len(values) - 1 - np.searchsorted(values, scores)
        return np.maximum(MAX_SCORE - ranks, 0)


@cache
def place_of(name):
    """The place of a node among equal ones: a number that depends on nothing but its name."""
    return crc32(name.encode()) % PLACES


def scaled(*features):
    """The features as one array."""
    return np.stack([scale * each for scale, each in zip(SCALES, features, strict=True)])


def typical(kinds):
    """The most frequent kinds of pods, by cpu and memory, with their shares."""
    frequent = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:TASKS]
    total = sum(count for _, count in frequent)
    return tuple((*kind, count / total) for kind, count in frequent)


def unusable_cpu(tasks, cpu, memory):
    """The free cpu of each node that a typical pod is expected to be unable to use, as it does not fit there."""
    cpu, memory = np.maximum(cpu, 0), np.maximum(memory, 0)
    lost = np.zeros(cpu.shape)
    for task_cpu, task_memory, share in tasks:
        lost += share * np.where((cpu >= task_cpu) & (memory >= task_memory), 0, cpu)
    return lost


def left_share(pod, table, rows, resource):
    """The free share of a resource once the pod is there; 0 where the node has none."""
    offered = table.allocatable[resource][rows]
    left = offered - table.requested[resource][rows] - pod.requests.get(resource, 0)
    return np.maximum(left, 0) / np.maximum(offered, 1)
