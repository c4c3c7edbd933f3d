"""Task mix: which part of the free GPUs the tasks of a workload cannot use, its fragmentation.

The definition of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC'23). A task is a kind of pod with its share in the workload. For one task the free part of a node's
GPUs is unusable as a whole if the task asks for no GPU, is not for GPUs of this model, or does not fit: too
little cpu is free, or too few GPUs have as much left as it wants of each. If it fits, only the GPUs that have less
left are unusable. The fragmentation of a node is the mean over all tasks, weighted by their shares.

Weights are whole numbers and so are the sums, which makes every order of summation give the same result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..api.gpus import GPU_MILLI, WHOLE, gpu_count, models_of
from ..api.pod_spec import PodSpec
from ..api.resources import CPU
from ..table import Ints

POPULARITY = 0.95
"""The part of the pods that typical tasks stand for, as in the paper's experiments."""


class Task(NamedTuple):
    """A kind of pod: cpu in milli, GPUs in thousandths, the models that it can use (all if empty), and the number of
    such pods.
    """

    milli_cpu: int
    gpu_milli: int
    models: frozenset[str] = frozenset()
    weight: int = 1


def typical_tasks(specs: Iterable[PodSpec], popularity: float = POPULARITY) -> list[Task]:
    """The most frequent kinds of pods that make up this part of them, the most frequent first.

    Of equally frequent ones the larger comes first. Memory does not count.
    """
    kinds: Counter[Task] = Counter()
    for spec, count in Counter(specs).items():
        kinds[task_of(spec)] += count
    listed = sorted(kinds.items(), key=lambda entry: (entry[1], _size(entry[0])), reverse=True)
    wanted, found, tasks = popularity * kinds.total(), 0, []
    for task, count in listed:
        if found >= wanted:
            break
        tasks.append(task._replace(weight=count))
        found += count
    return tasks


def task_of(spec: PodSpec) -> Task:
    """The kind of a pod with this spec."""
    requests = spec.requests
    return Task(requests.get(CPU, 0), requests.get(GPU_MILLI, 0), models_of(spec))


def _size(task: Task) -> tuple[int, int, list[str]]:
    return task.milli_cpu, task.gpu_milli, sorted(task.models)


