"""Candidates: the choice of the node to preempt on.

Mirrors pickOneNodeForPreemption of pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...amounts.removing import PRIORITY_OFFSET
from ...framework.victims import Victims
from ...table.pod_matrix import start_of

NO_VICTIMS = "No preemption victims found for incoming pod"


def best_candidate(candidates: Iterable[Victims]) -> Victims:
    """The node with the least important victims; ties go to the latest start, then to the first name."""
    ordered = sorted(candidates, key=lambda victims: victims.node_name)
    cheapest = min(cost(victims) for victims in ordered)
    tied = [victims for victims in ordered if cost(victims) == cheapest]
    return max(tied, key=earliest_start)  # of equal ones, max takes the first


def cost(victims: Victims) -> tuple[int, int, int, int]:
    """Broken budgets, the priority of the most important victim, the sum of priorities lost, the number of pods."""
    priorities = [pod.priority for pod in victims.pods]
    total = sum(priority + PRIORITY_OFFSET for priority in priorities)
    return victims.pdb_violations, priorities[0], total, len(priorities)


def earliest_start(victims: Victims) -> int:
    """Time when the first of the most important victims started."""
    highest = max(pod.priority for pod in victims.pods)
    return min(start_of(pod) for pod in victims.pods if pod.priority == highest)
