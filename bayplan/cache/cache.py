"""Cache: nodes and their pods, including pods that are assumed but not yet bound.

Mirrors pkg/scheduler/backend/cache/cache.go. The only writer of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import chain, zip_longest

import numpy as np

from ..api.node import Node
from ..api.pod import Pod
from ..clock import Clock, SystemClock
from ..errors import BayplanError
from ..table import Ints, NodeTable
from ..table.carried import ALL_HIDDEN, NONE_HIDDEN, Hidden, TermKind
from ..table.writer import TableWriter
from .group_members import PodGroupIndex, group_keys

# NodeTree: the order in which nodes are visited: one node of each zone in turn.
# Mirrors pkg/scheduler/backend/cache/node_tree.go.
ANTI_AFFINITY_HIDDEN = frozenset({TermKind.REQUIRED_ANTI_AFFINITY})


class Trial:
    """Temporary changes of the table, which `end` undoes when the cycle is over.

    Mirrors AssumePod, ForgetPod and BackupSnapshot of pkg/scheduler/backend/cache/snapshot.go. The table is the
    snapshot. With `hides_terms`, affinity terms of pods on trial do not count for other pods, as in kube-scheduler.
    """

    def __init__(
        self, table: NodeTable, writer: TableWriter, groups: PodGroupIndex, hides_terms: bool = True
    ) -> None:
        self._table = table
        self._hides_terms = hides_terms
        self._writer = writer
        self._groups = groups
        self._assumed: dict[str, tuple[Pod, Pod, Hidden]] = {}
        """By uid: the pod as it waits, the same with its node, and which of its terms are hidden."""
        self._given_back: dict[str, Pod] = {}
        """By uid: pods whose trial has ended and that are still on their nodes."""
        self._removed: dict[str, Pod] = {}
        self._orders: dict[int, list[str]] = {}
        """The order of the pods on rows from which some were removed, at the beginning."""

    def assume(self, pod: Pod, assumed: Pod) -> Pod:
        """Put a waiting pod on a node; `assumed` is the pod with that node, and is returned."""
        node_name = assumed.node_name
        may_hide = self._hides_terms and pod.spec.affinity is not None
        hidden = self._hidden_at(node_name) if may_hide else NONE_HIDDEN
        self._writer.try_pod(assumed, hidden)
        self._assumed[pod.uid] = (pod, assumed, hidden)
        self._groups.set_pod(assumed)
        self._groups.on_trial.add(pod.uid)
        return assumed

    def forget(self, pod: Pod) -> None:
        """Take an assumed pod off its node."""
        waiting, assumed, hidden = self._assumed.pop(pod.uid)
        self._writer.end_trial(assumed, hidden)
        self._groups.set_pod(waiting)
        self._groups.on_trial.discard(pod.uid)

    def give_back(self, pod: Pod) -> None:
        """End the trial of an assumed pod, but leave it on its node until `adopt` or `end`. Its group counts it as
        waiting.
        """
        waiting, assumed, hidden = self._assumed[pod.uid]
        if hidden:
            self.forget(pod)
        else:
            self._given_back[pod.uid] = assumed
            del self._assumed[pod.uid]
            self._groups.set_pod(waiting)
            self._groups.on_trial.discard(pod.uid)

    def adopt(self, pod: Pod) -> bool:
        """Keep `pod` on its node for good if it was given back there; returns whether it was."""
        there = self._given_back.get(pod.uid)
        if there is None or there.node_name != pod.node_name:
            return False
        del self._given_back[pod.uid]
        self._writer.adopt_pod(there, pod)
        return True

    def remove(self, pod: Pod) -> None:
        """Take a pod off its node. Its group still counts it as placed."""
        row = self._table.row_of[pod.node_name]
        if row not in self._orders:
            there = self._table.pods[row]
            self._orders[row] = [uid for uid in there if uid not in self._assumed]
        self._writer.end_trial(pod, NONE_HIDDEN)
        self._removed[pod.uid] = pod

    def restore(self, pod: Pod) -> None:
        """Put a removed pod back."""
        self._writer.try_pod(self._removed.pop(pod.uid), NONE_HIDDEN)

    def end(self) -> None:
        """Put the removed pods back in their order, and remove those that were given back."""
        for pod in self._given_back.values():
            self._writer.end_trial(pod, NONE_HIDDEN)
        self._given_back.clear()
        for pod in list(self._removed.values()):
            self.restore(pod)
        for row, uids in self._orders.items():
            self._writer.restore_row(row, uids)
        self._orders.clear()

    def _hidden_at(self, node_name: str) -> Hidden:
        """The terms of a pod on this node that do not count for other pods.

        kube-scheduler keeps a list of nodes with affinity terms and one of nodes with required anti-affinity terms,
        which a pod on trial does not change: terms on a node that is not on the list are ignored.
        """
        row = self._table.row_of[node_name]
        there = [pod for uid, pod in self._table.pods[row].items() if uid not in self._assumed]
        there += [pod for pod in self._removed.values() if pod.node_name == node_name]
        if any(pod.spec.required_anti_affinity for pod in there):
            return NONE_HIDDEN
        if any(_has_pod_affinity(pod) for pod in there):
            return ANTI_AFFINITY_HIDDEN
        return ALL_HIDDEN


def _has_pod_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )


class NodeTree:
    """Node names by zone, zones and nodes in order of appearance."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}

    def add(self, node: Node) -> None:
        """Add the node to its zone."""
        self._zones.setdefault(node.zone_key, {})[node.name] = None

    def remove(self, node: Node) -> None:
        """Remove the node, and its zone when that becomes empty."""
        zone = self._zones[node.zone_key]
        del zone[node.name]
        if not zone:
            del self._zones[node.zone_key]

    def update(self, old: Node, new: Node) -> None:
        """Move the node when its zone changed."""
        if old.zone_key != new.zone_key:
            self.remove(old)
            self.add(new)

    def names(self) -> list[str]:
        """The first node of every zone, then the second of every zone, and so on."""
        rounds = zip_longest(*self._zones.values())
        return [name for name in chain.from_iterable(rounds) if name is not None]


