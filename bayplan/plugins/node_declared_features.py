"""NodeDeclaredFeatures: a pod that needs a kubelet feature runs only where the node declares it.

Mirrors pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from ..api.node import Node
from ..api.pod import Pod, PodSpec
from ..framework import (
    NODE_OBJECT,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Settled,
    Status,
    Verdict,
    unresolvable,
)
from ..framework.events import (
    EACH_SPEC,
    NODE,
    POD,
    ActionType,
    EventWithHint,
    called_for,
    required,
    wait_for,
)
from ..framework.handle import gates_of, release_of
from ..framework.interface import PASSES_PRE_FILTER, SKIPS_PRE_FILTER, SettledPreFilter
from ..table import NodeTable, Rows

USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
NO_FEATURES: frozenset[str] = frozenset()


class NodeDeclaredFeatures(SettledPreFilter, FilterPlugin):
    name = "NodeDeclaredFeatures"
    scope = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> Hashable:
        return self._features_of(spec)

    def _features_of(self, spec: PodSpec) -> frozenset[str]:
        """The features that pods of this spec need in this release."""
        found = features_of(spec)
        return (
            found
            if release_of(self).host_network_feature
            else found - {USER_NAMESPACES_HOST_NETWORK}
        )

    def events_to_register(self) -> Sequence[EventWithHint]:
        node_changes = ActionType.Add | ActionType.UpdateNodeDeclaredFeature
        return (
            wait_for(NODE, node_changes, helps=after_node_change),
            wait_for(POD, ActionType.Update, helps=after_pod_update),
        )

    def settled(self, spec: PodSpec) -> Settled:
        is_active = gates_of(self).enabled(self.name) and self._features_of(spec)
        return PASSES_PRE_FILTER if is_active else SKIPS_PRE_FILTER

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        declared = table.features.contains_all(self._features_of(pod.spec), rows)
        verdict.reject(~declared, release_of(self).lacking_features_reason, unresolvable=True)
        return verdict

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        declared = self._features_of(pod.spec) <= set(node.node.declared_features)
        return SUCCESS if declared else unresolvable(release_of(self).lacking_features_reason)


def features_of(spec: PodSpec) -> frozenset[str]:
    """The features that pods of this spec make use of."""
    required = NO_FEATURES
    if spec.host_network and spec.host_users is False:
        required |= {USER_NAMESPACES_HOST_NETWORK}
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        for rule in container.restart_policy_rules or ():
            if rule.action == "RestartAllContainers":
                required |= {RESTART_ALL_CONTAINERS}
    return required


@called_for(EACH_SPEC)
def after_node_change(pod: Pod, before: Node | None, after: Node) -> bool:
    """Hint: the node is new, or declares other features than before."""
    return before is None or before.declared_features != after.declared_features


@called_for(EACH_SPEC)
def after_pod_update(pod: Pod, before: Any, after: Pod) -> bool:
    """Hint: the pod itself needs other features than before."""
    if after.uid != pod.uid:
        return False
    return features_of(required(Pod, before).spec) != features_of(after.spec)
