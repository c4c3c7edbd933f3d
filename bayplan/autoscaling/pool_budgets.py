"""Pool budgets: how many nodes of a pool may be taken away now, for a reason."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..api.text.cron import parse_cron
from ..planning.pools import NodeBudget, NodePool

EMPTY, UNDERUTILIZED = "empty", "underutilized"
"""Reasons, which budgets have with a capital letter."""


def allowed_disruptions(
    pool: NodePool, reason: str, now: datetime, *, nodes: int, disrupted: int
) -> int:
    """How many more of `nodes` nodes may be taken away while `disrupted` are drained."""
    active = [
        budget.allowed(nodes)
        for budget in pool.budgets
        if (not budget.reasons or reason.capitalize() in budget.reasons) and is_active(budget, now)
    ]
    return max(min(active, default=nodes) - disrupted, 0)


def is_active(budget: NodeBudget, now: datetime) -> bool:
    """Whether the budget holds now."""
    if not budget.schedule or budget.duration_s is None:
        return True
    begun = now - timedelta(seconds=budget.duration_s)
    next_start = parse_cron(budget.schedule).next_after(begun)
    return next_start is not None and next_start <= now
