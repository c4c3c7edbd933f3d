"""Promises: shares of GPUs that pods on nodes were given, though no GPU of the node has them.

A scheduler without a filter per GPU adds up the shares of a node: two halves on two GPUs count as a whole. Pods on
such a node were promised more than it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...api.gpus import GPU_MILLI, WHOLE, gpu_count
from ...api.pod import Pod
from ..outcomes import NodeUse
from .amounts import FreeParts

MAX_STATES = 500
"""States of a search for an assignment, after which best fit decides."""


def overpromised_amounts(
    nodes: Sequence[NodeUse], pods: Iterable[Pod], parts: FreeParts
) -> dict[str, list[int]]:
    """By resource with shares: the amount on each remaining node that pods were promised beyond what its parts have.
    If a plugin accounts for the parts, these are the amounts that it allocated to no pod. Otherwise a node keeps its
    promises if its pods can be assigned to its GPUs in some way.
    """
    left = [use for use in nodes if use.removed_s is None]
    if not any(use.node.allocatable.get(GPU_MILLI) for use in left):
        return {}
    if GPU_MILLI in parts:
        free = np.asarray(parts[GPU_MILLI]).sum(axis=1).tolist()
        return {GPU_MILLI: [max(n - _rest(use), 0) for use, n in zip(left, free, strict=True)]}
    wanted: dict[str, list[int]] = {}
    for pod in pods:
        milli = pod.requests.get(GPU_MILLI, 0)
        if milli and not pod.is_finished:
            wanted.setdefault(pod.node_name, []).append(milli)
    gpus = {use.node.name: use.node.allocatable.get(GPU_MILLI, 0) // WHOLE for use in left}
    return {GPU_MILLI: [unassigned(count, wanted.get(name, ())) for name, count in gpus.items()]}


def _rest(use: NodeUse) -> int:
    """The capacity minus the requests of pods on the node."""
    return use.node.allocatable.get(GPU_MILLI, 0) - use.after.get(GPU_MILLI, 0)


def unassigned(gpus: int, wanted: Iterable[int]) -> int:
    """The amount of requests that find no GPU: 0 if some assignment has all, otherwise what best fit leaves over."""
    sizes = sorted(wanted, reverse=True)
    free = [WHOLE] * gpus
    lost = 0
    for milli in sizes:
        size, count = min(milli, WHOLE), gpu_count(milli)
        found = sorted((left, i) for i, left in enumerate(free) if left >= size)[:count]
        if len(found) < count:
            lost += milli
            continue
        for _, i in found:
            free[i] -= size
    if not lost:
        return 0
    parts = [size for milli in sizes for size in [min(milli, WHOLE)] * gpu_count(milli)]
    return 0 if _is_assignable(parts, gpus) else lost


def _is_assignable(sizes: Sequence[int], gpus: int) -> bool:
    """Whether all sizes fit on the GPUs; False when that is not found within the limit of states."""
    if sum(sizes) > gpus * WHOLE:
        return False
    seen: set[tuple[int, tuple[int, ...]]] = set()
    stack: list[tuple[int, tuple[int, ...]]] = [(0, (WHOLE,) * gpus)]
    while stack and len(seen) < MAX_STATES:
        place, free = stack.pop()
        if place == len(sizes):
            return True
        if (place, free) in seen:
            continue
        seen.add((place, free))
        for left in sorted(
            set(free), reverse=True
        ):  # the last one is tried first, which is the fullest
            if left >= sizes[place]:
                i = free.index(left)
                changed = (*free[:i], left - sizes[place], *free[i + 1 :])
                stack.append((place + 1, tuple(sorted(changed))))
    return False


def measure_promises(
    amounts: Mapping[str, Sequence[int]], nodes: Sequence[NodeUse]
) -> dict[str, float]:
    """The measures of promises by name: shares of what all nodes offer, and a number of nodes."""
    left = [use for use in nodes if use.removed_s is None]
    found: dict[str, float] = {}
    for name, lost in amounts.items():
        offered = sum(use.node.allocatable.get(name, 0) for use in left)
        used = sum(use.after.get(name, 0) for use in left)
        found[f"{name}Overpromised"] = sum(lost) / offered if offered else 0.0
        found[f"{name}OverpromisedNodes"] = sum(1 for amount in lost if amount)
        found[f"{name}Delivered"] = (used - sum(lost)) / offered if offered else 0.0
    return found