class GpuTaskMix:
    """The tasks of a workload, as tables from which the unusable part of many nodes is read.

    Two facts make tables possible. A GPU's contribution depends on the free part of that GPU alone, as long as tasks
    want one GPU or less; for tasks that want more, the number of GPUs that are free as a whole counts. And which
    tasks have enough cpu, on a certain model, changes at few amounts of free cpu: these and the models give the
    `keys`, one row of the tables each.
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        tasks = list(tasks)
        self.weight: int = sum(task.weight for task in tasks)
        """Divide by it to get thousandths of GPUs."""
        self._cpu_list = sorted({task.milli_cpu for task in tasks})
        self._cpus = np.array(self._cpu_list, dtype=np.int64)
        named = sorted({model for task in tasks for model in task.models})
        self._models = {model: place for place, model in enumerate(named, start=1)}
        most = max([gpu_count(task.gpu_milli) for task in tasks], default=0)
        rows = (len(self._models) + 1) * (len(self._cpus) + 1)
        used = np.zeros((rows, WHOLE + 1), dtype=np.int64)
        self._spared = np.zeros((rows, most + 1), dtype=np.int64)
        self._has_several = most > 1
        for task in tasks:
            keys = self._keys_of(task)
            if gpu_count(task.gpu_milli) > 1:
                self._spared[keys, gpu_count(task.gpu_milli) :] += task.weight
            elif task.gpu_milli:
                used[keys, task.gpu_milli :] += task.weight
        self._unused: Ints = np.arange(WHOLE + 1) * (self.weight - used)

    def _keys_of(self, task: Task) -> Ints:
        """int64: the keys of nodes with enough cpu and a fitting model for the task."""
        above = np.arange(int(np.searchsorted(self._cpus, task.milli_cpu)) + 1, len(self._cpus) + 1)
        models = [self._models[model] for model in task.models] or range(len(self._models) + 1)
        starts = np.array(models, dtype=np.int64) * (len(self._cpus) + 1)
        keys: Ints = (starts[:, None] + above).ravel()
        return keys

    @property
    def names_models(self) -> bool:
        """Whether some task is for certain models only."""
        return bool(self._models)

    def model_number(self, model: str | None) -> int:
        """The number of a model for `keys`; 0 for all that no task names."""
        return self._models.get(model or "", 0)

    def keys(self, milli_cpu: Ints, models: Ints | None = None) -> Ints:
        """int64 per node: its row in the tables, by its free cpu and the number of its model."""
        found: Ints = np.searchsorted(self._cpus, milli_cpu, side="right")
        return found if models is None else found + models * (len(self._cpus) + 1)

    def fallen(
        self, free: Ints, free_cpu: Ints, models: Ints | None, milli: int, milli_cpu: int
    ) -> Ints:
        """int64 per node: by how much the unusable part falls, times `weight`, when a pod with these requests comes.

        For a share, that is on the best of the GPUs with room; a very low number where none has room. Meaningless
        where fewer GPUs are free than the pod wants. `free` is that of `unusable`; no `models`: 0 for all.
        """
        before = self.unusable(self.keys(free_cpu, models), free)
        keys = self.keys(free_cpu - milli_cpu, models)
        if not milli or milli >= WHOLE:
            return before - self.unusable_with_whole(keys, free, milli // WHOLE)
        by_gpu = before[:, None] - self.unusable_with_share(keys, free, milli)
        worst = np.iinfo(np.int64).min
        fallen: Ints = np.where(free >= milli, by_gpu, worst).max(axis=1, initial=worst)
        return fallen

    def unusable(self, keys: Ints, free: Ints) -> Ints:
        """int64 per node: its unusable part in thousandths of a GPU, times `weight`.

        `free` has a row per node and a column per GPU, with its free amount (0 to 1,000); 0 for GPUs that the node does
        not have.
        """
        return self.unusable_with_whole(keys, free, 0)

    def unusable_with_whole(self, keys: Ints, free: Ints, count: int) -> Ints:
        """int64 per node: the same once `count` of the GPUs that are free as a whole are given away.

        `keys` are those after it. Meaningless where fewer are free.
        """
        unused: Ints = self._unused[keys[:, None], free].sum(axis=1)
        if count:
            unused -= count * self._unused[keys, WHOLE]
        if self._has_several:
            full = (free == WHOLE).sum(axis=1)
            unused -= self._spare(keys, np.maximum(full - count, 0))
        return unused

    def unusable_with_share(self, keys: Ints, free: Ints, milli: int) -> Ints:
        """int64 per node and GPU: the same after `milli` of that GPU is allocated, with the `keys` of the result.
        Meaningless where less than `milli` is free.
        """
        by_key = keys[:, None]
        unused = self._unused[by_key, free]
        then: Ints = self._unused[by_key, np.maximum(free - milli, 0)]
        then += unused.sum(axis=1)[:, None] - unused
        if self._has_several:
            whole = free == WHOLE
            then -= self._spare(by_key, whole.sum(axis=1)[:, None] - whole)
        return then

    def unusable_of(self, key: int, free: Sequence[int]) -> int:
        """`unusable` of one node with this key."""
        unused, full = self._unused_lists[key], free.count(WHOLE)
        spared = self._spared.item(key, min(full, self._spared.shape[1] - 1))
        return sum([unused[left] for left in free]) - spared * full * WHOLE

    @cached_property
    def _unused_lists(self) -> list[list[int]]:
        listed: list[list[int]] = self._unused.tolist()
        return listed

    def key_of(self, milli_cpu: int, model: int = 0) -> int:
        """`keys` of one node."""
        cpus: list[int] = self._cpu_list
        return bisect_right(cpus, milli_cpu) + model * (len(cpus) + 1)

    def _spare(self, keys: Ints, full: Ints) -> Ints:
        """Part of `full` GPUs, free as a whole, that tasks for several GPUs can use, times their weight."""
        found: Ints = self._spared[keys, np.minimum(full, self._spared.shape[1] - 1)]
        return found * full * WHOLE
