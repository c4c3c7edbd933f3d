"""Nominator: pending pods nominated to nodes.

Mirrors pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..api.pod import Pod
from ..framework.lister import ChangeLog

FindPod = Callable[[str, str], Pod | None]
"""(namespace, name) -> the current pod; None when it was deleted."""


class PodNominator:
    """Nominated pods by node name in the order of nomination, each pod on at most one node.

    With `find_pod`, deleted and assigned pods are not nominated. `on_change` is called with the name of each node whose
    nominated pods change.
    """

    def __init__(
        self,
        find_pod: FindPod | None = None,
        on_change: Callable[[str], None] = lambda node_name: None,
    ) -> None:
        self._find_pod = find_pod
        self._on_change = on_change
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self._log: ChangeLog[str] = ChangeLog()

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate `pod` to `node_name`, by default to the node in its status.

        The name "" is stored as a nomination without a node: updates of a pod whose status names no
        node keep it.
        """
        if pod.uid in self._node_of:
            self.delete(pod)
        if node_name is None:
            node_name = pod.nominated_node_name
            if not node_name:
                return
        if self._find_pod is not None:
            current = self._find_pod(pod.namespace, pod.name)
            if current is None or current.node_name:
                return
        self._node_of[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        if node_name:
            self._changed(node_name)

    def delete(self, pod: Pod) -> None:
        """End the nomination of `pod`, if it has one."""
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[pod.uid]
            if not pods:
                del self._by_node[node_name]
            if node_name:
                self._changed(node_name)

    def _changed(self, node_name: str) -> None:
        self._log.mark(node_name)
        self._on_change(node_name)

    def leave_queue(self, pod: Pod, node_name: str | None = None) -> None:
        """Keep the nomination of a pod that is not in the queue, or nominate it again.

        kube-scheduler reads nominated pods from the queue. A pod that is being scheduled is not in it, and counts as a
        pod without priority that requests nothing.
        """
        node_name = node_name or self._node_of.get(pod.uid)
        if node_name:
            self.add(Pod(pod.name, pod.namespace, pod.uid), node_name)

    def update(self, old: Pod, new: Pod) -> None:
        """Update the pod; a nomination that its status does not have yet is kept."""
        kept = None
        if not old.nominated_node_name and not new.nominated_node_name:
            kept = self._node_of.get(old.uid)
            if kept is None and old.uid == new.uid:
                return
        self.delete(old)
        self.add(new, kept)

    @property
    def version(self) -> int:
        """Changes with every nomination to a node."""
        return self._log.version

    def changed_since(self, version: int) -> Iterable[str] | None:
        """Nodes whose nominated pods changed after `version`; None if the log does not reach back that far."""
        return self._log.since(version)

    def node_of(self, pod: Pod) -> str:
        """The node `pod` is nominated to; "" for none."""
        return self._node_of.get(pod.uid, "")

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Pods nominated to the node."""
        return list(self._by_node.get(node_name, {}).values())

    def node_names(self) -> list[str]:
        """The nodes with nominated pods."""
        return [name for name in self._by_node if name]

    def nominated(self) -> Mapping[str, list[Pod]]:
        """All nominated pods by node name; under "" those without a node."""
        return {name: list(pods.values()) for name, pods in self._by_node.items()}

    def __bool__(self) -> bool:
        """Whether a pod is nominated to some node."""
        return len(self._by_node) > ("" in self._by_node)
