"""Rebalance: moves of pods that make a cluster better, each checked by the filters, disruption budgets kept.

What lives here: the plan (`plan.py`), how a pod is moved on a stage (`moving.py`), and a planner per objective:
`spreading.py`, `emptying.py` (to pack, or to save cost) and `repairing.py`. Who calls it: cli, and people in their own
scripts, through this front.
"""

from .plan import Move, Objective, RebalancePlan
from .planning import DEFAULT_MOVES, plan_rebalance

__all__ = ["DEFAULT_MOVES", "Move", "Objective", "RebalancePlan", "plan_rebalance"]
