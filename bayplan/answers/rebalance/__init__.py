"""Rebalance: plan pod moves that improve a cluster, checked by the filters, within disruption budgets.

What lives here: the plan (`plan.py`), moving a pod on a stage (`moving.py`), and a planner per
objective: `spreading.py`, `emptying.py` (to pack, or to save cost) and `repairing.py`. Who calls
it: cli, and users' scripts, through this package.
"""

from .plan import Move, Objective, RebalancePlan
from .planning import DEFAULT_MOVES, plan_rebalance

__all__ = ["DEFAULT_MOVES", "Move", "Objective", "RebalancePlan", "plan_rebalance"]