class CacheError(BayplanError):
    """A pod or node is not in the state that the call expects."""


class Cache:
    """The state of the cluster. `assume_ttl_s` 0 means that assumed pods never expire.

    An assumed pod was placed by the scheduler and is not yet confirmed by the API server.
    """

    def __init__(self, clock: Clock | None = None, assume_ttl_s: float = 0) -> None:
        self.table = NodeTable()
        self._writer = TableWriter(self.table)
        self._tree = NodeTree()
        self.snapshot = Snapshot(self.table, self._tree)
        self._clock = clock or SystemClock()
        self._assume_ttl_s = assume_ttl_s
        self._pods: dict[str, Pod] = {}
        """Pods on nodes, by uid."""
        self._assumed: set[str] = set()
        self._expiring: dict[str, float] = {}
        """Moments, by the clock's `monotonic`, at which assumed pods expire."""
        self.pod_groups = PodGroupIndex()
        self._trial: Trial | None = None

    # Pods

    def assume_pod(self, pod: Pod) -> None:
        """Add `pod` to the node that was just chosen for it."""
        uid = pod.uid or self._key(pod)
        if uid in self._pods:
            raise CacheError(f"pod {_named(pod)} is in the cache, so can't be assumed")
        if self._trial is None or not self._trial.adopt(pod):
            self._writer.add_pod(pod)
        self._pods[uid] = pod
        self._assumed.add(uid)
        self.pod_groups.set_pod(pod)

    def finish_binding(self, pod: Pod) -> None:
        """Note that the bind call returned; with a ttl set, the assumed pod expires after it unless
        confirmed."""
        if not self._assume_ttl_s:
            return
        if self._key(pod) in self._assumed:
            self._expiring[pod.uid] = self._clock.monotonic() + self._assume_ttl_s

    def forget_pod(self, pod: Pod) -> None:
        """Remove an assumed pod; an unknown pod is ignored."""
        known = self._pods.get(self._key(pod))
        if known is None:
            return
        if known.node_name != pod.node_name:
            place = f"was assumed on {pod.node_name} but assigned to {known.node_name}"
            raise CacheError(f"pod {_named(pod)} {place}")
        if pod.uid not in self._assumed:
            raise CacheError(f"pod {_named(pod)} wasn't assumed so cannot be forgotten")
        self._unplace(known)

    def expire_pods(self) -> list[Pod]:
        """Remove assumed pods whose confirmation is overdue; return them."""
        now = self._clock.monotonic()
        overdue = [self._pods[uid] for uid, deadline in self._expiring.items() if deadline <= now]
        for pod in overdue:
            self._unplace(pod)
        return overdue

    def next_expiry(self) -> float | None:
        """Time when the next assumed pod expires; None when none can."""
        return min(self._expiring.values(), default=None)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod reported on its node; confirms it when it was assumed."""
        if self.confirm_pod(pod):
            return
        known = self._pods.get(self._key(pod))
        self.pod_groups.set_pod(pod)
        if known is None:
            self._writer.add_pod(pod)
            self._pods[pod.uid] = pod
        elif pod.uid in self._assumed:  # on another node than assumed
            self._confirm(known, pod)
        else:
            raise CacheError(f"pod {_named(pod)} was already in added state")

    def add_pods(self, fresh: Mapping[str, Pod]) -> None:
        """Add pods reported on their nodes, by uid, none of which the cache has."""
        samples = self._writer.add_pods(fresh.values())
        grouped = {pod.pod_class for pod in samples if group_keys(pod)}
        for pod in fresh.values() if grouped else ():
            if pod.pod_class in grouped:
                self.pod_groups.set_pod(pod)
        self._pods.update(fresh)

    def add_copies(self, pod: Pod, row: int, count: int) -> None:
        """Count `count` pods like `pod` at `row`, for a question: they use resources, but are not listed."""
        self._writer.add_copies(pod, row, count)

    def confirm_pod(self, pod: Pod) -> bool:
        """Confirm a pod assumed on its node; return False, without effect, unless it was assumed
        there."""
        uid = pod.uid
        if uid not in self._assumed:
            return False
        known = self._pods[uid]
        if known.node_name != pod.node_name:
            return False
        self.pod_groups.set_pod(pod)
        self._confirm(known, pod)
        return True

    def _confirm(self, assumed: Pod, pod: Pod) -> None:
        """Replace the assumed pod by `pod`, the version of the API server."""
        self._writer.replace_pod(assumed, pod)
        self._pods[pod.uid] = pod
        self._assumed.remove(pod.uid)
        if self._expiring:
            self._expiring.pop(pod.uid, None)

    def update_pod(self, old: Pod, new: Pod) -> None:
        """Update a pod on a node."""
        known = self._pods.get(self._key(old))
        if known is None:
            raise CacheError(
                f"pod {_named(old)} is not added to scheduler cache, so cannot be updated"
            )
        if old.uid in self._assumed:
            raise CacheError(f"assumed pod {_named(old)} should not be updated")
        self._writer.replace_pod(known, new)
        self._pods[old.uid] = new

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod from its node."""
        known = self._pods.get(self._key(pod))
        if known is None:
            raise CacheError(
                f"pod {_named(pod)} is not found in scheduler cache, so cannot be removed from it"
            )
        self._drop(known)
        self.pod_groups.remove_pod(pod)

    def begin_trial(self, hides_terms: bool = True) -> Trial:
        """Begin a trial: pods are put on nodes and removed until `end_trial`. See `Trial` for `hides_terms`."""
        assert self._trial is None, "one trial at a time"
        self._trial = Trial(self.table, self._writer, self.pod_groups, hides_terms)
        return self._trial

    def end_trial(self) -> None:
        """Undo the changes of the trial, except for pods that were assumed meanwhile."""
        if self._trial is not None:
            self._trial.end()
            self._trial = None

    def is_assumed(self, pod: Pod) -> bool:
        """Whether the pod is assumed and not confirmed."""
        return (pod.uid or self._key(pod)) in self._assumed

    def assumed_pods(self) -> list[Pod]:
        """The pods that are assumed and not confirmed."""
        return [self._pods[uid] for uid in self._assumed]

    def has_none(self, uids: Set[str]) -> bool:
        """Whether none of the pods with these uids, which are not empty, is on a node."""
        return "" not in uids and self._pods.keys().isdisjoint(uids)

    def has_pod(self, pod: Pod) -> bool:
        """Whether the pod is on a node, assumed or confirmed."""
        return self._key(pod) in self._pods

    def get_pod(self, pod: Pod) -> Pod:
        """The pod as the cache has it."""
        known = self._pods.get(self._key(pod))
        if known is None:
            raise CacheError(f"pod {_named(pod)} does not exist in scheduler cache")
        return known

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    def sizes(self) -> dict[str, int]:
        """The number of nodes, pods and assumed pods."""
        return {
            "assumed_pods": len(self._assumed),
            "pods": len(self._pods),
            "nodes": self.table.node_count,
        }

    def _unplace(self, pod: Pod) -> None:
        """Remove the pod from its node."""
        self._drop(pod)
        if pod.uid in {
            member.uid for key in group_keys(pod) for member in self.pod_groups.members(key)
        }:
            self.pod_groups.set_pod(pod.with_node(""))

    def _drop(self, pod: Pod) -> None:
        self._writer.remove_pod(pod)
        self._expiring.pop(pod.uid, None)
        self._assumed.discard(pod.uid)
        del self._pods[pod.uid]

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

    def nominations_changed(self, node_name: str) -> None:
        """Mark the node as changed, because other pods are nominated to it and reserve room there."""
        self._writer.nominations_changed(node_name)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Add or update a namespace."""
        self._writer.set_namespace(name, labels)

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        self._writer.remove_namespace(name)


def _named(pod: Pod) -> str:
    return f"{pod.uid}({pod.key})"


class Snapshot:
    """The state of a cycle besides the table."""

    def __init__(self, table: NodeTable, tree: NodeTree) -> None:
        self._table = table
        self._tree = tree
        self._stale = True
        self._was_seen = False
        self._order: Ints = np.zeros(0, dtype=np.int64)

    def nodes_changed(self) -> None:
        """Rebuild the order after a node was added or removed."""
        self._stale = True
        self._was_seen = False

    def update(self) -> None:
        """Update the snapshot; called at the start of each cycle."""
        self._table.images.refresh()
        self._was_seen = True

    def zones_change(self) -> None:
        """Keep the order of the last cycle although a node changes its zone, until nodes are added or removed."""
        _ = self.order

    @property
    def order(self) -> Ints:
        """Rows in visiting order, as of the last cycle; computed on demand."""
        if self._stale and self._was_seen:
            rows = [self._table.row_of[name] for name in self._tree.names()]
            self._order = np.array(rows, dtype=np.int64)
            self._stale = False
        return self._order
