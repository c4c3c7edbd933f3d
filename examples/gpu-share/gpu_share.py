"""GpuShare: a share of a GPU is placed on a single GPU, and small shares are packed.

A GPU is 1,000 of the resource bayplan.dev/gpu-milli. NodeResourcesFit sums up the shares of a node; this plugin
checks each GPU: 600 free on one and 600 on the other are not enough for a pod of 1,000. Below 1,000 a pod requests a
share of one GPU, otherwise whole ones.

    bayplan trace import openb traces/openb --demand 130 --to openb.json
    bayplan simulate -f openb.json --plugins examples/gpu-share/gpu_share.py --config examples/gpu-share/config.yaml
"""

import numpy as np

from bayplan.framework import (
    MAX_SCORE,
    NODE_ROW,
    SUCCESS,
    FilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Verdict,
    unschedulable,
)

GPU_MILLI = "bayplan.dev/gpu-milli"
WHOLE = 1000
REASON = "no GPU has so much left"


class GpuShare(FilterPlugin, ScorePlugin, ReservePlugin):
    """Records which pod is on which GPU; an unknown pod is assigned to the best fit, in the order of the node.

    Nodes with equal free amounts of their GPUs form a group: each group is judged once, for any
    number of nodes. With scope NODE_ROW the plugin is asked about the nodes that changed since the last pod of a spec.
    """

    name = "GpuShare"
    scope = NODE_ROW  # the pods of the node determine the result, as each keeps its GPUs

    def __init__(self):
        self.gpus_of = {}  # pod uid: the GPUs it has
        self.groups = {}  # free amount of each GPU: the number of that group
        self.left_by = {}  # group and amount: what is left, None where it does not fit

    def spec_key(self, spec):
        return spec.requests.get(GPU_MILLI, 0)

    # One node: used for an edited copy of a node

    def filter_node(self, state, pod, node):
        fits = self.left(self.free_on(node.table, node.row), pod) is not None
        return SUCCESS if fits else unschedulable(REASON)

    def score_node(self, state, pod, node):
        """The less is left on the used GPUs, the better: shares are packed, whole GPUs stay free."""
        left = self.left(self.free_on(node.table, node.row), pod)
        return 0 if left is None else MAX_SCORE - left * MAX_SCORE // WHOLE

    # All nodes: the same by groups

    def filter_rows(self, state, pod, table, rows):
        verdict = Verdict.accept(table, rows)
        if pod.requests.get(GPU_MILLI, 0):
            verdict.reject(self.by_group(table, rows, pod) < 0, REASON)
        return verdict

    def score_rows(self, state, pod, table, rows):
        left = self.by_group(table, rows, pod)
        return np.where(left < 0, 0, MAX_SCORE - left * MAX_SCORE // WHOLE)

    def by_group(self, table, rows, pod):
        """What is left on the GPUs that the pod would use, per row; -1 where it does not fit."""
        numbers = [self.group(table, row) for row in table.numbers(rows).tolist()]
        groups = list(self.groups)
        found, places = np.unique(numbers, return_inverse=True)
        lefts = [self.left(groups[number], pod) for number in found.tolist()]
        return np.array([-1 if left is None else left for left in lefts], dtype=np.int64)[places]

    def group(self, table, row):
        return self.groups.setdefault(self.free_on(table, row), len(self.groups))

    def left(self, free, pod):
        """What is left on the GPUs that the pod would use; None where it does not fit, 0 when it
        uses none."""
        wanted = pod.requests.get(GPU_MILLI, 0)
        if (free, wanted) not in self.left_by:
            gpus = self.choose(free, wanted)
            left = sum(free[gpu] for gpu in gpus) - wanted if gpus else None
            self.left_by[free, wanted] = 0 if not wanted else left
        return self.left_by[free, wanted]

    # Which GPU

    def reserve(self, state, pod, node_name):
        wanted = pod.requests.get(GPU_MILLI, 0)
        if wanted:
            table = self.handle.table
            free = self.free_on(table, table.row_of[node_name], without=pod.uid)
            self.gpus_of[pod.uid] = self.choose(free, wanted)
        return SUCCESS

    def unreserve(self, state, pod, node_name):
        self.gpus_of.pop(pod.uid, None)

    def free_on(self, table, row, without=""):
        """The free amount of each GPU of the node."""
        free = [WHOLE] * (int(table.allocatable[GPU_MILLI][row]) // WHOLE)
        for uid, pod in table.pods[row].items():
            wanted = pod.requests.get(GPU_MILLI, 0)
            if not wanted or uid == without:
                continue
            gpus = self.gpus_of.get(uid)
            if gpus is None:
                gpus = self.choose(free, wanted)
                if pod.node_name:  # a real pod, not one of a what-if
                    self.gpus_of[uid] = gpus
            for gpu in gpus:
                free[gpu] -= min(wanted, WHOLE)
        return tuple(free)

    @staticmethod
    def choose(free, wanted):
        """The GPUs for a pod: the fullest that has room for a share, or the requested number of
        empty ones."""
        each, count = min(wanted, WHOLE), max(wanted // WHOLE, 1)
        fitting = sorted((left, gpu) for gpu, left in enumerate(free) if left >= each)
        return [gpu for _, gpu in fitting[:count]] if len(fitting) >= count else []
