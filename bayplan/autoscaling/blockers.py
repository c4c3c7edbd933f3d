"""Blockers: why a node may not be taken away by choice.

Pods without a controller block their node for both autoscalers: nothing would bring them back.
"""

from __future__ import annotations

from collections.abc import Callable

from ..api.node import Node
from ..api.pod import Pod
from .pool_nodes import PoolNode

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SYSTEM = "kube-system"
TRUE, FALSE = "true", "false"

EvictionRefusal = Callable[[Pod], str]


class Blockers:
    """Answers for one autoscaler; `eviction_refusal` says whether disruption budgets of pods allow an eviction."""

    def __init__(self, is_karpenter: bool, eviction_refusal: EvictionRefusal) -> None:
        self._is_karpenter, self._refusal = is_karpenter, eviction_refusal

    def of_node(self, node: PoolNode, stored: Node) -> str:
        """Why the node must stay, in words; empty if nothing keeps it."""
        name = DO_NOT_DISRUPT if self._is_karpenter else SCALE_DOWN_DISABLED
        if stored.annotations.get(name) == TRUE:
            return f"annotation {name}"
        if node.known_keeper is None:
            node.known_keeper = _first_reason(node, self.of_pod)
        return node.known_keeper or _first_reason(node, self._refusal)

    def of_pod(self, pod: Pod) -> str:
        """Why the pod must stay where it is, apart from disruption budgets; empty if nothing keeps it."""
        if self.is_protected(pod):
            return f"annotation {DO_NOT_DISRUPT if self._is_karpenter else SAFE_TO_EVICT}"
        if not self._is_karpenter and pod.annotations.get(SAFE_TO_EVICT) == TRUE:
            return ""
        if pod.controller is None:
            return "no controller would create it again"
        if not self._is_karpenter and pod.namespace == SYSTEM:
            return f"in {SYSTEM}"
        return ""

    def is_protected(self, pod: Pod) -> bool:
        """Whether an annotation forbids to evict the pod."""
        if self._is_karpenter:
            return pod.annotations.get(DO_NOT_DISRUPT) == TRUE
        return pod.annotations.get(SAFE_TO_EVICT) == FALSE


def _first_reason(node: PoolNode, ask: Callable[[Pod], str]) -> str:
    """What is said about the first of the pods about which something is said; empty for none."""
    for pod in node.pods.values():
        if not pod.is_terminating and (reason := ask(pod)):
            return f"pod {pod.key}: {reason}"
    return ""
