"""DryRun: the victims on many nodes at once, for pods that only need room.

When every filter that uses the pods of a node only adds up what they request, "does it fit without these pods" is
arithmetic, and `victims.py`'s procedure (remove all, put back the most important first) is done for all nodes
together, one place after the other. Holds the same answers; a property test says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...amounts import POD_COUNT, FitRule
from ...api.workloads import PodDisruptionBudget
from ...framework.reserved import Reserved
from ...table import Bools, Ints, NodeTable
from ...table.pod_matrix import PodMatrix
from .budgets import Budgets
from .by_room import Room
from .candidates import PRIORITY_OFFSET


@dataclass(slots=True)
class DryRun:
    """What came of it for each row: whether it is a candidate, and what choosing it would cost.

    `costs` are, by row: broken budgets, highest priority, sum of priorities, number of victims, earliest start.
    `short` has a bit for each resource that is short even with all lower pods gone.
    """

    is_candidate: Bools
    costs: Ints
    short: Ints


def dry_run(
    table: NodeTable, matrix: PodMatrix, rows: Ints, room: Room, reserved: Reserved
) -> DryRun:
    """Find the victims on `rows`; `reserved` counts as being there already."""
    amounts = _amounts(matrix, rows, list(room.demands.amounts))
    lower = matrix.priority[rows] < room.priority
    free = _free(table, rows, room.demands, reserved)
    free = free + np.where(lower[:, :, None], amounts, 0).sum(axis=1)
    short = free < 0
    violating = _violating(matrix, rows, lower, room.budgets)
    victim = _put_back(free, amounts, lower, violating)
    fits = ~short.any(axis=1)
    victim &= fits[:, None]
    bits = (short << np.arange(short.shape[1])).sum(axis=1)
    return DryRun(fits & victim.any(axis=1), _costs(matrix, rows, victim, violating), bits)


def _amounts(matrix: PodMatrix, rows: Ints, resources: Sequence[str]) -> NDArray[np.int64]:
    """int64 [rows, places, resources]: what each pod uses of what is asked for."""
    known = [matrix.index_of(resource) for resource in resources]
    amounts = np.zeros((len(rows), matrix.priority.shape[1], len(resources)), dtype=np.int64)
    for position, index in enumerate(known):
        if index is not None:
            amounts[:, :, position] = matrix.amounts[rows, :, index]
    return amounts


def _free(table: NodeTable, rows: Ints, demands: FitRule, reserved: Reserved) -> NDArray[np.int64]:
    """int64 [rows, resources]: what would be left with the pod on the row; negative where it is short."""
    free = np.empty((len(rows), len(demands.amounts)), dtype=np.int64)
    for position, (resource, wanted) in enumerate(demands.amounts.items()):
        used = table.pod_count if resource == POD_COUNT else table.requested[resource]
        free[:, position] = table.allocatable[resource][rows] - used[rows] - wanted
        if reserved:
            free[:, position] -= reserved.usage(resource)[rows]
    return free


def _violating(matrix: PodMatrix, rows: Ints, lower: Bools, budgets: Budgets) -> Bools:
    """bool [rows, places]: removing the pod, after the more important ones, would exceed a budget."""
    violating = np.zeros(lower.shape, dtype=np.bool_)
    if not budgets.listed:
        return violating
    labels = np.where(lower, matrix.labels[rows], 0)
    protected: dict[int, tuple[PodDisruptionBudget, list[int]]] = {}
    for number in np.unique(labels).tolist():
        sample = matrix.label_samples[number]
        for budget in budgets.of(sample) if sample is not None else ():
            protected.setdefault(id(budget), (budget, []))[1].append(number)
    for budget, numbers in protected.values():
        matched = np.isin(labels, numbers)
        _let_go_disrupted(matrix, rows, matched, budget)
        over = np.cumsum(matched, axis=1) > budget.status.disruptions_allowed
        violating |= matched & over
    return violating


def _let_go_disrupted(
    matrix: PodMatrix, rows: Ints, matched: Bools, budget: PodDisruptionBudget
) -> None:
    """Take the pods out of `matched` that the budget counts as gone already."""
    if budget.disrupted_pods:
        for position, place in np.argwhere(matched):
            pod = matrix.pods[rows[position]][place]
            matched[position, place] = pod.name not in budget.disrupted_pods


def _put_back(
    free: NDArray[np.int64], amounts: NDArray[np.int64], lower: Bools, violating: Bools
) -> Bools:
    """bool [rows, places]: the pods for which there is no room once the more important ones are back."""
    # Those that break a budget come first, then the others, in order of importance; who may stay comes last.
    order = np.argsort(np.where(lower, ~violating, 2), axis=1, kind="stable")
    victim = np.zeros(lower.shape, dtype=np.bool_)
    every_row = np.arange(len(order))
    for turn in range(order.shape[1]):
        place = order[:, turn]
        removable = lower[every_row, place]
        if not removable.any():
            break
        left = free - amounts[every_row, place]
        stays = (left >= 0).all(axis=1) & removable
        free = np.where(stays[:, None], left, free)
        victim[every_row, place] = removable & ~stays
    return victim


def _costs(matrix: PodMatrix, rows: Ints, victim: Bools, violating: Bools) -> Ints:
    """int64 [5, rows]: what choosing each row would cost."""
    lowest, latest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    priority = matrix.priority[rows]
    highest = np.where(victim, priority, lowest).max(axis=1, initial=lowest)
    of_highest = victim & (priority == highest[:, None])
    start_s = np.where(of_highest, matrix.start_s[rows], latest)
    return np.stack(
        (
            (victim & violating).sum(axis=1),
            highest,
            np.where(victim, priority + PRIORITY_OFFSET, 0).sum(axis=1),
            victim.sum(axis=1),
            start_s.min(axis=1, initial=latest),
        )
    )
