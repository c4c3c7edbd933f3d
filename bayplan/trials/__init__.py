"""Trials: one hypothetical cluster for all questions, autoscalers and plans.

Contents: a scheduler on a copy of a cluster, with changes, answers and an undo, and the result for the pods that waited
before a question (`trial_cluster.py`). Imports: whatever is below sim, and sim. Never: a placement
rule, or a write to the cluster that was copied. Callers: answers, shadow, planning, autoscaling, cli, web.
"""

from .trial_cluster import (
    AS_READ,
    NONE_WAITED,
    SettledAnswer,
    SettledPods,
    Settlement,
    Step,
    StillCluster,
    TrialCluster,
)

__all__ = [
    "AS_READ",
    "NONE_WAITED",
    "SettledAnswer",
    "SettledPods",
    "Settlement",
    "Step",
    "StillCluster",
    "TrialCluster",
]
