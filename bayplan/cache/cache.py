"""Cache: nodes and their pods, including pods that are assumed but not yet bound.

Mirrors pkg/scheduler/backend/cache/cache.go. The only writer of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..api.node import Node
from ..api.pod import Pod
from ..clock import Clock, SystemClock
from ..errors import BayplanError
from ..table import NodeTable
from ..table.writer import TableWriter
from .node_tree import NodeTree
from .pod_groups import PodGroups, group_keys
from .snapshot import Snapshot


class CacheError(BayplanError):
    """A pod or node is not in the state that the call expects."""


@dataclass(slots=True)
class PodState:
    """A pod on a node. An assumed pod was placed by the scheduler and is not yet confirmed by the
    API server."""

    pod: Pod
    assumed: bool
    expires_at: float | None = None


class Cache:
    """The state of the cluster. `assume_ttl_s` 0 means that assumed pods never expire."""

    def __init__(self, clock: Clock | None = None, assume_ttl_s: float = 0) -> None:
        self.table = NodeTable()
        self._writer = TableWriter(self.table)
        self._tree = NodeTree()
        self.snapshot = Snapshot(self.table, self._tree)
        self._clock = clock or SystemClock()
        self._assume_ttl_s = assume_ttl_s
        self._pods: dict[str, PodState] = {}
        self._expiring: dict[str, float] = {}
        self.pod_groups = PodGroups()

    # Pods

    def assume_pod(self, pod: Pod) -> None:
        """Count `pod`, whose node was just chosen, on its node."""
        uid = pod.uid or self._key(pod)
        if uid in self._pods:
            raise CacheError(f"pod {_named(pod)} is in the cache, so can't be assumed")
        self._writer.add_pod(pod)
        self._pods[uid] = PodState(pod, True)
        self.pod_groups.set_pod(pod)

    def finish_binding(self, pod: Pod) -> None:
        """Note that the bind call returned; with a ttl set, the assumed pod expires after it unless
        confirmed."""
        if not self._assume_ttl_s:
            return
        state = self._pods.get(self._key(pod))
        if state is not None and state.assumed:
            state.expires_at = self._clock.monotonic() + self._assume_ttl_s
            self._expiring[pod.uid] = state.expires_at

    def forget_pod(self, pod: Pod) -> None:
        """Remove an assumed pod; an unknown pod is ignored."""
        state = self._pods.get(self._key(pod))
        if state is None:
            return
        if state.pod.node_name != pod.node_name:
            place = f"was assumed on {pod.node_name} but assigned to {state.pod.node_name}"
            raise CacheError(f"pod {_named(pod)} {place}")
        if not state.assumed:
            raise CacheError(f"pod {_named(pod)} wasn't assumed so cannot be forgotten")
        self._unplace(state)

    def expire_pods(self) -> list[Pod]:
        """Remove assumed pods whose confirmation is overdue; return them."""
        now = self._clock.monotonic()
        overdue = [uid for uid, deadline in self._expiring.items() if deadline <= now]
        states = [self._pods[uid] for uid in overdue]
        for state in states:
            self._unplace(state)
        return [state.pod for state in states]

    def next_expiry(self) -> float | None:
        """When the next assumed pod expires; None when none can."""
        return min(self._expiring.values(), default=None)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod reported on its node; confirms it when it was assumed."""
        if self.confirm_pod(pod):
            return
        state = self._pods.get(self._key(pod))
        self.pod_groups.set_pod(pod)
        if state is None:
            self._writer.add_pod(pod)
            self._pods[pod.uid] = PodState(pod, assumed=False)
        elif state.assumed:  # on another node than assumed
            self._writer.replace_pod(state.pod, pod)
            self._expiring.pop(pod.uid, None)
            state.pod, state.assumed, state.expires_at = pod, False, None
        else:
            raise CacheError(f"pod {_named(pod)} was already in added state")

    def confirm_pod(self, pod: Pod) -> bool:
        """Confirm a pod assumed on its node; return False, without effect, unless it was assumed
        there."""
        state = self._pods.get(pod.uid)
        if state is None or not state.assumed or state.pod.node_name != pod.node_name:
            return False
        self.pod_groups.set_pod(pod)
        self._writer.replace_pod(state.pod, pod)
        if state.expires_at is not None:
            del self._expiring[pod.uid]
        state.pod, state.assumed, state.expires_at = pod, False, None
        return True

    def update_pod(self, old: Pod, new: Pod) -> None:
        """Update a pod on a node."""
        state = self._pods.get(self._key(old))
        if state is None:
            raise CacheError(
                f"pod {_named(old)} is not added to scheduler cache, so cannot be updated"
            )
        if state.assumed:
            raise CacheError(f"assumed pod {_named(old)} should not be updated")
        self._writer.replace_pod(state.pod, new)
        state.pod = new

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod from its node."""
        state = self._pods.get(self._key(pod))
        if state is None:
            raise CacheError(
                f"pod {_named(pod)} is not found in scheduler cache, so cannot be removed from it"
            )
        self._drop(state)
        self.pod_groups.remove_pod(pod)

    def is_assumed(self, pod: Pod) -> bool:
        """Whether the pod is assumed and not confirmed."""
        state = self._pods.get(pod.uid or self._key(pod))
        return state is not None and state.assumed

    def has_pod(self, pod: Pod) -> bool:
        """Whether the pod is on a node, assumed or confirmed."""
        return self._key(pod) in self._pods

    def get_pod(self, pod: Pod) -> Pod:
        """The pod as the cache has it."""
        state = self._pods.get(self._key(pod))
        if state is None:
            raise CacheError(f"pod {_named(pod)} does not exist in scheduler cache")
        return state.pod

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    def sizes(self) -> dict[str, int]:
        """The number of nodes, pods and assumed pods; visits every pod."""
        assumed = sum(state.assumed for state in self._pods.values())
        return {
            "assumed_pods": assumed,
            "pods": len(self._pods),
            "nodes": self.table.node_count,
        }

    def _unplace(self, state: PodState) -> None:
        """Remove the pod from its node."""
        self._drop(state)
        if state.pod.uid in {
            member.uid for key in group_keys(state.pod) for member in self.pod_groups.members(key)
        }:
            self.pod_groups.set_pod(state.pod.with_node(""))

    def _drop(self, state: PodState) -> None:
        self._writer.remove_pod(state.pod)
        self._expiring.pop(state.pod.uid, None)
        del self._pods[state.pod.uid]

    @staticmethod
    def _key(pod: Pod) -> str:
        if not pod.uid:
            raise CacheError("cannot get cache key for pod with empty UID")
        return pod.uid

    # Nodes and namespaces

    def set_node(self, node: Node) -> None:
        """Add or update a node."""
        row = self.table.row_of.get(node.name)
        old = None if row is None else self.table.nodes[row]
        if old is None:
            self._tree.add(node)
            self.snapshot.nodes_changed()
        elif old.zone_key != node.zone_key:
            self.snapshot.zones_change()
            self._tree.update(old, node)
        self._writer.set_node(node)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods stay counted until they are removed, too."""
        row = self.table.row_of.get(name)
        node = None if row is None else self.table.nodes[row]
        if node is None:
            raise CacheError(f"node {name} is not found")
        self._tree.remove(node)
        self._writer.remove_node(name)
        self.snapshot.nodes_changed()

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Add or update a namespace."""
        self._writer.set_namespace(name, labels)

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        self._writer.remove_namespace(name)


def _named(pod: Pod) -> str:
    return f"{pod.uid}({pod.key})"
