"""Workload explain: the accounts of several pods, such as those of a Deployment, one for each group of equal pods."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ..api.pod import Pod
from .account import PodExplanation, PodRefOnNode
from .cluster_view import ClusterView
from .counterfactual import NEAREST
from .explain import explain


def explain_alike(
    view: ClusterView, pods: Iterable[Pod], nodes: Sequence[str] = (), nearest: int = NEAREST
) -> list[PodExplanation]:
    """An account of the first pod of each group; its `alike` has the others.

    The pods of a group have equal specs, labels and owners, and are pending for the same reason, or all have a node.
    """
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(_group_key(view, pod), []).append(pod)
    accounts = []
    for first, *others in groups.values():
        account = explain(view, first, nodes, nearest)
        account.alike = [PodRefOnNode.of(pod) for pod in others]
        accounts.append(account)
    return accounts


def _group_key(view: ClusterView, pod: Pod) -> Hashable:
    if pod.is_finished:
        return pod.status.phase
    if not pod.node_name:
        message = view.settled.pending.get(pod.uid)
        # Without an attempt, pods that name different nodes may have different reasons.
        cause = message if message is not None else pod.spec
        return pod.pod_class, cause, pod.nominated_node_name, pod.is_terminating
    victims = view.settled.placed.get(pod.uid)
    return pod.pod_class, victims is not None, pod.uid if victims else ""
