"""Node changes: drain, cordon and taint nodes.

Mirrors what kubectl drain does to the pods of a node (staging/src/k8s.io/kubectl/pkg/drain) and what the taint
eviction controller does to those that do not tolerate a NoExecute taint.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...api.node import Node
from ...api.pod import Pod
from ...api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_EFFECTS,
    Taint,
    Toleration,
    find_untolerated,
)
from ...errors import InputError
from ..owners import is_bare, is_daemon, is_static
from ..references import find_node
from ..stage import Stage
from .change import ClusterChange, check_field, names_of

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
LOST = "no owner, so it is not recreated; kubectl drain refuses without --force"


@dataclass(frozen=True, slots=True)
class Drain(ClusterChange):
    """Cordon nodes and evict their pods, except daemons and static pods.

    Pods without an owner are lost, unless `force` is set: then they count as recreated.
    """

    nodes: tuple[str, ...]
    force: bool = False

    def __post_init__(self) -> None:
        names_of(self, "nodes")

    @property
    def text(self) -> str:
        return f"drain {' '.join(self.nodes)}"

    def apply(self, stage: Stage) -> None:
        found = [find_node(stage.cluster, name) for name in self.nodes]
        for node in found:
            stage.update_node(cordoned(node))
        for node in found:
            for pod in stage.pods_on(node.name):
                if is_daemon(pod) or is_static(pod):
                    continue
                if is_bare(pod) and not self.force:
                    stage.lose(pod, f"{node.name} is drained: {LOST}")
                else:
                    stage.evict(pod, f"{node.name} is drained")


@dataclass(frozen=True, slots=True)
class Cordon(ClusterChange):
    """Cordon nodes; running pods stay."""

    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        names_of(self, "nodes")

    @property
    def text(self) -> str:
        return f"cordon {' '.join(self.nodes)}"

    def apply(self, stage: Stage) -> None:
        for node in [find_node(stage.cluster, name) for name in self.nodes]:
            stage.update_node(cordoned(node))


@dataclass(frozen=True, slots=True)
class Uncordon(ClusterChange):
    """Uncordon nodes."""

    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        names_of(self, "nodes")

    @property
    def text(self) -> str:
        return f"uncordon {' '.join(self.nodes)}"

    def apply(self, stage: Stage) -> None:
        for node in [find_node(stage.cluster, name) for name in self.nodes]:
            stage.update_node(uncordoned(node))


@dataclass(frozen=True, slots=True)
class AddTaint(ClusterChange):
    """Add taints to a node, written `key=value:Effect` or `key:Effect`; NoExecute evicts pods."""

    node: str
    taints: tuple[str, ...]

    def __post_init__(self) -> None:
        check_field(self, "node", str, "a name")
        names_of(self, "taints")

    @property
    def text(self) -> str:
        return f"add-taint {self.node} {' '.join(self.taints)}"

    def apply(self, stage: Stage) -> None:
        node = find_node(stage.cluster, self.node)
        added = [parse_taint(text) for text in self.taints]
        names = {(taint.key, taint.effect) for taint in added}
        kept = tuple(taint for taint in node.taints if (taint.key, taint.effect) not in names)
        stage.update_node(node.replace(taints=(*kept, *added)))
        drives_away = [taint for taint in added if taint.effect == NO_EXECUTE]
        for pod in stage.pods_on(node.name) if drives_away else ():
            taint = find_untolerated(drives_away, _for_ever(pod))
            if taint is not None and not is_static(pod):
                why = f"{node.name} has taint {show_taint(taint)}"
                if is_daemon(pod):
                    stage.dismiss(pod, why)
                elif is_bare(pod):
                    stage.lose(pod, f"{why}: not recreated")
                else:
                    stage.evict(pod, why)


@dataclass(frozen=True, slots=True)
class RemoveTaint(ClusterChange):
    """Remove taints from a node, each written as key, `key:Effect` or `key=value:Effect`,
    optionally with a trailing -."""

    node: str
    taints: tuple[str, ...]

    def __post_init__(self) -> None:
        check_field(self, "node", str, "a name")
        names_of(self, "taints")

    @property
    def text(self) -> str:
        return f"remove-taint {self.node} {' '.join(self.taints)}"

    def apply(self, stage: Stage) -> None:
        node = find_node(stage.cluster, self.node)
        gone: set[Taint] = set()
        for text in self.taints:
            found = {taint for taint in node.taints if _is_named(taint, text.removesuffix("-"))}
            if not found:
                known = ", ".join(map(show_taint, node.taints)) or "none"
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


def show_taint(taint: Taint) -> str:
    """The taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _is_named(taint: Taint, text: str) -> bool:
    named, colon, effect = text.rpartition(":")
    if not colon:
        named, effect = text, taint.effect
    key, equals, value = named.partition("=")
    is_value = value == taint.value if equals else True
    return taint.key == key and taint.effect == effect and is_value


def _for_ever(pod: Pod) -> list[Toleration]:
    """The tolerations without a time limit."""
    return [t for t in pod.tolerations if t.toleration_seconds is None]
