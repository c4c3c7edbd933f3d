"""FGD: the node and the GPU on which the pod adds least fragmentation.

"Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC'23).
Fragmentation is the part of the free GPUs that the tasks of the workload are expected not to be able to use
(`task_mix.py`). The points are 100 / (1 + exp(-d)), rounded down, where d is by how many GPUs the
fragmentation of the node falls.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Sequence

import msgspec
import numpy as np

from ..api.gpus import GPU_MILLI, GPU_MODEL, WHOLE, is_valid
from ..api.pod import Pod
from ..api.resources import CPU
from ..errors import InputError
from ..framework import MAX_SCORE, CycleState, Status
from ..table import Ints, NodeTable, Rows
from .gpu_share import GpuNodes, GpuPolicy
from .ledger import NO_GPUS
from .task_mix import POPULARITY, GpuTaskMix, Task, typical_tasks

LISTED_STEPS = [math.log(p / (MAX_SCORE - p)) for p in range(1, MAX_SCORE)]
STEPS = np.array(LISTED_STEPS)
"""Lower ends of the points: 100 / (1 + exp(-d)) is p at the p-th of them."""


class TaskArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """One of the typical tasks, as in a configuration."""

    milli_cpu: int = 0
    gpu_milli: int = 0
    models: tuple[str, ...] = ()
    weight: int = 1


class FgdArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The arguments of FGD: the typical tasks, or the part of the pods on nodes that they stand for."""

    tasks: tuple[TaskArgs, ...] = ()
    popularity: float = POPULARITY

    def __post_init__(self) -> None:
        if not 0 < self.popularity <= 1:
            got = f"got {self.popularity}"
            raise InputError(f"args: popularity: expected a number above 0, at most 1; {got}")
        for i, task in enumerate(self.tasks):
            if min(task.milli_cpu, task.gpu_milli, task.weight - 1) < 0:
                raise InputError(
                    f"args: tasks[{i}]: expected amounts from 0, a weight from 1; got {task}"
                )
            if not is_valid(task.gpu_milli):
                raise InputError(
                    f"args: tasks[{i}].gpuMilli: expected at most 1000, or a multiple of it; got {task.gpu_milli}"
                )


class FGD(GpuPolicy):
    """Scores by how much the fragmentation of each node would fall.

    Without `tasks` in its arguments, the typical tasks are those of the pods on nodes, read again whenever there are
    twice or half as many.
    """

    name = "FGD"
    args_type = FgdArgs

    def __init__(self, args: FgdArgs | None = None) -> None:
        self._args = args or FgdArgs()
        self._mix = GpuTaskMix(
            Task(task.milli_cpu, task.gpu_milli, frozenset(task.models), task.weight)
            for task in self._args.tasks
        )
        self._pods = 0
        """Number of pods on nodes when the tasks were read."""
        self._version = 0

    def cluster_key(self, table: NodeTable) -> Hashable:
        self._take_tasks()
        return self._version

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        status = super().reserve(state, pod, node_name)
        before = self._version
        self._take_tasks()
        if self._version != before:
            self.handle.forget_answers()
        return status

    def _take_tasks(self) -> None:
        """Take the typical tasks from the pods on nodes, if there are twice or half as many as last time.

        The points of all nodes must depend on the same tasks, so the tasks change between two pods only.
        """
        if self._args.tasks:
            return
        table = self.handle.table
        count = int(table.pod_count.sum())
        if (count and count >= 2 * self._pods) or 2 * count < self._pods:
            specs = (pod.spec for on_node in table.pods for pod in on_node.values())
            self._mix = GpuTaskMix(typical_tasks(specs, self._args.popularity))
            self._pods = count
            self._version += 1

    def points(self, nodes: GpuNodes) -> Ints:
        models = self._models(nodes.table, nodes.rows)
        mix = self._mix
        fallen = mix.fallen(nodes.free, nodes.free_cpu, models, nodes.milli, nodes.milli_cpu)
        points: Ints = STEPS.searchsorted(fallen / (max(mix.weight, 1) * WHOLE), side="right")
        return points

    def choose(self, free: Sequence[int], pod: Pod, row: int) -> tuple[int, ...]:
        milli = pod.requests[GPU_MILLI]
        if milli >= WHOLE:
            return super().choose(free, pod, row)
        mix, table = self._mix, self.handle.table
        left = table.allocatable.amount(CPU, row) - table.requested.amount(CPU, row)
        node = table.nodes[row]
        model = mix.model_number(node.labels.get(GPU_MODEL)) if node is not None else 0
        before = mix.unusable_of(mix.key_of(left + pod.requests.get(CPU, 0), model), free)
        key, best, gpus = mix.key_of(left, model), -1, NO_GPUS
        for amount in dict.fromkeys(free):  # the first of the GPUs with equal free amounts
            if amount >= milli:
                gpu = free.index(amount)
                then = [*free[:gpu], amount - milli, *free[gpu + 1 :]]
                fallen = (before - mix.unusable_of(key, then)) / (max(mix.weight, 1) * WHOLE)
                points = bisect_right(LISTED_STEPS, fallen)
                if points > best:
                    best, gpus = points, (gpu,)
        return gpus

    def _models(self, table: NodeTable, rows: Rows) -> Ints | None:
        """The number of the model of each node, for `GpuTaskMix`; None when no task names a model."""
        if not self._mix.names_models:
            return None
        column = table.labels.column(GPU_MODEL)
        numbers = [self._mix.model_number(model) for model in column.values]
        return np.array([*numbers, 0], dtype=np.int64)[column.codes[rows]]
