"""Fill: clusters that are filled by many candidates for the weights of policy.py at once, without a scheduler.

The same filters, features and choices as with the plugin on pods that only arrive, as arrays over candidates and nodes,
for training; only that the typical pods are those that arrived, not those on nodes. It is many times as fast. Results
are compared with the scheduler itself (train.py).
"""

from collections import Counter

import numpy as np
from policy import PLACES, PRECISION, place_of, scaled, typical, unusable_cpu

WHOLE, GPUS, MAX_PODS = 1000, 8, 110


def fill(weights, nodes, pods):
    """Pods that find no node, for each candidate: `weights` is candidates x kinds of pods x features.

    `nodes` and `pods` have cpu (milli), memory (MiB) and GPUs (thousandths), a row each.
    """
    cluster = Filled(len(weights), np.asarray(nodes))
    pending = np.zeros(len(weights), dtype=np.int64)
    arrived = Counter()
    for number, (cpu, memory, milli) in enumerate(np.asarray(pods).tolist()):
        if number & (number - 1) == 0:  # 1, 2, 4, 8, ...
            cluster.tasks = typical(arrived)
        pending += ~cluster.place(weights, cpu, memory, milli)
        arrived[cpu, memory] += 1
    return pending


class Filled:
    """The state of one cluster under each candidate: arrays of candidates x nodes."""

    def __init__(self, candidates, nodes):
        self.offered = nodes.astype(np.float64)
        self.free = np.repeat(self.offered[None, :, :2], candidates, axis=0)
        self.pods = np.zeros((candidates, len(nodes)), dtype=np.int64)
        count = nodes[:, 2] // WHOLE
        gpus = np.where(np.arange(max(GPUS, count.max())) < count[:, None], WHOLE, 0)
        self.gpus = np.repeat(gpus[None], candidates, axis=0)
        self.of_all = np.arange(candidates)
        self.places = np.array([place_of(f"node-{i}") for i in range(len(nodes))]) / PLACES
        self.tasks = ()

    def place(self, weights, cpu, memory, milli):
        """Place a pod under each candidate; returns for which it fits."""
        left = self.free - np.array([cpu, memory])
        fits = (left >= 0).all(axis=2) & (self.pods < MAX_PODS)
        whole = (self.gpus == WHOLE).sum(axis=2)
        share_left = np.zeros(whole.shape)
        if 0 < milli < WHOLE:
            smallest = np.where(self.gpus >= milli, self.gpus, 2 * WHOLE).min(axis=2)
            fits &= smallest <= WHOLE
            share_left = (smallest - milli) / WHOLE
            after = whole - (smallest == WHOLE)
        else:
            fits &= whole >= milli // WHOLE
            after = whole - milli // WHOLE
        kind = 0 if not milli else 1 if milli < WHOLE else 2
        features = self.features(left, milli, share_left, after)
        scores = np.einsum("fpn,pf->pn", features, weights[:, kind])
        scores = np.rint(scores * PRECISION) - self.places
        chosen = np.where(fits, scores, -np.inf).argmax(axis=1)
        is_placed = fits[self.of_all, chosen]
        self.take(self.of_all[is_placed], chosen[is_placed], (cpu, memory, milli))
        return is_placed

    def features(self, left, milli, share_left, whole):
        """As in policy.py: features x candidates x nodes."""
        offered = np.maximum(self.offered, 1)
        cpu, memory = (np.maximum(left[:, :, i], 0) / offered[:, i] for i in (0, 1))
        free = self.gpus.sum(axis=2)
        gpu = np.maximum(free - milli, 0) / offered[:, 2]
        is_idle = (free == self.offered[:, 2]) & (self.offered[:, 2] > 0)
        size = np.broadcast_to(self.offered[:, 2] / WHOLE / GPUS, cpu.shape)
        others = (share_left, is_idle, size, whole / GPUS)
        after = unusable_cpu(self.tasks, left[:, :, 0], left[:, :, 1])
        before = unusable_cpu(self.tasks, self.free[:, :, 0], self.free[:, :, 1])
        grown = (after - before) / offered[:, 0]
        return scaled(cpu, memory, gpu, abs(cpu - memory), abs(cpu - gpu), *others, grown)

    def take(self, candidates, rows, amounts):
        """Count the pod on its node; a share gets the fullest GPU with room, whole ones the first that are free."""
        cpu, memory, milli = amounts
        self.free[candidates, rows] -= (cpu, memory)
        self.pods[candidates, rows] += 1
        if not milli:
            return
        gpus = self.gpus[candidates, rows]
        if milli < WHOLE:
            place = np.where(gpus >= milli, gpus, 2 * WHOLE).argmin(axis=1)
            gpus[np.arange(len(gpus)), place] -= milli
        else:
            is_free = gpus == WHOLE
            gpus[is_free & (is_free.cumsum(axis=1) <= milli // WHOLE)] = 0
        self.gpus[candidates, rows] = gpus
