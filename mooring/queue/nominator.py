"""Nominator: which waiting pods are promised a place on which node.

Mirrors pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..api.pod import Pod


class PodNominator:
    """Nominated pods by node name, each pod on one node at most."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate `pod` to `node_name`, by default to the node in its status; "" ends its nomination."""
        self.delete(pod)
        node_name = pod.nominated_node_name if node_name is None else node_name
        if node_name:
            self._node_of[pod.uid] = node_name
            self._by_node.setdefault(node_name, {})[pod.uid] = pod

    def delete(self, pod: Pod) -> None:
        """End the nomination of `pod`, if it has one."""
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[pod.uid]
            if not pods:
                del self._by_node[node_name]

    def update(self, old: Pod, new: Pod) -> None:
        """The pod changed; a nomination that its status does not mention yet is kept."""
        kept = None
        if not old.nominated_node_name and not new.nominated_node_name:
            kept = self._node_of.get(old.uid)
        self.delete(old)
        self.add(new, kept)

    def node_of(self, pod: Pod) -> str:
        """The node `pod` is nominated to; "" when it is not."""
        return self._node_of.get(pod.uid, "")

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Pods nominated to the node."""
        return list(self._by_node.get(node_name, {}).values())

    def nominated(self) -> Mapping[str, list[Pod]]:
        """All nominated pods by node name."""
        return {name: list(pods.values()) for name, pods in self._by_node.items()}

    def __bool__(self) -> bool:
        return bool(self._node_of)
