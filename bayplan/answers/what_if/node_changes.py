"""Node changes: cordon and taint nodes, and add copies of existing ones with their dependent objects.

Mirrors what the taint eviction controller does to pods that do not tolerate a NoExecute taint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from ...api.node import HOSTNAME, Node
from ...api.storage import CSINode
from ...api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_EFFECTS,
    Taint,
    find_untolerated,
)
from ...cluster.memory.absent_owners import is_static, stays_with_node, successor_of
from ...cluster.objects.object_index import ClusterObject, ObjectIndex
from ...errors import InputError
from ..references import find_node
from ..stage import Stage
from .change import ClusterChange, NodesChange, check_field, names_of

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
OF_THE_MOMENT = "node.kubernetes.io/"
"""Key prefixes of taints that state a node's condition, not its kind."""


@dataclass(frozen=True)
class Cordon(NodesChange):
    """Cordon nodes, given by names, patterns or labels; running pods stay."""

    nodes: tuple[str, ...] = ()
    selector: str = ""

    def apply(self, stage: Stage) -> None:
        for node in self.find(stage):
            stage.update_node(cordoned(node))


@dataclass(frozen=True)
class Uncordon(NodesChange):
    """Uncordon nodes, given by names, patterns or labels."""

    nodes: tuple[str, ...] = ()
    selector: str = ""

    def apply(self, stage: Stage) -> None:
        for node in self.find(stage):
            stage.update_node(uncordoned(node))


@dataclass(frozen=True)
class TaintChange(ClusterChange):
    """A change of the taints of a node."""

    node: str
    taints: tuple[str, ...]

    def __post_init__(self) -> None:
        check_field(self, "node", str, "a name")
        names_of(self, "taints")

    @property
    def text(self) -> str:
        word = "add-taint" if isinstance(self, AddTaint) else "remove-taint"
        return f"{word} {self.node} {' '.join(self.taints)}"


class AddTaint(TaintChange):
    """Add taints to a node, written `key=value:Effect` or `key:Effect`; NoExecute evicts pods."""

    def apply(self, stage: Stage) -> None:
        node = find_node(stage.cluster, self.node)
        added = [parse_taint(text) for text in self.taints]
        names = {(taint.key, taint.effect) for taint in added}
        kept = tuple(taint for taint in node.taints if (taint.key, taint.effect) not in names)
        stage.update_node(node.replace(taints=(*kept, *added)))
        drives_away = [taint for taint in added if taint.effect == NO_EXECUTE]
        for pod in stage.pods_on(node.name) if drives_away else ():
            for_ever = [one for one in pod.tolerations if one.toleration_seconds is None]
            taint = find_untolerated(drives_away, for_ever)
            if taint is not None and not is_static(pod):
                stage.drive_off(pod, f"{node.name} has taint {taint}")


class RemoveTaint(TaintChange):
    """Remove taints from a node, each written as key, `key:Effect` or `key=value:Effect`,
    optionally with a trailing -."""

    def apply(self, stage: Stage) -> None:
        node = find_node(stage.cluster, self.node)
        gone: set[Taint] = set()
        for text in self.taints:
            found = {taint for taint in node.taints if _is_named(taint, text.removesuffix("-"))}
            if not found:
                known = ", ".join(map(str, node.taints)) or "none"
                expected = f'expected a taint of node {node.name}; got "{text}"'
                raise InputError(f"{expected}; its taints: {known}")
            gone |= found
        stage.update_node(node.replace(taints=tuple(t for t in node.taints if t not in gone)))


def cordoned(node: Node) -> Node:
    """The node, cordoned, with the corresponding taint."""
    others = tuple(taint for taint in node.taints if taint != CORDONED)
    return node.replace(unschedulable=True, taints=(*others, CORDONED))


def uncordoned(node: Node) -> Node:
    """The node, uncordoned."""
    taints = tuple(taint for taint in node.taints if taint != CORDONED)
    return node.replace(unschedulable=False, taints=taints)


