"""Amounts: the arithmetic on the capacity of nodes and its use by pods, in one place.

Contents: the rules (does a pod fit, which share of resources would be used, how evenly), their results for many
rows in NumPy, and the compiled form of all of them in one loop. Filter, scores, refusals and preemption use
these and nothing else. May import `table` and `api`; plugins state their rules in these types, `engine` applies them.
"""

from .fitting import copies_that_fit, free_amounts, shortage_at, shortages
from .kernel import KERNEL
from .rules import (
    NO_RULES,
    POD_COUNT,
    AlignmentRule,
    AmountRules,
    BalanceRule,
    FitRule,
    ShareKind,
    ShareRule,
)
from .scoring import rule_points, share_points

__all__ = [
    "KERNEL",
    "NO_RULES",
    "POD_COUNT",
    "AlignmentRule",
    "AmountRules",
    "BalanceRule",
    "FitRule",
    "ShareKind",
    "ShareRule",
    "copies_that_fit",
    "free_amounts",
    "rule_points",
    "share_points",
    "shortage_at",
    "shortages",
]
