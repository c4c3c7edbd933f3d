"""NodeDeclaredFeatures: a pod that needs a kubelet feature runs only where the node declares it.

Mirrors pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go.
"""

from collections.abc import Hashable

from ..api.pod import Pod
from ..framework import (
    NODE_OBJECT,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    Status,
    Verdict,
)
from ..table import NodeTable, Rows

REASON = "node(s) didn't match Pod's required features"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    name = "NodeDeclaredFeatures"
    scope = NODE_OBJECT

    def pod_key(self, pod: Pod) -> Hashable:
        return required_features(pod)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS if required_features(pod) else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        declared = table.features.contains_all(required_features(pod), rows)
        verdict.reject(~declared, REASON, unresolvable=True)
        return verdict


def required_features(pod: Pod) -> frozenset[str]:
    """The features that the pod's spec makes use of."""
    spec = pod.spec
    required = set()
    if spec.host_network and spec.host_users is False:
        required.add(USER_NAMESPACES_HOST_NETWORK)
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    rules = (rule for container in containers for rule in container.restart_policy_rules or ())
    if any(rule.action == "RestartAllContainers" for rule in rules):
        required.add(RESTART_ALL_CONTAINERS)
    return frozenset(required)
