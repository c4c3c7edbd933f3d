"""Proposal: one possible remedy for a rejection, and builders of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from ...api.node import Node
from ...api.pod import Pod
from ...api.wire.encode import to_dict
from ...cluster.objects.object_index import ClusterObject
from ...table import NodeInfo
from ...trials import TrialCluster
from ..manifest_changes import ChangeKind, ObjectChange, ObjectRef
from ..situation import Refused, Situation

T = TypeVar("T")
MOST_PODS = 24
"""Maximum number of pods that leave for one."""
GIVING_UP = 4
"""Cost of dropping a requirement of the pod, in number of other changes."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A rejection with its pod and node, after the changes `so_far`."""

    situation: Situation
    refused: Refused
    pod: Pod
    so_far: Sequence[ObjectChange]

    @property
    def view(self) -> TrialCluster:
        return self.situation.view

    @property
    def node(self) -> Node:
        return self.situation.node

    @property
    def node_info(self) -> NodeInfo:
        """The NodeInfo that the filters get."""
        table = self.view.table
        return table.node_at(table.row_of[self.node.name])

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.refused.status.reasons

    def pods_here(self) -> list[Pod]:
        """The pods on the node that may leave it, least important first."""
        pods = self.view.table.pods[self.view.table.row_of[self.node.name]].values()
        kept = self.situation.kept
        return sorted((p for p in pods if ObjectRef.of(p) not in kept), key=importance)

    def helps(self, changes: Sequence[ObjectChange]) -> bool:
        """Whether the plugin accepts the pod once these changes are made, too."""
        # The cluster already has the earlier changes; these are added to them.
        left = self.situation.refusals_after(self.pod, changes)
        return all(refused.plugin != self.refused.plugin for refused in left)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A goal and the changes that may reach it."""

    goal: str
    changes: tuple[ObjectChange, ...]
    price: int = 0
    """Penalty, in number of changes."""

    @property
    def size(self) -> int:
        """Sort key: remedies with few changes come first."""
        return len(self.changes) + self.price


def importance(pod: Pod) -> tuple[bool, int, str]:
    """Sort key of pods: terminating ones first, then by priority."""
    return (not pod.is_terminating, pod.priority, pod.key)


def remedy(goal: str, *changes: ObjectChange) -> Remedy:
    """A proposal with a goal and its changes; one without changes is left aside."""
    return Remedy(goal, changes)


def last_resort(goal: str, *changes: ObjectChange) -> Remedy:
    """A proposal that drops one of the pod's requirements."""
    return Remedy(goal, changes, GIVING_UP)


def in_words(changes: Sequence[ObjectChange]) -> Remedy:
    """A proposal whose goal is its changes."""
    return remedy(", ".join(change.text for change in changes), *changes)


def leaving(goal: str, pods: Sequence[Pod], why: str = "", most: int = MOST_PODS) -> Remedy:
    """A proposal that these pods leave their nodes; without changes, so that it is dropped, if they are too many."""
    return remedy(goal, *[delete_pod(pod, why) for pod in (pods if len(pods) <= most else ())])


def smallest(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number above `low`, which is not enough, up to `high`, which is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def necessary(changes: Sequence[T], is_enough: Callable[[Sequence[T]], bool]) -> list[T]:
    """The changes that are enough together, without those that can be left out; the last are left out first."""
    needed = list(changes)
    for change in reversed(changes):
        rest = [other for other in needed if other is not change]
        if rest and is_enough(rest):
            needed = rest
    return needed


def placed_pods(view: TrialCluster) -> Iterator[tuple[Node, Pod]]:
    """Every pod on a node, with the node."""
    for row, node in enumerate(view.table.nodes):
        if node is not None:
            for pod in view.table.pods[row].values():
                yield node, pod


def add(obj: ClusterObject, path: str, to: Any, text: str = "") -> ObjectChange:
    """Addition of a field or list item."""
    return ObjectChange(kind=ChangeKind.ADD, object=ObjectRef.of(obj), path=path, to=to, text=text)


def replace(obj: ClusterObject, path: str, before: Any, to: Any, text: str = "") -> ObjectChange:
    """Replacement of the value of a field."""
    ref = ObjectRef.of(obj)
    return ObjectChange(
        kind=ChangeKind.REPLACE, object=ref, path=path, from_=before, to=to, text=text
    )


def put(obj: ClusterObject, path: str, before: Any, to: Any, text: str = "") -> ObjectChange:
    """A value of a field that may be absent."""
    if before is None:
        return add(obj, path, to, text)
    return replace(obj, path, before, to, text)


def remove(obj: ClusterObject, path: str, before: Any, text: str = "") -> ObjectChange:
    """Removal of a field or list item."""
    return ObjectChange(
        kind=ChangeKind.REMOVE, object=ObjectRef.of(obj), path=path, from_=before, text=text
    )


def create(manifest: Mapping[str, Any], text: str = "") -> ObjectChange:
    """Creation of an object."""
    metadata = manifest["metadata"]
    ref = ObjectRef(
        kind=manifest["kind"], namespace=metadata.get("namespace", ""), name=metadata["name"]
    )
    return ObjectChange(kind=ChangeKind.CREATE, object=ref, to=dict(manifest), text=text)


def delete(obj: ClusterObject, text: str = "") -> ObjectChange:
    """Deletion of an object."""
    return ObjectChange(kind=ChangeKind.DELETE, object=ObjectRef.of(obj), text=text)


def delete_pod(pod: Pod, why: str = "") -> ObjectChange:
    """Removal of a pod from its node: it ends, or runs elsewhere."""
    what = "wait for the end of" if pod.is_terminating else "move or delete"
    tail = f" ({why})" if why else ""
    return delete(pod, f"{what} pod {pod.key} on {pod.node_name}{tail}")


def plain(value: ClusterObject | Any) -> Any:
    """Part of an object as its manifest has it."""
    if isinstance(value, Pod | Node):
        return to_dict(value)
    return msgspec.json.decode(msgspec.json.encode(value))


def owner_reference(pod: Pod) -> dict[str, Any]:
    """The owner reference of an object made for `pod`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "uid": pod.uid,
        "controller": True,
    }
