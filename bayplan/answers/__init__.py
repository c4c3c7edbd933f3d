"""Questions asked of a cluster: why is it pending, why this node, what if.

What lives here: the cluster as one who only asks sees it (`cluster_view.py`), explanations of a pod (`explain.py`), and
the changes that would make a difference (`changes.py`, `counterfactual.py`). What may enter: api, table, framework,
config, runtime, scheduler, cluster, sim. What must not happen: an effect on the cluster that was asked about, a rule of
placement (answers come from judging, not from guessing), or printing. Who calls it: cli, web, and people in their own
scripts.
"""

from .account import (
    Ahead,
    Alternative,
    Choice,
    Counterfactual,
    PodExplanation,
    PodRef,
    Preemption,
    Refusal,
    RefusedNodes,
    RunnerUp,
    ScoredNode,
    Step,
    Verdict,
)
from .changes import Change, ChangeKind, ObjectRef, apply_changes
from .cluster_view import ClusterView
from .counterfactual import NEAREST, find_counterfactual, find_counterfactuals
from .explain import explain
from .finding import find_pods

__all__ = [
    "NEAREST",
    "Ahead",
    "Alternative",
    "Change",
    "ChangeKind",
    "Choice",
    "ClusterView",
    "Counterfactual",
    "ObjectRef",
    "PodExplanation",
    "PodRef",
    "Preemption",
    "Refusal",
    "RefusedNodes",
    "RunnerUp",
    "ScoredNode",
    "Step",
    "Verdict",
    "apply_changes",
    "explain",
    "find_counterfactual",
    "find_counterfactuals",
    "find_pods",
]
