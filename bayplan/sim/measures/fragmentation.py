"""Fragmentation: free amounts that are of no use to the workload, because they are split over nodes.

`stranded_share` is about one typical pod. `unusable` is the measure of "Beware of Fragmentation: Scheduling GPU-Sharing
Workloads with Fragmentation Gradient Descent" (USENIX ATC'23), for any resource: the amount that a task drawn at random
from the workload is expected to be unable to use. For GPUs, `policies/task_mix.py` has the same in tables, since the
policy FGD needs it for every pod; a test compares both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec
import numpy as np

from ...api.pod import Pod
from ...table import Bools, Ints
from ..totals import MAIN_RESOURCES, PODS
from .amounts import Floats, NodeAmounts

MAX_TASKS = 500
"""Number of the most frequent kinds of tasks that a mix consists of."""
WHOLE_PART = 1000
"""One GPU, in thousandths."""


class RequestMix(msgspec.Struct, frozen=True):
    """The distribution of tasks in a workload: kinds of requests, and how frequent each is. Frequencies add up to 1."""

    tasks: tuple[tuple[Mapping[str, int], float], ...]

    @staticmethod
    def of(pods: Iterable[Pod]) -> RequestMix:
        """The requests of pods; beyond 500 kinds the most frequent ones."""
        return RequestMix.of_requests(pod.requests for pod in pods)

    @staticmethod
    def of_requests(requests: Iterable[Mapping[str, int]]) -> RequestMix:
        """The mix of such requests: cpu in milli, others in whole units."""
        counts = Counter(tuple(sorted(each.items())) for each in requests).most_common(MAX_TASKS)
        total = sum(count for _, count in counts)
        return RequestMix(tuple((dict(kind), count / total) for kind, count in counts))

    @property
    def resources(self) -> list[str]:
        """The resources that some task asks for."""
        return list(dict.fromkeys(name for requests, _ in self.tasks for name in requests))


def unusable(
    amounts: NodeAmounts,
    mix: RequestMix,
    resource: str,
    parts: Ints | None = None,
    whole: int = WHOLE_PART,
) -> Floats:
    """float64 per node: the free amount of `resource` that a task of the mix is expected to be unable to use.

    For a task that does not request the resource, or does not fit on the node by its requests, that is the whole free
    amount; for other tasks, the amount in parts that are too small. `parts` (nodes x parts, int64) has the free amount
    of each part of a node, such as its GPUs, a complete one being `whole`: a task asks for a share of one part, or for
    several complete ones. Without it the free amount of a node is one pool. Cordoned nodes have nothing free.
    """
    free = {name: amounts.free(name) for name in {*mix.resources, resource, PODS}}
    left = free[resource]
    if parts is not None:
        parts = np.where(amounts.is_open[:, None], parts, 0)
        left = parts.sum(axis=1)
    lost = np.zeros(len(amounts))
    for requests, share in mix.tasks:
        asked = requests.get(resource, 0)
        if not asked:
            lost += share * left
            continue
        fits = _fit(free, requests, None if parts is None else resource)
        rest: Ints | int = 0
        if parts is not None:
            too_small = parts < min(asked, whole)
            fits &= (~too_small).sum(axis=1) >= max(asked // whole, 1)
            rest = np.where(too_small, parts, 0).sum(axis=1)
        lost += share * np.where(fits, rest, left)
    return lost


def _fit(free: Mapping[str, Ints], requests: Mapping[str, int], apart: str | None) -> Bools:
    """bool per node: whether the requests fit, without the resource that is checked apart."""
    fits: Bools = free[PODS] > 0
    for name, amount in requests.items():
        if name != apart:
            fits = fits & (free[name] >= amount)
    return fits


def free_and_lost(
    amounts: NodeAmounts, mix: RequestMix, resource: str, parts: Ints | None = None
) -> tuple[int, float]:
    """The free amount of a resource on all nodes, and the part of it that is expected to be unusable."""
    free = amounts.free(resource) if parts is None else parts[amounts.is_open]
    return int(free.sum()), float(unusable(amounts, mix, resource, parts).sum())


def fragmentation(
    amounts: NodeAmounts, mix: RequestMix, resource: str, parts: Ints | None = None
) -> float:
    """The expected unusable share of the free amount of a resource; 0 to 1, and 0 when nothing is free."""
    free, lost = free_and_lost(amounts, mix, resource, parts)
    return lost / free if free else 0.0


def stranded_share(amounts: NodeAmounts, typical: Mapping[str, int]) -> float:
    """Share of the free resources that typical pods cannot use because of fragmentation; 0 to 1.

    With k typical pods that fit on the nodes as they are, and K that would fit if all free
    resources were on one node, it is 1 - k/K. Cordoned nodes do not count.
    """
    wanted = {name: amount for name, amount in typical.items() if amount > 0}
    if not wanted or not amounts.is_open.any():
        return 0.0
    totals = (int(amounts.free(name).sum()) // amount for name, amount in wanted.items())
    together = min(int(amounts.free(PODS).sum()), *totals)
    return 1 - int(room_for(amounts, wanted).sum()) / together if together else 0.0


def room_for(amounts: NodeAmounts, typical: Mapping[str, int]) -> Ints:
    """int64 per node: how many more typical pods fit; 0 on cordoned nodes."""
    rooms = [amounts.free(name) // amount for name, amount in typical.items() if amount > 0]
    fits: Ints = np.minimum.reduce([amounts.free(PODS), *rooms])
    return fits


def typical_request(
    pods: Iterable[Pod], resources: Sequence[str] = MAIN_RESOURCES
) -> dict[str, int]:
    """The median requests of the pods, in the scheduler's units: cpu in milli."""
    requests = [pod.requests for pod in pods]
    if not requests:
        return {}
    medians = {name: median(r.get(name, 0) for r in requests) for name in resources}
    return {name: int(amount) for name, amount in medians.items() if amount}
