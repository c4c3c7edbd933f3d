"""Candidates: which of several nodes to preempt on.

Mirrors pickOneNodeForPreemption of pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ...framework import Victims
from ...table import Bools, Ints
from ...table.pod_matrix import start_of

PRIORITY_OFFSET = 2**31  # makes every priority positive, so that fewer victims weigh less


def best_candidate(candidates: Iterable[Victims]) -> Victims:
    """The node whose victims are missed least; of equal ones the latest started, then the first by name."""
    ordered = sorted(candidates, key=lambda victims: victims.node_name)
    cheapest = min(cost(victims) for victims in ordered)
    tied = [victims for victims in ordered if cost(victims) == cheapest]
    return max(tied, key=earliest_start)  # of equal ones, max takes the first


def best_row(runs: Sequence[Costs], names: Sequence[str]) -> int | None:
    """The same choice among rows that were judged together; None when none is a candidate."""
    best: tuple[Any, ...] | None = None
    for run in runs:
        left = np.flatnonzero(run.is_candidate)
        for costs, latest in (
            (run.violations, False),
            (run.highest, False),
            (run.total, False),
            (run.count, False),
            (run.earliest_start_s, True),
        ):
            if len(left) > 1:
                values = costs[left]
                left = left[values == (values.max() if latest else values.min())]
        for position in left.tolist():
            row = int(run.rows[position])
            key = (
                int(run.violations[position]),
                int(run.highest[position]),
                int(run.total[position]),
                int(run.count[position]),
                -int(run.earliest_start_s[position]),
                names[row],
                row,
            )
            best = key if best is None else min(best, key)
    return None if best is None else best[-1]


class Costs(Protocol):
    """What choosing each of many rows would cost."""

    rows: Ints
    is_candidate: Bools
    violations: Ints
    highest: Ints
    total: Ints
    count: Ints
    earliest_start_s: Ints


def cost(victims: Victims) -> tuple[int, int, int, int]:
    """Broken budgets, the highest priority lost, the sum of priorities lost, the number of pods."""
    priorities = [pod.priority for pod in victims.pods]
    total = sum(priority + PRIORITY_OFFSET for priority in priorities)
    return victims.pdb_violations, max(priorities), total, len(priorities)


def earliest_start(victims: Victims) -> int:
    """When the first of the most important victims started."""
    highest = max(pod.priority for pod in victims.pods)
    return min(start_of(pod) for pod in victims.pods if pod.priority == highest)
