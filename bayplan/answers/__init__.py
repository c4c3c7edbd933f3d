"""Answers: why a pod is pending, why it is on its node, and what a change would do.

Contents: a read-only view of a cluster (`cluster_view.py`), explanations of a pod (`explain.py`), and the changes
that would alter the outcome (`manifest_changes.py`, `counterfactual.py`). Imports: api, table, framework, config,
runtime, scheduler, cluster, sim. Never: an effect on the cluster in question, a placement rule (answers come from
running the plugins), or printing. Callers: cli, web, and users' scripts.
"""

from .account import (
    Ahead,
    Alternative,
    Choice,
    Counterfactual,
    GroupRef,
    PodExplanation,
    PodRef,
    PodRefOnNode,
    PodVerdict,
    PreemptionVictims,
    Refusal,
    RefusedNodes,
    RemedyStep,
    RunnerUp,
    ScoredNode,
)
from .cluster_view import ClusterView
from .counterfactual import NEAREST, find_counterfactual, find_counterfactuals
from .explain import explain, explain_alike
from .group_account import (
    GroupMember,
    GroupPreemption,
    GroupVerdict,
    GroupWay,
    MemberState,
    PlacementTried,
    PodGroupExplanation,
)
from .group_explain import explain_group
from .manifest_changes import ChangeKind, ObjectChange, ObjectRef, apply_changes
from .pod_search import find_group, find_pods

__all__ = [
    "NEAREST",
    "Ahead",
    "Alternative",
    "ObjectChange",
    "ChangeKind",
    "Choice",
    "ClusterView",
    "Counterfactual",
    "GroupMember",
    "GroupPreemption",
    "GroupRef",
    "GroupVerdict",
    "GroupWay",
    "MemberState",
    "ObjectRef",
    "PlacementTried",
    "PodExplanation",
    "PodGroupExplanation",
    "PodRef",
    "PodRefOnNode",
    "PreemptionVictims",
    "Refusal",
    "RefusedNodes",
    "RunnerUp",
    "ScoredNode",
    "RemedyStep",
    "PodVerdict",
    "apply_changes",
    "explain",
    "explain_alike",
    "explain_group",
    "find_counterfactual",
    "find_counterfactuals",
    "find_group",
    "find_pods",
]
