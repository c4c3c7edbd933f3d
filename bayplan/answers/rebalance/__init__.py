"""Rebalance: plan pod moves that improve a cluster, checked by the filters, within disruption budgets.

Contents: the plan (`move_plan.py`), moving a pod on a stage (`trial_moves.py`), and a planner per objective:
`even_use.py`, `empty_nodes.py` (to pack, or to save cost) and, for constraints, `objectives.py`. Callers: cli, and
users' scripts, through this package.
"""

from .move_plan import Move, RebalancePlan
from .objectives import plan_rebalance

__all__ = ["Move", "RebalancePlan", "plan_rebalance"]
