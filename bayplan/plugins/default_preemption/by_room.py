"""By room: the victims on one node for a pod that only needs room, worked out on plain numbers.

Holds the same answers as `victims.py` and as `dry_run.py`, which finds them on many nodes at once; a property test
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...amounts import POD_COUNT, FitRule
from ...api.pod import Pod
from ...framework import Victims
from ...table import NodeTable
from ...table.pod_matrix import by_importance
from .budgets import Budgets


@dataclass(frozen=True, slots=True)
class Room:
    """What a pod needs, the pods it may preempt (those below `priority`), and the disruption budgets."""

    demands: FitRule
    priority: int
    budgets: Budgets


def select_by_room(
    table: NodeTable, row: int, room: Room, rivals: Sequence[Pod]
) -> Victims | list[str]:
    """The victims on `row`, where `rivals` count as being there; or the resources that are short without any victim."""
    here = table.pods[row].values()
    lower = [pod for pod in here if pod.priority < room.priority]
    free = _free_without(table, row, room, lower, rivals)
    short = [resource for resource, left in free.items() if left < 0]
    if short:
        return short
    violating, harmless = room.budgets.split(by_importance(lower))
    victims: list[Pod] = []
    violations = 0
    for number, pod in enumerate((*violating, *harmless)):
        usage = pod.usage
        left = {name: amount - usage.get(name, 0) for name, amount in free.items()}
        if POD_COUNT in free:
            left[POD_COUNT] = free[POD_COUNT] - 1
        if min(left.values(), default=0) >= 0:
            free = left
        else:
            victims.append(pod)
            violations += number < len(violating)
    if violating and harmless:
        victims = by_importance(victims)
    return Victims(table.names[row], victims, violations)


def _free_without(
    table: NodeTable, row: int, room: Room, lower: Sequence[Pod], rivals: Sequence[Pod]
) -> dict[str, int]:
    """What is left of each resource with the pod there and the pods of lower priority gone; negative where short."""
    offered, used = table.allocatable, table.requested
    free = {}
    for resource, wanted in room.demands.amounts.items():
        if resource == POD_COUNT:
            taken = len(table.pods[row]) - len(lower) + len(rivals)
        else:
            taken = used.amount(resource, row)
            for pod in lower:
                taken -= pod.usage.get(resource, 0)
            for pod in rivals:
                taken += pod.usage.get(resource, 0)
        free[resource] = offered.amount(resource, row) - taken - wanted
    return free
