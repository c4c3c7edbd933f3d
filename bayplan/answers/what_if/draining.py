"""Draining: cordon nodes and evict their pods, as kubectl drain does, under disruption budgets."""

from __future__ import annotations

from dataclasses import dataclass

from ..references import find_nodes
from ..stage import Stage
from .change import ClusterChange, check_nodes, check_seconds, shown_nodes
from .node_changes import cordoned
from .rounds import Evictions


@dataclass(frozen=True, slots=True)
class Drain(ClusterChange):
    """Cordon nodes and evict their pods in rounds, except daemons and static pods.

    Nodes are given by names or patterns (`gpu-*`), by the labels of `selector`, or by both. Pods
    without an owner are lost, unless `force` is set: then they count as recreated. `start_s` is the
    time from a pod's node to its readiness, in seconds.
    """

    nodes: tuple[str, ...] = ()
    force: bool = False
    selector: str = ""
    start_s: float = 0

    def __post_init__(self) -> None:
        check_nodes(self)
        check_seconds(self, "start_s")

    @property
    def text(self) -> str:
        return f"drain {shown_nodes(self)}"

    def apply(self, stage: Stage) -> None:
        found = find_nodes(stage.cluster, self.nodes, self.selector)
        for node in found:
            stage.update_node(cordoned(node))
        evictions = Evictions(stage, self.start_s, self.force)
        stage.courses.append(evictions.drain([node.name for node in found], stage.on_progress))
