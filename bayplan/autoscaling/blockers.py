"""Blockers: why a node may not be taken away by choice.

Pods without a controller block their node for both autoscalers: nothing would bring them back. The rules of Cluster
Autoscaler are those of its drainability rules (simulator/drainability/rules, cluster-autoscaler 1.36).
"""

from __future__ import annotations

from collections.abc import Callable

from ..api.node import Node
from ..api.pod import Pod
from ..cluster.memory.absent_owners import has_local_storage
from .cluster_autoscaler_flags import DEFAULT_FLAGS, ClusterAutoscalerFlags
from .pool_nodes import PoolNode

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM = "kube-system"
REPLICATED = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
TRUE, FALSE = "true", "false"

EvictionRefusal = Callable[[Pod], str]


class Blockers:
    """Answers for one autoscaler; `eviction_refusal` is the refusal of an eviction by the disruption budgets of
    pods.
    """

    def __init__(
        self,
        is_karpenter: bool,
        eviction_refusal: EvictionRefusal,
        flags: ClusterAutoscalerFlags = DEFAULT_FLAGS,
    ) -> None:
        self._is_karpenter, self._refusal, self._flags = is_karpenter, eviction_refusal, flags

    def of_node(self, node: PoolNode, stored: Node) -> str:
        """Reason why the node must stay, in words; empty if nothing keeps it."""
        name = DO_NOT_DISRUPT if self._is_karpenter else SCALE_DOWN_DISABLED
        if stored.annotations.get(name) == TRUE:
            return f"annotation {name}"
        if node.known_keeper is None:
            node.known_keeper = _first_reason(node, self.of_pod)
        return node.known_keeper or _first_reason(node, self._refusal)

    def of_pod(self, pod: Pod) -> str:
        """Reason why the pod must stay where it is, apart from disruption budgets; empty if nothing keeps it."""
        if self.is_protected(pod):
            return f"annotation {DO_NOT_DISRUPT if self._is_karpenter else SAFE_TO_EVICT}"
        if not self._is_karpenter and pod.annotations.get(SAFE_TO_EVICT) == TRUE:
            return ""
        if pod.controller is None:
            return "no controller would create it again"
        return "" if self._is_karpenter else self._of_group_pod(pod, pod.controller.kind)

    def _of_group_pod(self, pod: Pod, controller: str) -> str:
        flags = self._flags
        if flags.skip_nodes_with_custom_controller_pods and controller not in REPLICATED:
            return f"of a {controller}"
        if flags.skip_nodes_with_system_pods and pod.namespace == SYSTEM:
            return f"in {SYSTEM}"
        may_lose = flags.skip_nodes_with_local_storage and not pod.annotations.get(
            SAFE_LOCAL_VOLUMES
        )
        if may_lose and has_local_storage(pod):
            return "has local storage"
        return ""

    def is_protected(self, pod: Pod) -> bool:
        """Whether an annotation forbids to evict the pod."""
        if self._is_karpenter:
            return pod.annotations.get(DO_NOT_DISRUPT) == TRUE
        return pod.annotations.get(SAFE_TO_EVICT) == FALSE


def _first_reason(node: PoolNode, ask: Callable[[Pod], str]) -> str:
    """The first reason of `ask` for a pod of the node; empty for none."""
    for pod in node.pods.values():
        if not pod.is_terminating and (reason := ask(pod)):
            return f"pod {pod.key}: {reason}"
    return ""
