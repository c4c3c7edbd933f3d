"""Node changes: cordon and taint nodes.

Mirrors what the taint eviction controller does to pods that do not tolerate a NoExecute taint.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...api.node import Node
from ...api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_EFFECTS,
    Taint,
    find_untolerated,
)
from ...cluster.memory.absent_owners import is_static
from ...errors import InputError
from ..references import find_node
from ..stage import Stage
from .change import ClusterChange, NodesChange, check_field, names_of

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


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
