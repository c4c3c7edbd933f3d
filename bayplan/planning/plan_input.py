"""Plan input: a workload without nodes, from the objects that a user gave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from ..api.custom_workloads import CustomWorkload
from ..api.devices import ResourceSlice
from ..api.node import Node
from ..api.pod import Pod
from ..api.storage import CSINode
from ..api.workloads import StatefulSet
from ..cluster.memory.absent_owners import stays_with_node, successor_of
from ..cluster.memory.workload_pods import WORKLOAD_KINDS
from ..cluster.objects.object_index import ClusterObject
from ..errors import counted
from ..manifests.timeline import InputObject, Timeline

PARALLEL = "Parallel"


@dataclass(slots=True)
class PlanInput:
    """The workload and surroundings that nodes are planned for."""

    workload: list[ClusterObject] = field(default_factory=list)
    """Everything but nodes and their objects; pods wait, unless their node stays."""
    kept: list[ClusterObject] = field(default_factory=list)
    """Nodes that stay, with their CSINodes and ResourceSlices."""
    nodes: list[Node] = field(default_factory=list)
    """All nodes of the input."""
    remarks: list[str] = field(default_factory=list)

    @property
    def kept_nodes(self) -> list[Node]:
        """The nodes that stay."""
        return [obj for obj in self.kept if isinstance(obj, Node)]

    def surroundings(self) -> list[ClusterObject]:
        """The objects of an empty cluster: the workload without pods, and without workloads other than daemons."""
        return [
            obj
            for obj in self.workload
            if not isinstance(obj, Pod | CustomWorkload)
            and (obj.kind not in WORKLOAD_KINDS or obj.kind == "DaemonSet")
        ]

    def at_once(self) -> list[ClusterObject]:
        """The workload, with the pods of StatefulSets created together, so that all of them can be counted."""
        return [
            replace(obj, spec=replace(obj.spec, pod_management_policy=PARALLEL))
            if isinstance(obj, StatefulSet)
            else obj
            for obj in self.workload
        ]


def prepare_input(objects: Iterable[InputObject], kept_names: Sequence[str] = ()) -> PlanInput:
    """Remove the nodes from `objects`, except the kept ones; their pods wait for a node again."""
    found, kept = PlanInput(), set(kept_names)
    timelines = lost = 0
    for obj in objects:
        if isinstance(obj, Timeline):
            timelines += not obj.stages  # in a plan pods are ready and do not end
        elif isinstance(obj, Node):
            found.nodes.append(obj)
            if obj.name in kept:
                found.kept.append(obj)
        elif isinstance(obj, CSINode):
            if obj.name in kept:
                found.kept.append(obj)
        elif isinstance(obj, ResourceSlice) and obj.spec.node_name:
            if obj.spec.node_name in kept:
                found.kept.append(obj)
        elif isinstance(obj, Pod):
            lost += _take_pod(obj, kept, found)
        else:
            found.workload.append(obj)
    if timelines:
        found.remarks.append("timelines have no effect: a plan is for all pods at once")
    if lost:
        found.remarks.append(
            f"{counted(lost, 'pod')} of daemons and static pods are planned with their nodes"
        )
    return found


def _take_pod(pod: Pod, kept: set[str], found: PlanInput) -> bool:
    """Add a pod, waiting unless its node is kept; True if it is bound to a node that is not kept."""
    if pod.is_finished or pod.is_terminating:
        return False
    if not pod.node_name or pod.node_name in kept:
        found.workload.append(pod)
        return False
    if stays_with_node(pod):
        return True
    found.workload.append(successor_of(pod))
    return False
