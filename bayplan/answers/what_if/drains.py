"""Drains: cordon nodes and evict their pods, as kubectl drain does, under disruption budgets."""

from __future__ import annotations

from dataclasses import dataclass

from ..references import find_nodes
from ..stage import Stage
from .change import ClusterChange, check_nodes, check_seconds, shown_nodes
from .drain_rules import DrainRules
from .node_changes import cordoned
from .rounds import Evictions


@dataclass(frozen=True, slots=True)
class Drain(ClusterChange):
    """Cordon nodes and evict their pods in rounds, except daemons and static pods.

    Nodes are given by names or patterns (`gpu-*`), by the labels of `selector`, or by both. As with kubectl drain, a
    node that has pods without an owner stays as it is unless `force` is set (then they count as recreated), and one
    with emptyDir volumes unless `delete_emptydir_data` is set. `disable_eviction` deletes pods past their budgets;
    `ignore_daemonsets=False` refuses nodes with daemons. `start_s` is the time from a pod's node to its readiness, in
    seconds.
    """

    nodes: tuple[str, ...] = ()
    force: bool = False
    selector: str = ""
    start_s: float = 0
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    ignore_daemonsets: bool = True

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
        rules = DrainRules(
            self.force, self.delete_emptydir_data, self.disable_eviction, self.ignore_daemonsets
        )
        evictions = Evictions(stage, self.start_s, rules)
        stage.courses.append(evictions.drain([node.name for node in found], stage.on_progress))
