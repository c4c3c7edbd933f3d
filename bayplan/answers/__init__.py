"""Answers: why a pod is pending, why it is on its node, and what a change would do.

Contents: explanations of a pod (`explain.py`), the changes that would alter the outcome (`manifest_changes.py`,
`counterfactual.py`), and the consequences of changes in time (`stage.py`, `what_if/`). Imports: api, table, framework,
config, runtime, scheduler, cluster, sim, trials. Never: an effect on the cluster in question, a placement rule (answers
come from running the plugins), or printing. Callers: cli, web, and users' scripts.
"""

from .counterfactual import find_counterfactual
from .explain import explain, explain_alike
from .group_explain import explain_group
from .manifest_changes import apply_changes
from .pod_search import find_group, find_pods

__all__ = [
    "apply_changes",
    "explain",
    "explain_alike",
    "explain_group",
    "find_counterfactual",
    "find_group",
    "find_pods",
]