def parse_taint(text: str) -> Taint:
    """Parse `key=value:Effect` or `key:Effect`; raises InputError otherwise."""
    named, colon, effect = text.rpartition(":")
    key, _, value = named.partition("=")
    if not colon or not key or effect not in TAINT_EFFECTS:
        effects = ", ".join(TAINT_EFFECTS)
        expected = f"expected key=value:Effect or key:Effect with an effect of {effects}"
        raise InputError(f'{expected}; got "{text}"')
    return Taint(key=key, value=value, effect=effect)


def _is_named(taint: Taint, text: str) -> bool:
    named, colon, effect = text.rpartition(":")
    if not colon:
        named, effect = text, taint.effect
    key, equals, value = named.partition("=")
    is_value = value == taint.value if equals else True
    return taint.key == key and taint.effect == effect and is_value


@dataclass(frozen=True, slots=True)
class AddNodes(ClusterChange):
    """Add `number` nodes like `like`: the same size, labels and taints; healthy, uncordoned and
    empty. With several names, the nodes are copies of each in turn."""

    number: int
    like: tuple[str, ...]

    def __post_init__(self) -> None:
        check_field(self, "number", int, "a whole number")
        names_of(self, "like")
        if not self.like:
            raise InputError("add-nodes: expected the name of a node to copy; got none")

    @property
    def text(self) -> str:
        return f"add-nodes {self.number} {' '.join(f'--like {name}' for name in self.like)}"

    def apply(self, stage: Stage) -> None:
        if self.number < 0:
            raise InputError(f"expected a number of nodes; got {self.number}")
        patterns = [find_node(stage.cluster, name) for name in self.like]
        names = [free_names(stage.cluster, pattern.name) for pattern in patterns]
        for i in range(self.number):
            turn = i % len(patterns)
            add_node_like(stage, patterns[turn], next(names[turn]))


def add_node_like(stage: Stage, pattern: Node, name: str) -> None:
    """Add a copy of `pattern`, with its CSINode and devices.

    Its daemons come from their DaemonSets; where the cluster has only the pods, these are copied,
    as the room that they take is not free on a new node either.
    """
    stage.add(list(nodes_like(stage.cluster, pattern, name)))
    for pod in stage.pods_on(pattern.name):
        owner = pod.controller
        if not stays_with_node(pod):
            continue
        if owner is None or stage.cluster.get(owner.kind, pod.namespace, owner.name) is None:
            own_name = _renamed(pod.name, pattern.name, name)
            stage.add((successor_of(pod).replace(name=own_name, node_name=name),))


def nodes_like(cluster: ObjectIndex, pattern: Node, name: str) -> Iterator[ClusterObject]:
    """A copy of `pattern`, with copies of its CSINode and devices."""
    own_names = {HOSTNAME: name} if HOSTNAME in pattern.labels else {}
    yield pattern.replace(
        name=name,
        uid="",
        resource_version="",
        creation_timestamp=None,
        labels={**pattern.labels, **own_names},
        unschedulable=False,
        taints=tuple(t for t in pattern.taints if not t.key.startswith(OF_THE_MOMENT)),
        conditions=(),
    )
    drivers = cluster.get("CSINode", "", pattern.name)
    if isinstance(drivers, CSINode):
        metadata = replace(drivers.metadata, name=name, uid="", resource_version="")
        yield replace(drivers, metadata=metadata)
    yield from _devices_like(cluster, pattern.name, name)


def _devices_like(cluster: ObjectIndex, like: str, name: str) -> Iterator[ClusterObject]:
    """Copies of the node's own devices; devices shared by several nodes are not copied."""
    for slice_ in cluster.list("ResourceSlice"):
        if slice_.spec.node_name != like:
            continue
        pool = replace(slice_.spec.pool, name=_renamed(slice_.spec.pool.name, like, name))
        metadata = replace(
            slice_.metadata,
            name=_renamed(slice_.name, like, name),
            uid="",
            resource_version="",
            owner_references=None,
        )
        yield replace(
            slice_, metadata=metadata, spec=replace(slice_.spec, node_name=name, pool=pool)
        )


def _renamed(text: str, like: str, name: str) -> str:
    return text.replace(like, name) if like in text else f"{text}-{name}"


def free_names(cluster: ObjectIndex, like: str) -> Iterator[str]:
    """Names for copies of a node."""
    names = (f"{like}-new-{number}" for number in count(1))
    return (name for name in names if cluster.get("Node", "", name) is None)
