"""TableWriter: every way in which a NodeTable changes. Only `cache/` uses it (and a what-if, on its one-row copy).

After every method the table is as if built from scratch in its new state, except for two facts that depend on history,
as in kube-scheduler's NodeInfo (pkg/scheduler/framework/types.go): the order of the pods on a row, and host ports that
several pods of a row hold.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from heapq import heappop, heappush

import numpy as np

from ..api.node import Node
from ..api.pod import Pod, PodClass, classes_of
from .carried import NONE_HIDDEN, Hidden
from .columns import Column
from .node_table import NodeTable

FIRST_CAPACITY = 64
FEW_PODS = 8
"""Number of pods up to which a loop is quicker than NumPy."""
MOST_MULTIPLIED = 2**53
"""Bound of amounts that can be multiplied by a thousand pods within 64 bits."""


class _Alike:
    """Pods that count alike: the first of them, and the row of each."""

    __slots__ = ("can_be_multiplied", "deletion_timestamp", "pod", "rows", "status")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.status, self.deletion_timestamp = pod.status, pod.deletion_timestamp
        self.rows: list[int] = []
        self.can_be_multiplied = _can_be_multiplied(pod)


class TableWriter:
    """Adds, changes and removes nodes and pods of `table`."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self._free: list[int] = []
        """A heap: the lowest row is used first, so nodes that came and went leave no trace."""
        self._ports_before: dict[int, list[Column]] = {}
        """By row, the host ports before a pod on trial: the end of a trial frees ports that other pods hold, too."""

    def set_node(self, node: Node) -> int:
        """Add `node`, or replace the node of that name; returns its row."""
        table = self.table
        row = self.row_for(node.name)
        old = table.nodes[row]
        self._restore_ports_at(row)
        table.node_count += old is None
        table.nodes[row] = node
        table.live_column.data[row] = True
        table.unschedulable_column.data[row] = node.unschedulable
        table.allocatable.set(row, node.allocatable)
        table.max_pods_column.data[row] = node.allocatable.get("pods", 0)
        self._set_labels(row, node.labels)
        table.taints.set(row, node.taints)
        table.features.set(row, tuple(sorted(node.declared_features)))
        images = old.images if old is not None else ()
        if images != node.images:
            table.images.set(row, images, node.images)
        self._node_changed(row)
        return row

    def remove_node(self, name: str) -> None:
        """Remove the node; its row stays while pods are on it."""
        table = self.table
        row = table.row_of[name]
        old = table.nodes[row]
        assert old is not None, f"node {name} is not in the table"
        table.nodes[row] = None
        table.node_count -= 1
        table.live_column.data[row] = False
        table.unschedulable_column.data[row] = False
        table.allocatable.set(row, {})
        table.max_pods_column.data[row] = 0
        self._set_labels(row, {})
        table.taints.set(row, ())
        table.features.set(row, ())
        table.images.set(row, old.images, ())
        self._node_changed(row)
        self._release(row)

    def _set_labels(self, row: int, labels: Mapping[str, str]) -> None:
        """Record the labels of a node; pods on it are counted in its new domains."""
        table = self.table
        changed = table.labels.set(row, labels)
        if changed and table.pods[row]:
            counted = table.terms.counts_of(table.pods[row].values())
            for counts in (*counted, *table.carried.counts_at(row)):
                for label, old in changed:
                    counts.relabel(row, label, old)

    def add_pod(self, pod: Pod) -> int:
        """Count `pod` on its node, which may not be known yet; returns the row."""
        row = self.table.row_of.get(pod.node_name)
        if row is None:
            row = self.row_for(pod.node_name)
        pods = self.table.pods[row]
        assert pod.uid not in pods, f"pod {pod.key} is on {pod.node_name} already"
        pods[pod.uid] = pod
        self._count(row, pod, 1)
        return row

    def add_pods(self, pods: Collection[Pod]) -> list[Pod]:
        """Count many pods on their nodes, those that count alike together; returns a pod of each class."""
        row_of, on_rows = self.table.row_of, self.table.pods
        alike: dict[Hashable, _Alike] = {}
        latest: dict[PodClass, _Alike] = {}
        for pod, pod_class in zip(pods, classes_of(pods), strict=True):
            row = row_of.get(pod.node_name)
            if row is None:
                row = self.row_for(pod.node_name)
            on_rows[row][pod.uid] = pod
            group = latest.get(pod_class)
            if (
                group is None
                or pod.status is not group.status
                or pod.deletion_timestamp is not group.deletion_timestamp
            ):
                key = _counted_by(pod, pod_class)
                group = alike.get(key)
                if group is None:
                    group = alike[key] = _Alike(pod)
                latest[pod_class] = group
            if pod.counts_claims or not group.can_be_multiplied:
                self._count(row, pod, 1)
            else:
                group.rows.append(row)
        self._count_groups(alike.values())
        return [group.pod for group in latest.values()]

    def _count_groups(self, groups: Iterable[_Alike]) -> None:
        """Count the pods of each group: one at each of its rows, which may repeat."""
        changed: dict[int, None] = {}
        for group in groups:
            if len(group.rows) < FEW_PODS:
                for row in group.rows:
                    self._count(row, group.pod, 1)
            else:
                rows, numbers = np.unique(group.rows, return_counts=True)
                at = rows.tolist()
                changed.update(dict.fromkeys(at))
                self._count_together(dict(zip(at, numbers.tolist(), strict=True)), group.pod)
        for row in changed:
            if self._ports_before:
                self._restore_ports_at(row)
            self.table.row_changes.mark(row)
            self.table.images.touch(row)

    def add_copies(self, pod: Pod, row: int, count: int) -> None:
        """Count `count` pods like `pod` at `row`. They are not among the pods of the row, and stay there for good.

        The node keeps its labels.
        """
        self._count(row, pod, count)

    def remove_pod(self, pod: Pod) -> int:
        """Take `pod`, the very object that was added, off its node."""
        row = self.table.row_of[pod.node_name]
        _take_out(self.table.pods[row], pod.uid)
        self._count(row, pod, -1)
        self._release(row)
        return row

    def try_pod(self, pod: Pod, hidden: Hidden) -> int:
        """Count `pod` on its node until `end_trial`, which needs the same `hidden` kinds of terms.

        Unlike other changes of the node, this does not update its image counts.
        """
        row = self.table.row_of[pod.node_name]
        self._keep_ports(row, pod)
        self.table.pods[row][pod.uid] = pod
        self._count(row, pod, 1, hidden)
        return row

    def end_trial(self, pod: Pod, hidden: Hidden) -> None:
        """Take a pod of `try_pod` off its node."""
        row = self.table.row_of[pod.node_name]
        self._keep_ports(row, pod)
        _take_out(self.table.pods[row], pod.uid)
        self._count(row, pod, -1, hidden)

    def _keep_ports(self, row: int, pod: Pod) -> None:
        if pod.spec.host_ports and row not in self._ports_before:
            self._ports_before[row] = self.table.ports.taken_at(row)

    def adopt_pod(self, tried: Pod, pod: Pod) -> None:
        """Keep a pod that is on trial as `pod`, which counts the same."""
        row = self.table.row_of[pod.node_name]
        self.table.pods[row][tried.uid] = pod
        self.table.images.touch(row)
        self._restore_ports_at(row)
        if pod.spec.host_ports:
            self.table.ports.add(row, pod.spec.host_ports)

    def restore_row(self, row: int, uids: Iterable[str]) -> None:
        """Give the pods of a row the order of `uids`, and the row the host ports that it had before a trial."""
        pods = self.table.pods[row]
        ordered = {uid: pods[uid] for uid in uids}
        pods.clear()
        pods.update(ordered)
        self._restore_ports_at(row)

    def _restore_ports_at(self, row: int) -> None:
        """Drop the trial's effect on host ports, because the node changes and kube-scheduler reads it again."""
        if row in self._ports_before:
            table = self.table
            table.ports.restore(row, self._ports_before.pop(row))
            table.row_changes.mark(row)

    def replace_pod(self, old: Pod, new: Pod) -> None:
        """Remove `old` and add `new`. If they differ only in labels or in being deleted, only the counts of terms
        change.

        Since v1.35 API servers add the topology labels of the node to a pod that is bound.
        """
        if not _counts_like(old, new):
            self.remove_pod(old)
            self.add_pod(new)
            return
        table = self.table
        row = table.row_of[old.node_name]
        is_reordered = _put_last(table.pods[row], new)
        table.images.touch(row)
        if self._ports_before:
            self._restore_ports_at(row)
        if new.spec.host_ports and table.ports.add(row, new.spec.host_ports):
            table.row_changes.mark(row)  # removing another holder had freed a port
        if (old.labels is not new.labels and old.labels != new.labels) or (
            old.is_terminating and not new.is_terminating
        ):
            table.terms.add_pod(row, old, -1)
            table.terms.add_pod(row, new, 1)
            table.row_changes.mark(row)  # terms count pods by their labels
        elif new.is_terminating and not old.is_terminating:
            table.terms.pod_leaves(row, new)
            table.row_changes.mark(row)
        if old.annotations is not new.annotations and old.annotations != new.annotations:
            table.row_changes.mark(row)  # a plugin may read them
        if is_reordered or old.status.start_time != new.status.start_time:
            table.order_changes.mark(row)

    def nominations_changed(self, node_name: str) -> None:
        """Log a change of the node's row: other pods are nominated to it."""
        table = self.table
        row = table.row_of.get(node_name)
        if row is not None:
            table.row_changes.mark(row)  # no column changes, but nominated pods reserve room

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Record the labels of a namespace."""
        if self.table.namespaces.get(name) != labels:
            self.table.namespaces[name] = dict(labels)
            self.table.namespaces_version += 1

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        if self.table.namespaces.pop(name, None) is not None:
            self.table.namespaces_version += 1

    def row_for(self, name: str) -> int:
        """The row of node `name`, a new one when there is none."""
        table = self.table
        row = table.row_of.get(name)
        if row is not None:
            return row
        if self._free:
            row = heappop(self._free)
            table.names[row] = name
        else:
            row = table.size.rows
            if row == table.size.capacity:
                table.size.grow(max(FIRST_CAPACITY, 2 * row))
            table.size.rows = row + 1
            table.nodes.append(None)
            table.names.append(name)
            table.pods.append({})
        table.row_of[name] = row
        self._node_changed(row)
        return row

    def _count(self, row: int, pod: Pod, change: int, hidden: Hidden | None = None) -> None:
        """Add or subtract the pod's counts; only pods on trial have `hidden` terms."""
        table = self.table
        if self._ports_before and hidden is None:
            self._restore_ports_at(row)
        spec = pod.spec
        table.count_amounts(row, pod, change)
        if spec.host_ports:
            ports = table.ports
            (ports.add if change > 0 else ports.remove)(row, spec.host_ports)
        if spec.volumes:
            table.volumes.add_pod(row, pod, change)
        table.terms.add_pod(row, pod, change)
        if spec.affinity is not None:
            table.carried.add_pod(row, pod, change, hidden or NONE_HIDDEN)
        table.row_changes.mark(row)
        if hidden is None:
            table.images.touch(row)

    def _count_together(self, rows: Mapping[int, int], pod: Pod) -> None:
        """Count pods like `pod`, with a number for each of `rows`. The caller logs the rows."""
        table = self.table
        at = np.fromiter(rows.keys(), dtype=np.int64, count=len(rows))
        counts = np.fromiter(rows.values(), dtype=np.int64, count=len(rows))
        for resource, amount in pod.usage.items():
            table.requested.column(resource).data[at] += amount * counts
        for resource, amount in pod.scoring_usage.items():
            table.scoring_usage.column(resource).data[at] += amount * counts
        table.pod_count_column.data[at] += counts
        table.priorities.column(pod.spec.priority or 0).data[at] += counts
        table.terms.add_pods(rows, pod)

    def _node_changed(self, row: int) -> None:
        self.table.images.touch(row)
        self.table.node_changes.mark(row)
        self.table.row_changes.mark(row)

    def _release(self, row: int) -> None:
        """Free a row that has neither a node nor pods."""
        table = self.table
        if table.nodes[row] is None and not table.pods[row]:
            del table.row_of[table.names[row]]
            table.names[row] = ""
            self._ports_before.pop(row, None)
            heappush(self._free, row)


