"""Proposal: one way in which a refusal might be met, and how changes are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ...api.encode import to_dict
from ...api.node import Node
from ...api.pod import Pod
from ...cluster.memory import ClusterObject
from ...table import NodeInfo
from ..changes import Change, ChangeKind, ObjectRef
from ..cluster_view import ClusterView
from ..situation import Refused, Situation

GIVING_UP = 4
"""What a pod asks for, it has reasons to ask for: so many other changes are made rather than giving it up."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A refusal, and the pod and the node that it is about as they are with the changes `so_far`."""

    situation: Situation
    refused: Refused
    pod: Pod
    so_far: Sequence[Change]

    @property
    def view(self) -> ClusterView:
        return self.situation.view

    @property
    def node(self) -> Node:
        return self.situation.node

    @property
    def node_info(self) -> NodeInfo:
        """The node as the filters see it."""
        table = self.view.table
        return table.node_at(table.row_of[self.node.name])

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.refused.status.reasons

    def pods_here(self) -> list[Pod]:
        """The pods on the node, those first that are missed least."""
        pods = list(self.view.table.pods[self.view.table.row_of[self.node.name]].values())
        return sorted(pods, key=importance)

    def helps(self, changes: Sequence[Change]) -> bool:
        """Whether the plugin has nothing more to say once these changes are made, too."""
        # The cluster has the changes so far; these come on top of them.
        left = self.situation.refusals_after(self.pod, changes)
        return all(refused.plugin != self.refused.plugin for refused in left)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What is to be reached, and the changes that may do it."""

    goal: str
    changes: tuple[Change, ...]
    price: int = 0
    """How many changes it would be worth not to take it."""

    @property
    def size(self) -> int:
        """What is compared: a remedy with few changes comes before one with many."""
        return len(self.changes) + self.price


def importance(pod: Pod) -> tuple[bool, int, str]:
    """Sorts pods: those on their way out first, then by priority."""
    return (not pod.is_terminating, pod.priority, pod.key)


def remedy(goal: str, *changes: Change) -> Remedy:
    """What is to be reached, by which changes."""
    return Remedy(goal, changes)


def last_resort(goal: str, *changes: Change) -> Remedy:
    """The pod gives up something it asked for."""
    return Remedy(goal, changes, GIVING_UP)


def add(obj: ClusterObject, path: str, to: Any, text: str = "") -> Change:
    """A field, or an item of a list, that is new."""
    return Change(kind=ChangeKind.ADD, object=ObjectRef.of(obj), path=path, to=to, text=text)


def replace(obj: ClusterObject, path: str, before: Any, to: Any, text: str = "") -> Change:
    """Another value of a field."""
    ref = ObjectRef.of(obj)
    return Change(kind=ChangeKind.REPLACE, object=ref, path=path, from_=before, to=to, text=text)


def put(obj: ClusterObject, path: str, before: Any, to: Any, text: str = "") -> Change:
    """A value of a field, which has another one or none."""
    if before is None:
        return add(obj, path, to, text)
    return replace(obj, path, before, to, text)


def remove(obj: ClusterObject, path: str, before: Any, text: str = "") -> Change:
    """A field, or an item of a list, that goes."""
    return Change(
        kind=ChangeKind.REMOVE, object=ObjectRef.of(obj), path=path, from_=before, text=text
    )


def create(manifest: Mapping[str, Any], text: str = "") -> Change:
    """An object that is new."""
    metadata = manifest["metadata"]
    ref = ObjectRef(
        kind=manifest["kind"], namespace=metadata.get("namespace", ""), name=metadata["name"]
    )
    return Change(kind=ChangeKind.CREATE, object=ref, to=dict(manifest), text=text)


def delete(obj: ClusterObject, text: str = "") -> Change:
    """An object that goes."""
    return Change(kind=ChangeKind.DELETE, object=ObjectRef.of(obj), text=text)


def delete_pod(pod: Pod, why: str = "") -> Change:
    """A pod that leaves its node: it ends, or runs elsewhere."""
    what = "wait for the end of" if pod.is_terminating else "move or delete"
    tail = f" ({why})" if why else ""
    return delete(pod, f"{what} pod {pod.key} on {pod.node_name}{tail}")


def plain(value: ClusterObject | Any) -> Any:
    """Part of an object as it stands in a manifest."""
    if isinstance(value, Pod | Node):
        return to_dict(value)
    return msgspec.json.decode(msgspec.json.encode(value))


def owner_reference(pod: Pod) -> dict[str, Any]:
    """What an object says that was made for `pod`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "uid": pod.uid,
        "controller": True,
    }
