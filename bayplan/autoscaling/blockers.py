"""Blockers: reasons why an autoscaler may not remove a node.

Pods without a controller block their node for both autoscalers: nothing would bring them back. The rules of Cluster
Autoscaler are those of its drainability rules (simulator/drainability/rules, cluster-autoscaler 1.36).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ..api.node import Node
from ..api.pod import Pod
from ..cluster.memory.budget_controller import DisruptionController
from .cluster_autoscaler_flags import DEFAULT_FLAGS, ClusterAutoscalerFlags
from .pool_nodes import PoolNode

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM = "kube-system"
REPLICATED = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
TRUE, FALSE = "true", "false"
IN_MEMORY = "Memory"


class Blockers:
    """Answers for one autoscaler. Cluster Autoscaler also reads how many evictions each of the `budgets` allows."""

    def __init__(
        self,
        is_karpenter: bool,
        budgets: DisruptionController,
        flags: ClusterAutoscalerFlags = DEFAULT_FLAGS,
    ) -> None:
        self._is_karpenter, self._budgets, self._flags = is_karpenter, budgets, flags
        self._taken: Counter[str] = Counter()
        """Evictions of each budget that are planned."""

    def forget_plans(self) -> None:
        """No eviction is planned."""
        self._taken.clear()

    def plan_evictions(self, pods: Iterable[Pod]) -> None:
        """Count the pods of a node to be removed against their budgets, for the checks of the next nodes."""
        for pod in pods:
            self._taken.update(self._budgets.allowances(pod).keys())

    def of_budgets(self, pods: Iterable[Pod]) -> str:
        """Reason why Cluster Autoscaler keeps one of the pods, by their disruption budgets; empty for none."""
        return next(filter(None, map(self._of_budgets, pods)), "")

    def of_node(self, node: PoolNode, stored: Node) -> str:
        """Reason why Karpenter keeps the node, in words; empty if nothing keeps it."""
        found = self.of_annotation(stored) or self.of_pods(node)
        return found or _first_reason(node, self._budgets.eviction_refusal)

    def of_annotation(self, stored: Node) -> str:
        """The annotation by which the node must stay; empty if it has none."""
        name = DO_NOT_DISRUPT if self._is_karpenter else SCALE_DOWN_DISABLED
        return f"annotation {name}" if stored.annotations.get(name) == TRUE else ""

    def of_pods(self, node: PoolNode) -> str:
        """Reason why a pod keeps the node, apart from disruption budgets; empty for none."""
        if node.known_keeper is None:
            node.known_keeper = _first_reason(node, self.of_pod)
        return node.known_keeper

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
        if flags.skip_nodes_with_local_storage and _has_local_storage(pod):
            return "has local storage"
        return ""

    def _of_budgets(self, pod: Pod) -> str:
        """Reason why the disruption budgets of the pod keep its node for Cluster Autoscaler; a system pod needs a
        budget.
        """
        if pod.annotations.get(SAFE_TO_EVICT) == TRUE:
            return ""
        allowances = self._budgets.allowances(pod)
        is_of_system = pod.namespace == SYSTEM and self._flags.skip_nodes_with_system_pods
        if is_of_system and not allowances:
            return f"in {SYSTEM}, without a disruption budget"
        for name, allowed in allowances.items():
            if allowed - self._taken[name] < 1:
                return f"disruption budget {name}"
        return ""

    def is_protected(self, pod: Pod) -> bool:
        """Whether an annotation forbids to evict the pod."""
        if self._is_karpenter:
            return pod.annotations.get(DO_NOT_DISRUPT) == TRUE
        return pod.annotations.get(SAFE_TO_EVICT) == FALSE


def _has_local_storage(pod: Pod) -> bool:
    """Whether the pod has an emptyDir that is not in memory, and that its annotation does not name."""
    safe = pod.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    return any(
        volume.empty_dir is not None
        and volume.empty_dir.medium != IN_MEMORY
        and volume.name not in safe
        for volume in pod.spec.volumes or ()
    )


def _first_reason(node: PoolNode, ask: Callable[[Pod], str]) -> str:
    """The first reason of `ask` for a pod of the node; empty for none."""
    for pod in node.pods.values():
        if not pod.is_terminating and (reason := ask(pod)):
            return f"pod {pod.key}: {reason}"
    return ""