def _can_be_multiplied(pod: Pod) -> bool:
    """Whether many pods like `pod` can be counted by multiplying its amounts."""
    spec = pod.spec
    if spec.host_ports or spec.volumes or spec.has_pod_terms:
        return False
    return all(amount < MOST_MULTIPLIED for amount in pod.scoring_usage.values())


def _counted_by(pod: Pod, pod_class: PodClass) -> Hashable:
    """A key that is equal for pods that count alike. It may differ if equal parts of a status are not one object."""
    status = pod.status
    return (
        pod_class,
        pod.deletion_timestamp is None,
        id(status.container_statuses),
        id(status.init_container_statuses),
        id(status.resources),
        id(status.allocated_resources),
        id(status.conditions),
    )


def _take_out(pods: dict[str, Pod], uid: str) -> None:
    """Remove a pod; the last pod takes its place."""
    last, moved = pods.popitem()
    if last == uid:
        return
    following: list[tuple[str, Pod]] = []
    while (entry := pods.popitem())[0] != uid:
        following.append(entry)
    pods[last] = moved
    pods.update(reversed(following))


def _put_last(pods: dict[str, Pod], pod: Pod) -> bool:
    """Remove a pod that is there and add `pod`, its new version; returns whether the order changed."""
    is_reordered = next(reversed(pods)) != pod.uid
    if is_reordered:
        _take_out(pods, pod.uid)
    pods[pod.uid] = pod
    return is_reordered


def _counts_like(old: Pod, new: Pod) -> bool:
    """Whether every count of the table, except counts of terms, is the same for both pods."""
    return (
        old.spec is new.spec
        and old.namespace == new.namespace
        and old.node_name == new.node_name
        and old.uid == new.uid
        and (
            old.status is new.status
            or not (old.status.has_resources or new.status.has_resources)
            or (old.usage == new.usage and old.nonzero_usage == new.nonzero_usage)
        )
    )
